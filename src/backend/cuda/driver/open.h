// Opens NVIDIA's libraries from HONE_CUDA_DIR, the system's library path, or CUDA's usual install
// directories. Not for the driver, which is only in the library path.
#pragma once

#include <span>
#include <string>

namespace hone::cuda {

struct OpenedLibrary {
  void* handle = nullptr;  // null: see failure
  std::string file;
  std::string failure;  // what was searched for, where, and what to do
};

// `more`: directories to search last.
OpenedLibrary open_nvidia_library(const std::string& soname,
                                  std::span<const std::string> more = {});

}  // namespace hone::cuda
