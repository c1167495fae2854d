#include "backend/vulkan/device/memory.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace hone::vulkan {

namespace {

constexpr std::uint64_t alignment = 256, block_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t none = ~std::uint64_t{0};

std::uint64_t rounded(std::uint64_t bytes) {
  return std::max((bytes + alignment - 1) / alignment * alignment, alignment);
}

// The first memory type with the best available flags.
std::uint32_t memory_type(const Adapter& a, std::uint32_t allowed, bool is_of_host) {
  constexpr VkMemoryPropertyFlags shared =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags of_host[] = {shared | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, shared},
                                  of_device[] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  const std::span<const VkMemoryPropertyFlags> wishes = is_of_host ? of_host : of_device;
  for (VkMemoryPropertyFlags wish : wishes)
    for (std::uint32_t i = 0; i < a.memory.memoryTypeCount; ++i)
      if ((allowed >> i & 1) && (a.memory.memoryTypes[i].propertyFlags & wish) == wish) return i;
  throw UserError("Vulkan device '", a.name, "' has no memory for buffers that ",
                  is_of_host ? "the host can access" : "kernels can access");
}

}  // namespace

Block::Block(std::shared_ptr<Machine> machine, std::uint64_t bytes, bool is_of_host)
    : machine_(std::move(machine)), bytes_(bytes) {
  const DeviceApi& api = machine_->api;
  const Adapter& a = machine_->adapter;
  if (bytes > a.max_allocation)
    throw UserError("vulkan: an allocation has ", bytes, " bytes; '", a.name, "' allows at most ",
                    a.max_allocation);
  try {
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    const std::string what = cat("allocating ", bytes, " bytes");
    require(api.vkCreateBuffer(machine_->handle, &info, nullptr, &buffer_), what);
    VkMemoryRequirements needs{};
    api.vkGetBufferMemoryRequirements(machine_->handle, buffer_, &needs);
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.pNext = &flags;
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = memory_type(a, needs.memoryTypeBits, is_of_host);
    require(api.vkAllocateMemory(machine_->handle, &allocate, nullptr, &memory_), what);
    require(api.vkBindBufferMemory(machine_->handle, buffer_, memory_, 0), what);
    VkBufferDeviceAddressInfo address{};
    address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    address.buffer = buffer_;
    address_ = api.vkGetBufferDeviceAddress(machine_->handle, &address);
    void* mapped = nullptr;
    if (is_of_host)
      require(api.vkMapMemory(machine_->handle, memory_, 0, VK_WHOLE_SIZE, 0, &mapped), what);
    mapped_ = static_cast<std::byte*>(mapped);
  } catch (...) {
    close();
    throw;
  }
}

Block::~Block() { close(); }

void Block::close() {
  ++machine_->generation;
  if (buffer_) machine_->api.vkDestroyBuffer(machine_->handle, buffer_, nullptr);
  if (memory_) machine_->api.vkFreeMemory(machine_->handle, memory_, nullptr);
}

std::uint64_t Memory::take(Divided& d, std::uint64_t bytes) {
  for (auto it = d.free.begin(); it != d.free.end(); ++it) {
    if (it->second < bytes) continue;
    const auto [begin, room] = *it;
    d.free.erase(it);
    if (room > bytes) d.free[begin + bytes] = room - bytes;
    d.used[begin] = bytes;
    return begin;
  }
  return none;
}

DeviceMemory Memory::alloc(std::size_t asked) {
  const std::uint64_t bytes = rounded(asked);
  if (bytes < asked) throw UserError("vulkan: an allocation of ", asked, " bytes is too large");
  const std::scoped_lock lock(mutex_);
  for (auto& [address, d] : blocks_)
    if (const std::uint64_t begin = take(*d, bytes); begin != none)
      return {(address + begin) ^ turned_bit, 0};
  // A large allocation gets its own block; a small one, a block with room for more.
  std::unique_ptr<Divided> made;
  try {
    made = std::make_unique<Divided>(machine_, std::max(bytes, block_bytes));
  } catch (const UserError&) {
    erase_unused();
    made = std::make_unique<Divided>(machine_, bytes);
  }
  const std::uint64_t address = made->block.address(), begin = take(*made, bytes);
  blocks_[address] = std::move(made);
  return {(address + begin) ^ turned_bit, 0};
}

void Memory::give_back_unused() noexcept {
  const std::scoped_lock lock(mutex_);
  erase_unused();
}

void Memory::erase_unused() {
  std::erase_if(blocks_, [](const auto& entry) { return entry.second->used.empty(); });
}

bool Memory::holds(DeviceMemory m) const {
  const std::uint64_t at = address(m);
  const std::scoped_lock lock(mutex_);
  const auto it = blocks_.upper_bound(at);
  return it != blocks_.begin() && at < std::prev(it)->first + std::prev(it)->second->block.bytes();
}

void Memory::free(DeviceMemory m) noexcept {
  if (!m) return;
  const std::scoped_lock lock(mutex_);
  auto it = blocks_.upper_bound(address(m));
  if (it == blocks_.begin()) return;
  --it;
  Divided& d = *it->second;
  const std::uint64_t begin = address(m) - it->first;
  const auto used = d.used.find(begin);
  if (used == d.used.end()) return;
  auto free = d.free.emplace(begin, used->second).first;
  d.used.erase(used);
  if (const auto next = std::next(free);
      next != d.free.end() && free->first + free->second == next->first) {
    free->second += next->second;
    d.free.erase(next);
  }
  if (free != d.free.begin())
    if (const auto before = std::prev(free); before->first + before->second == free->first) {
      before->second += free->second;
      d.free.erase(free);
    }
  // Keeps one block for later allocations.
  if (!d.used.empty() || (blocks_.size() == 1 && d.block.bytes() == block_bytes)) return;
  blocks_.erase(it);
}

std::unique_ptr<Block> Staging::take() {
  constexpr std::uint64_t bytes = std::uint64_t{8} << 20;
  {
    const std::scoped_lock lock(mutex_);
    if (kept_) return std::move(kept_);
  }
  return std::make_unique<Block>(machine_, bytes, true);
}

void Staging::give_back(std::unique_ptr<Block> b) {
  const std::scoped_lock lock(mutex_);
  if (!kept_) kept_ = std::move(b);
}

Memory::Place Memory::find(DeviceMemory m, std::uint64_t bytes) const {
  const std::uint64_t at = address(m);
  const std::scoped_lock lock(mutex_);
  auto it = blocks_.upper_bound(at);
  HONE_ASSERT(it != blocks_.begin(), "vulkan: no memory at ", at);
  --it;
  const Block& b = it->second->block;
  HONE_ASSERT(at + bytes <= it->first + b.bytes(), "vulkan: memory at ", at, " ends before ", bytes,
              " bytes");
  return {b.buffer(), at - it->first, at};
}

}  // namespace hone::vulkan
