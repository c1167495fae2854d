// The devices of this build by name. What a device is stands in runtime/device.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "runtime/library_status.h"

namespace hone {

std::span<const std::string_view> device_names();
// Throws UserError when there is none of that name, or the machine has none.
std::shared_ptr<Device> open_device(std::string_view name);

// Opens every library that a device of this build may use.
std::vector<LibraryStatus> device_libraries();

}  // namespace hone
