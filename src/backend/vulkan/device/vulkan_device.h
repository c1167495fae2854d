// A Vulkan device: the one that HONE_VULKAN_DEVICE names, else the best. The Vulkan library is
// opened only when a device is requested.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device.h"
#include "runtime/library_status.h"

namespace hone::vulkan {

// Throws UserError saying what is missing.
std::shared_ptr<Device> open_device();
// The devices of all drivers, listed as libraries; empty without a loader.
std::vector<LibraryStatus> device_libraries();
// Whether open_device() finds one: 1 or 0.
std::size_t device_count();

}  // namespace hone::vulkan
