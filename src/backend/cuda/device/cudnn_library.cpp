#include "backend/cuda/device/cudnn_library.h"

#include <array>

#include "backend/cuda/driver/open.h"
#include "base/error.h"
#include "base/library.h"

namespace hone::cudnn {

namespace {

constexpr const char* soname = "libcudnn.so.9";
// 9.10.0 and 9.10.1 compute attention wrongly.
constexpr std::size_t least_version = 91002;

// Libraries that cuDNN opens by name at first use, and whose absence terminates the process. Other
// versions of CUDA have other names.
constexpr std::size_t cuda_major = 13;
constexpr const char* needed[] = {"libcublasLt.so.13", "libnvrtc.so.13"};

Library open_cudnn() {
  Library l;
  cuda::OpenedLibrary opened = cuda::open_nvidia_library(soname);
  l.file = opened.file;
  l.failure = opened.failure;
  if (!opened.handle) return l;
  for (const char* other : needed)
    if (const auto o = cuda::open_nvidia_library(other); !o.handle && l.failure.empty())
      l.failure = cat(l.file, " needs another library: ", o.failure);
#define HONE_CUDNN_FIND(name, symbol, ...)                                              \
  l.name = reinterpret_cast<decltype(l.name)>(find_in_library(opened.handle, #symbol)); \
  if (!l.name && l.failure.empty()) l.failure = cat(l.file, " lacks ", #symbol);
  HONE_CUDNN_FUNCTIONS(HONE_CUDNN_FIND)
#undef HONE_CUDNN_FIND
  if (l.failure.empty() && l.cuda_version() / 1000 != cuda_major)
    l.failure = cat(l.file, " is for CUDA ", l.cuda_version() / 1000, "; needed is cuDNN for CUDA ",
                    cuda_major);
  if (l.failure.empty() && l.version() < least_version)
    l.failure = cat(l.file, " is version ", version_text(l.version()), "; needed is ",
                    version_text(least_version), " or later");
  return l;
}

}  // namespace

std::string version_text(std::size_t v) {
  return cat(v / 10000, ".", v % 10000 / 100, ".", v % 100);
}

const Library& library() {
  static const Library it = open_cudnn();
  return it;
}

void check(Status s, std::string_view call) {
  if (s == success) return;
  std::array<char, 512> why{};
  library().last_error(why.data(), why.size());
  throw UserError("cudnn: ", call, ": ", library().status_name(s), " (", static_cast<int>(s), ")",
                  why[0] ? ": " : "", why.data());
}

}  // namespace hone::cudnn
