// An NVIDIA GPU as a Device. Opens libcuda; does not need a compiler or the CUDA toolkit.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device.h"
#include "runtime/library_status.h"

namespace hone {

// Throws UserError when the machine has no GPU. Successive calls cycle through the GPUs.
std::shared_ptr<Device> open_cuda_device();
// Number of GPUs; 0 without a driver.
std::size_t cuda_device_count();
// The status of the driver and libraries; opens them if necessary.
std::vector<LibraryStatus> cuda_device_libraries();

}  // namespace hone
