// A GPU of NVIDIA as a Device. Opens libcuda, needs no compiler and no toolkit.
#pragma once

#include <memory>
#include <vector>

#include "runtime/device.h"
#include "runtime/library_status.h"

namespace hone {

// Throws UserError when the machine has none. Each call may give another one, in turn.
std::shared_ptr<Device> open_cuda_device();
// How many there are; 0 without a driver.
std::size_t cuda_device_count();
// The driver, opened now if it was not.
std::vector<LibraryStatus> cuda_device_libraries();

}  // namespace hone
