// The processor as a device: plain memory, kernels called as functions, chunks divided between the
// threads of a pool.
#pragma once

#include <memory>
#include <vector>

#include "backend/cpu/device/call.h"
#include "runtime/device.h"
#include "runtime/library_status.h"

namespace hone {

std::shared_ptr<Device> open_cpu_device();
// The status of oneDNN; opens it if necessary.
std::vector<LibraryStatus> cpu_device_libraries();

}  // namespace hone
