// Kernels as compute shaders for any Vulkan 1.2 device. Only the "native" form queries a driver or
// device.
#pragma once

#include <iterator>
#include <memory>
#include <string_view>

#include "backend/vulkan/shader/shader.h"
#include "codegen/target.h"

namespace hone::vulkan {

// "native" is the best form of this machine's device, or the smallest without a device.
inline constexpr std::string_view target_names[] = {"native", forms[0].name, forms[1].name,
                                                    forms[2].name, forms[3].name};
static_assert(std::size(target_names) == std::size(forms) + 1);

std::unique_ptr<Target> make_target(std::string_view);
// The form must outlive it.
std::unique_ptr<Target> make_target(const Form&);

}  // namespace hone::vulkan
