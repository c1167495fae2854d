// NVRTC, opened when first needed: compiles CUDA C++ to machine code. Does not need a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cuda {

struct NvrtcStatus {
  std::string version, file;
  std::string failure;  // empty: it can be used
};

// Opens NVRTC; a failure says what was searched for, and where.
const NvrtcStatus& nvrtc_status();

// Compiles the source to a cubin for an architecture such as "sm_90", or to PTX for "compute_75".
// Throws UserError without NVRTC or for an unknown architecture, and InternalError with NVRTC's log
// if the program does not compile.
std::vector<std::byte> nvrtc_compile(const std::string& source, std::string_view name,
                                     std::string_view architecture);

}  // namespace hone::cuda
