// The devices of this build by name. What a device is stands in runtime/device.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "runtime/device.h"

namespace hone {

std::span<const std::string_view> device_names();
// Throws UserError when there is none of that name, or the machine has none.
std::shared_ptr<Device> open_device(std::string_view name);

}  // namespace hone
