// A backend that exists to prove that nothing outside of backends knows a CPU: its memory is not
// the host's, its streams are threads of their own that run late and out of step, and its kernels
// are interpreted from their text. An access that no stream, event or synchronisation puts in order
// is refused when it is asked for, whatever the threads happen to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "runtime/device.h"

namespace hone::test {

// How slow launches are made on purpose, each by as much; those of devices with one engine exclude
// each other.
struct FarPace {
  std::chrono::microseconds launch{0};
  std::shared_ptr<std::mutex> engine = nullptr;
};

// Streams draw their delays from the seed.
std::shared_ptr<Device> open_far_device(std::uint64_t seed = 1, FarPace = {});

// What was asked of the streams of all far devices of this process so far.
struct FarCounts {
  std::int64_t uploads = 0, downloads = 0, launches = 0;
};
FarCounts far_counts();

// "far", for CompileOptions::backend and for lists.
const Backend& far_backend();

// Of the devices that are opened from the lists from now on.
void set_far_pace(FarPace);

// Two such devices and their backend are in the lists of this process while it lives.
class FarListed {
 public:
  FarListed();

 private:
  AddedDevice device_;
  AddedBackend backend_;
};

}  // namespace hone::test
