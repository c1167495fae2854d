// The processor as a device: plain memory, kernels called as functions, chunks divided between the
// threads of a pool. Runs host steps too.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace hone {

std::shared_ptr<Device> open_cpu_device();

}  // namespace hone
