// The work of one stream on its way to the device: commands as plain data, recordings of them that
// are submitted again, staging memory, and what the host receives when a part is finished.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/vulkan/device/memory.h"
#include "backend/vulkan/device/program.h"

namespace hone::vulkan {

// A byte of a buffer.
struct Spot {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;
  bool operator==(const Spot&) const = default;
};

// Belongs to one thread at a time, but for wait(), which any may call.
class Work {
 public:
  explicit Work(std::shared_ptr<Machine>);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const Machine* machine() const { return machine_.get(); }

  // Memory that host and device reach, until the next synchronize(); `count` of what was asked for,
  // at least 1 byte.
  struct Staged {
    VkBuffer buffer;
    std::uint64_t offset, count, address;
    std::byte* bytes;
  };
  Staged stage(std::uint64_t bytes, std::uint64_t alignment);

  void add_copy(Spot from, Spot to, std::uint64_t bytes);
  void add_fill(Spot to, std::uint64_t bytes, std::uint32_t word);
  void add_dispatch(const Pipeline&, VkPipelineLayout, std::uint32_t groups,
                    std::span<const std::uint64_t> arguments);
  // Staged bytes go there when the work so far is finished.
  void deliver(std::span<std::byte> to, const std::byte* staged);

  // The point that is reached when all work so far is finished.
  std::uint64_t now();
  // Returns when that point is reached and what the host receives until then is there.
  void wait(std::uint64_t point);
  // What comes next begins after that point of other work of this machine.
  void follow(const std::shared_ptr<Work>& other, std::uint64_t point);
  void synchronize();

 private:
  struct Command {
    enum class Kind : std::uint64_t { copy, fill, dispatch };
    Kind kind = Kind::copy;
    std::uint64_t groups_or_word = 0, first_word = 0, words = 0, bytes = 0;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    Spot from, to;
    bool operator==(const Command&) const = default;
  };
  struct Recording {
    std::vector<Command> commands;
    std::vector<std::uint64_t> words;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    std::uint64_t last = 0;  // the point at which it is free again
  };
  struct Delivery {
    std::uint64_t point;
    std::span<std::byte> to;
    const std::byte* staged;
  };

  void add(const Command&);
  void flush();
  void reach(std::uint64_t point);
  VkCommandBuffer recorded(std::uint64_t point);
  void record(const Recording&);
  void forget_recordings(std::size_t keep);

  std::shared_ptr<Machine> machine_;
  std::recursive_mutex mutex_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore reached_ = VK_NULL_HANDLE;  // counts points
  std::uint64_t submitted_ = 0;
  std::vector<Command> commands_;
  std::vector<std::uint64_t> words_;
  std::unordered_multimap<std::uint64_t, std::list<Recording>::iterator> by_hash_;
  std::list<Recording> recordings_;  // latest first
  std::uint64_t generation_ = 0;
  std::deque<Delivery> deliveries_;
  struct Before {
    std::shared_ptr<Work> work;
    std::uint64_t point;
  };
  std::vector<Before> before_;
  std::unique_ptr<Block> staging_;
  std::uint64_t staged_ = 0;
};

}  // namespace hone::vulkan
