// Data that prepare steps wrote to device memory that the host cannot read.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"

namespace hone {

class DeviceResident final : public ResidentBytes {
 public:
  DeviceResident(std::shared_ptr<Device> device, std::shared_ptr<const OwnedMemory> memory)
      : device_(std::move(device)), memory_(std::move(memory)) {}

  std::size_t size() const override { return memory_->size(); }
  Storage download() const override {
    std::vector<std::byte> bytes(size());
    const std::unique_ptr<Stream> stream = device_->open_stream();
    stream->download(bytes, at());
    stream->synchronize();
    return Storage::from(std::move(bytes));
  }

  DeviceMemory at() const { return memory_->at(); }
  const std::shared_ptr<Device>& device() const { return device_; }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const OwnedMemory> memory_;
};

}  // namespace hone
