// NVRTC, opened when it is first needed: CUDA C++ to machine code. Needs no GPU.
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

// Opens it; says what was looked for, and where.
const NvrtcStatus& nvrtc_status();

// The file as a cubin for an architecture, "sm_90", or, for "compute_75", as PTX. Throws UserError
// without NVRTC or for an architecture that it does not know, and InternalError with its log for a
// program that it refuses.
std::vector<std::byte> nvrtc_compile(const std::string& source, std::string_view name,
                                     std::string_view architecture);

}  // namespace hone::cuda
