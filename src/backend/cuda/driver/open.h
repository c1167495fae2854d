// NVIDIA's libraries, looked for where HONE_CUDA_DIR says, where the system looks, and where CUDA
// is usually installed. Not the driver, which lies in the library path alone.
#pragma once

#include <span>
#include <string>

namespace hone::cuda {

struct OpenedLibrary {
  void* handle = nullptr;  // null: see failure
  std::string file;
  std::string failure;  // what was looked for, where, and what to do
};

// `more` are directories that are looked in last.
OpenedLibrary open_nvidia_library(const std::string& soname,
                                  std::span<const std::string> more = {});

}  // namespace hone::cuda
