#include "backend/cuda/driver/open.h"

#include <vector>

#include "base/error.h"
#include "base/flags.h"
#include "base/library.h"

namespace hone::cuda {

OpenedLibrary open_nvidia_library(const std::string& soname, std::span<const std::string> more) {
  std::vector<std::string> directories = {"", "/usr/local/cuda/lib64"};
  if (const std::string given = flag("HONE_CUDA_DIR"); !given.empty())
    directories.insert(directories.begin(), given);
  directories.insert(directories.end(), more.begin(), more.end());
  OpenedLibrary out;
  std::string tried;
  for (const std::string& directory : directories) {
    out.file = directory.empty() ? soname : directory + "/" + soname;
    if ((out.handle = open_library(out.file.c_str()))) return out;
    tried += cat(tried.empty() ? "" : ", ", directory.empty() ? "the library path" : directory);
  }
  out.file.clear();
  out.failure = cat("no ", soname, ": looked in ", tried,
                    "; set HONE_CUDA_DIR to the directory that holds it");
  return out;
}

}  // namespace hone::cuda
