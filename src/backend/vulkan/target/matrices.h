// Cooperative matrices: glslang of Debian 12 writes those of NVIDIA's extension, devices have those
// of Khronos, which mean the same.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::vulkan {

// The same shader with SPV_KHR_cooperative_matrix in place of SPV_NV_cooperative_matrix. What a
// matrix is used as follows from the specialisation constant that is its number of rows, one of
// c::matrix_rows, which is a plain constant in the result. Without such matrices nothing changes.
std::vector<std::uint32_t> with_khronos_matrices(std::vector<std::uint32_t> spirv);

}  // namespace hone::vulkan
