// Memory of a device: a few large allocations, each one buffer, divided into the requested pieces.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backend/vulkan/driver/machine.h"
#include "runtime/device.h"

namespace hone::vulkan {

// One allocation and the buffer that covers it.
class Block {
 public:
  // In device memory, or in memory that both host and device can access. Throws UserError when
  // there is not enough.
  Block(std::shared_ptr<Machine>, std::uint64_t bytes, bool is_of_host);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  VkBuffer buffer() const { return buffer_; }
  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  std::byte* mapped() const { return mapped_; }  // null for device memory

 private:
  void close();

  std::shared_ptr<Machine> machine_;
  std::uint64_t bytes_, address_ = 0;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::byte* mapped_ = nullptr;
};

// A handle is the device address of the first byte with one bit flipped, so that it is not a valid
// host address. Thread-safe.
class Memory {
 public:
  static constexpr std::uint64_t turned_bit = std::uint64_t{1} << 62;
  static std::uint64_t address(DeviceMemory m) {
    return (m.handle ^ turned_bit) + static_cast<std::uint64_t>(m.offset);
  }

  explicit Memory(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}

  DeviceMemory alloc(std::size_t bytes);
  // Whether the handle refers to memory of this device.
  bool holds(DeviceMemory) const;
  void free(DeviceMemory) noexcept;
  // Returns unused blocks to the driver.
  void give_back_unused() noexcept;

  struct Place {
    VkBuffer buffer = VK_NULL_HANDLE;
    std::uint64_t offset = 0, address = 0;
    bool operator==(const Place&) const = default;

    Place at(std::uint64_t bytes) const { return {buffer, offset + bytes, address + bytes}; }
  };
  // Throws InternalError for memory that is not of this device, or too short.
  Place find(DeviceMemory, std::uint64_t bytes) const;

 private:
  struct Piece {
    std::uint64_t begin, bytes;
  };
  struct Divided {
    explicit Divided(std::shared_ptr<Machine> m, std::uint64_t bytes)
        : block(std::move(m), bytes, false), free{{0, bytes}} {}
    Block block;
    std::map<std::uint64_t, std::uint64_t> free;  // begin, bytes
    std::map<std::uint64_t, std::uint64_t> used;
  };
  std::uint64_t take(Divided&, std::uint64_t bytes);
  void erase_unused();

  mutable std::mutex mutex_;
  std::shared_ptr<Machine> machine_;
  std::map<std::uint64_t, std::unique_ptr<Divided>> blocks_;  // by address
};

// Memory that host and device can access; each block belongs to one stream. Allocating it from the
// driver may take milliseconds, so a new stream reuses the block that an earlier one gave back.
// Thread-safe.
class Staging {
 public:
  explicit Staging(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}

  std::unique_ptr<Block> take();
  // Keeps one block. The device must no longer use it.
  void give_back(std::unique_ptr<Block>);

 private:
  std::mutex mutex_;
  std::shared_ptr<Machine> machine_;
  std::unique_ptr<Block> kept_;
};

}  // namespace hone::vulkan
