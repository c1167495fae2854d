// The pending work of one stream: commands as plain data, reusable recordings of them, staging
// memory, and data delivered to the host when work finishes.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/vulkan/device/memory.h"
#include "backend/vulkan/device/program.h"

namespace hone::vulkan {

// A range of device addresses that a command reads or writes.
struct Access {
  std::uint64_t begin = 0, end = 0;
  bool is_write = false;
};

// The accesses of commands since the last barrier.
class Accesses {
 public:
  // Whether a command with accesses `next` must wait for one of these: both access a byte that at
  // least one writes.
  bool conflict(std::span<const Access> next) const;
  void add(std::span<const Access>);
  void clear() { all_.clear(); }

 private:
  std::vector<Access> all_;
};

// Used by one thread at a time, except wait(), which any thread may call.
class Work {
 public:
  Work(std::shared_ptr<Machine>, std::shared_ptr<Staging>);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const Machine* machine() const { return machine_.get(); }

  // Memory that host and device can access, valid until the next synchronize(); `count` of the
  // requested bytes, at least 1.
  struct Staged {
    Memory::Place place;
    std::uint64_t count;
    std::byte* bytes;
  };
  Staged stage(std::uint64_t bytes, std::uint64_t alignment);

  void add_copy(Memory::Place from, Memory::Place to, std::uint64_t bytes);
  void add_fill(Memory::Place to, std::uint64_t bytes, std::uint32_t word);
  // Without accesses, it is assumed to use all memory.
  void add_dispatch(const Pipeline&, VkPipelineLayout, std::uint32_t groups,
                    std::span<const std::uint64_t> arguments, std::span<const Access>);
  // Records the device's clock when all work so far is finished.
  void add_time(VkQueryPool, std::uint32_t query);
  // Copies staged bytes to `to` when the work so far is finished.
  void deliver(std::span<std::byte> to, const std::byte* staged);

  // The point reached when all work so far is finished.
  std::uint64_t now();
  // Returns when that point is reached and all deliveries up to it are done.
  void wait(std::uint64_t point);
  // Later work begins after that point of other work on this machine.
  void follow(const std::shared_ptr<Work>& other, std::uint64_t point);
  void synchronize();
  // Number of barriers in all recordings so far.
  std::uint64_t barriers() const { return barriers_; }

 private:
  struct Command {
    enum class Kind : std::uint32_t { copy, fill, dispatch, time };
    Kind kind = Kind::copy;
    std::uint32_t waits = 0;  // 1: waits for all earlier commands
    std::uint64_t groups_or_word = 0, first_word = 0, words = 0, bytes = 0;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkQueryPool queries = VK_NULL_HANDLE;
    Memory::Place from, to;
    bool operator==(const Command&) const = default;
  };
  struct Recording {
    std::vector<Command> commands;
    std::vector<std::uint64_t> words;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    std::uint64_t last = 0;  // the point after which it can be reused
  };
  struct Delivery {
    std::uint64_t point;
    std::span<std::byte> to;
    const std::byte* staged;
  };

  void add(Command, std::span<const Access>);
  void flush();
  void reach(std::uint64_t point);
  VkCommandBuffer recorded();
  void record(const Recording&);
  void record(const Command&, const Recording&, VkPipeline& bound);
  void forget_recordings(std::size_t keep);

  std::shared_ptr<Machine> machine_;
  std::recursive_mutex mutex_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkSemaphore reached_ = VK_NULL_HANDLE;  // counts points
  std::uint64_t submitted_ = 0;
  std::vector<Command> commands_;
  std::vector<std::uint64_t> words_;
  Accesses accesses_;  // since the last barrier
  std::uint64_t barriers_ = 0;
  std::unordered_multimap<std::uint64_t, std::list<Recording>::iterator> by_hash_;
  std::list<Recording> recordings_;  // latest first
  std::uint64_t generation_ = 0;
  std::vector<Delivery> deliveries_;  // in the order of their points
  struct Before {
    std::shared_ptr<Work> work;
    std::uint64_t point;
  };
  std::vector<Before> before_;
  std::shared_ptr<Staging> source_;
  std::unique_ptr<Block> staging_;
  std::uint64_t staged_ = 0;
};

}  // namespace hone::vulkan
