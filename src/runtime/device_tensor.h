// A tensor in the memory of a device or of the host that outlives runs: results are bound to it and
// stay there as inputs of the next run. Not a value of a graph, and no state of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/tensor_ref.h"

namespace hone {

// A handle: copies refer to the same memory, which lives as long as one of them, or a session to
// which one is bound. May be used by several threads; runs that write it must be finished before
// others, and the calls below, use it.
class DeviceTensor {
 public:
  enum class Start : std::uint8_t { zeros, uninitialized };
  // Dense row-major. Throws UserError for negative sizes, and OutOfMemory.
  DeviceTensor(std::shared_ptr<Device>, DType, std::span<const std::int64_t> dims,
               Start = Start::zeros);

  // Memory that `owner` keeps alive (null: the caller does).
  struct Given {
    std::shared_ptr<const void> owner;
    std::shared_ptr<Device> device;  // null: the host's memory
    bool is_read_only = false;       // refused as an output and as a donated input
  };
  // The reference says where it lies; its device, if it has one, is that of `Given`.
  DeviceTensor(const TensorRef&, Given);

  DType dtype() const { return it_->dtype; }
  const std::vector<std::int64_t>& dims() const { return it_->dims; }
  const std::vector<std::int64_t>& strides() const { return it_->strides; }  // empty: dense
  std::size_t bytes() const { return it_->bytes; }                           // of all elements
  bool is_read_only() const { return it_->given.is_read_only; }
  const std::shared_ptr<Device>& device() const { return it_->given.device; }  // null: the host
  // Valid as long as a handle.
  TensorRef ref() const;

  // Copy all elements, dense and row-major, to or from the host's memory of exactly bytes(). Throw
  // UserError for another size; write() also when it is read-only.
  void read(std::span<std::byte> to) const;
  void write(std::span<const std::byte> from);

 private:
  struct Data {
    DType dtype = DType::f32;
    std::vector<std::int64_t> dims, strides;
    std::size_t bytes = 0;
    std::span<std::byte> host;
    DeviceMemory at;
    Given given;
    OwnedMemory memory;  // if it is its own
  };
  std::shared_ptr<Data> it_;
};

}  // namespace hone
