// A test backend that proves that no code outside of backends assumes a CPU. Its memory is separate
// from the host's, its streams are threads with random delays, and its kernels are interpreted from
// their text. An access that no stream, event or synchronisation orders is refused when it is
// requested, whatever the threads happen to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "kernel/kernel.h"
#include "runtime/device.h"

namespace hone::test {

// How a device behaves. `launch`: delay added to every launch. Launches on devices that share an
// engine exclude each other. After a launch of a kernel that `breaks` accepts, the device does
// nothing more.
struct FarPace {
  std::chrono::microseconds launch{0};
  std::shared_ptr<std::mutex> engine = nullptr;
  std::function<bool(const Kernel&)> breaks = nullptr;
};

// Streams draw their delays from the seed.
std::shared_ptr<Device> open_far_device(std::uint64_t seed = 1, FarPace = {});

// Operations requested so far from the streams of all far devices of this process.
struct FarCounts {
  std::int64_t uploads = 0, downloads = 0, launches = 0, replays = 0;
};
FarCounts far_counts();

// "far", for CompileOptions::backend and for lists.
const Backend& far_backend();

// For devices that are opened from the lists from now on.
void set_far_pace(FarPace);

// While it lives, two such devices and their backend are registered in this process.
class FarListed {
 public:
  FarListed();

 private:
  AddedDevice device_;
  AddedBackend backend_;
};

}  // namespace hone::test
