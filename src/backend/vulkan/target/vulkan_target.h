// Kernels as compute shaders for any device of Vulkan 1.2. Needs no device and no driver.
#pragma once

#include <memory>
#include <string_view>

#include "backend/vulkan/shader/shader.h"
#include "codegen/target.h"

namespace hone::vulkan {

inline constexpr std::string_view target_names[] = {target_name};

std::unique_ptr<Target> make_target(std::string_view);

}  // namespace hone::vulkan
