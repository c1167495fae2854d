// Kernels as compute shaders for any device of Vulkan 1.2. Needs no device and no driver, which are
// asked for the native form alone.
#pragma once

#include <memory>
#include <string_view>

#include "backend/vulkan/shader/shader.h"
#include "codegen/target.h"

namespace hone::vulkan {

// The first is the best form of this machine's device, the smallest where there is none.
inline constexpr std::string_view target_names[] = {"native", forms[0].name, forms[1].name,
                                                    forms[2].name};

std::unique_ptr<Target> make_target(std::string_view);

}  // namespace hone::vulkan
