#include "backend/cuda/driver/open.h"

#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/flags.h"
#include "base/library.h"

namespace hone::cuda {

OpenedLibrary open_nvidia_library(const std::string& soname, std::span<const std::string> more) {
  std::vector<std::string> directories;
  std::istringstream given(flag("HONE_CUDA_DIR"));
  for (std::string one; std::getline(given, one, ':');)
    if (!one.empty()) directories.push_back(one);
  directories.insert(directories.end(), {"", "/usr/local/cuda/lib64"});
  directories.insert(directories.end(), more.begin(), more.end());
  OpenedLibrary out;
  std::string tried;
  for (const std::string& directory : directories) {
    out.file = directory.empty() ? soname : directory + "/" + soname;
    if ((out.handle = open_library(out.file.c_str()))) return out;
    tried += cat(tried.empty() ? "" : ", ", directory.empty() ? "the library path" : directory);
  }
  out.file.clear();
  out.failure =
      cat("no ", soname, ": looked in ", tried,
          "; set HONE_CUDA_DIR to the directory that holds it (several: separated by colons)");
  return out;
}

}  // namespace hone::cuda
