#include "backend/vulkan/device/queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/hash.h"

namespace hone::vulkan {

namespace {

constexpr std::size_t most_commands = 256;  // waiting to be submitted
constexpr std::size_t most_recordings = 64;
constexpr Access everything[] = {{0, ~std::uint64_t{0}, true}};

}  // namespace

Work::Work(std::shared_ptr<Machine> machine, std::shared_ptr<Staging> staging)
    : machine_(std::move(machine)), source_(std::move(staging)) {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = machine_->adapter.queue_family;
  require(machine_->api.vkCreateCommandPool(machine_->handle, &pool, nullptr, &pool_),
          "opening a stream");
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  info.pNext = &type;
  require(machine_->api.vkCreateSemaphore(machine_->handle, &info, nullptr, &reached_),
          "opening a stream");
}

Work::~Work() {
  try {
    reach(submitted_);
  } catch (const UserError&) {
    // A lost device does no more work.
  }
  if (staging_) source_->give_back(std::move(staging_));
  machine_->api.vkDestroySemaphore(machine_->handle, reached_, nullptr);
  machine_->api.vkDestroyCommandPool(machine_->handle, pool_, nullptr);
}

// Offsets restart after each synchronize(), so that equal runs give equal commands.
Work::Staged Work::stage(std::uint64_t bytes, std::uint64_t alignment) {
  if (!staging_) staging_ = source_->take();
  staged_ = (staged_ + alignment - 1) / alignment * alignment;
  if (staged_ + std::min<std::uint64_t>(bytes, 4096) > staging_->bytes()) synchronize();
  const std::uint64_t count = std::min(bytes, staging_->bytes() - staged_), at = staged_;
  staged_ += count;
  return {{staging_->buffer(), at, staging_->address() + at}, count, staging_->mapped() + at};
}

bool Accesses::conflict(std::span<const Access> next) const {
  for (const Access& n : next)
    for (const Access& a : all_)
      if ((n.is_write || a.is_write) && n.begin < a.end && a.begin < n.end) return true;
  return false;
}

void Accesses::add(std::span<const Access> next) {
  all_.insert(all_.end(), next.begin(), next.end());
}

void Work::add(Command c, std::span<const Access> accesses) {
  const std::scoped_lock lock(mutex_);
  c.waits = commands_.empty() || accesses_.conflict(accesses);
  if (c.waits) accesses_.clear();
  accesses_.add(accesses);
  commands_.push_back(c);
  if (commands_.size() >= most_commands) flush();
}

void Work::add_copy(Memory::Place from, Memory::Place to, std::uint64_t bytes) {
  const Access accesses[] = {{from.address, from.address + bytes, false},
                             {to.address, to.address + bytes, true}};
  add({.kind = Command::Kind::copy, .bytes = bytes, .from = from, .to = to}, accesses);
}

void Work::add_fill(Memory::Place to, std::uint64_t bytes, std::uint32_t word) {
  const Access accesses[] = {{to.address, to.address + bytes, true}};
  add({.kind = Command::Kind::fill, .groups_or_word = word, .bytes = bytes, .to = to}, accesses);
}

void Work::add_dispatch(const Pipeline& p, VkPipelineLayout layout, std::uint32_t groups,
                        std::span<const std::uint64_t> arguments,
                        std::span<const Access> accesses) {
  std::uint64_t address = 0;
  if (arguments.size() > most_pushed) {
    const Staged s = stage(arguments.size_bytes(), 16);
    std::memcpy(s.bytes, arguments.data(), arguments.size_bytes());
    address = s.place.address;
    arguments = std::span(&address, 1);
  }
  const std::scoped_lock lock(mutex_);
  const std::uint64_t first = words_.size();
  words_.insert(words_.end(), arguments.begin(), arguments.end());
  add({.kind = Command::Kind::dispatch,
       .groups_or_word = groups,
       .first_word = first,
       .words = arguments.size(),
       .pipeline = p.handle,
       .layout = layout},
      accesses.empty() ? everything : accesses);
}

void Work::add_time(VkQueryPool queries, std::uint32_t query) {
  add({.kind = Command::Kind::time, .first_word = query, .queries = queries}, everything);
}

void Work::deliver(std::span<std::byte> to, const std::byte* staged) {
  const std::scoped_lock lock(mutex_);
  deliveries_.push_back({now(), to, staged});
}

std::uint64_t Work::now() {
  const std::scoped_lock lock(mutex_);
  return submitted_ + (commands_.empty() ? 0 : 1);
}

void Work::wait(std::uint64_t point) {
  const std::scoped_lock lock(mutex_);
  if (point > submitted_) flush();
  reach(point);
  auto next = deliveries_.begin();
  for (; next != deliveries_.end() && next->point <= point; ++next)
    std::memcpy(next->to.data(), next->staged, next->to.size());
  deliveries_.erase(deliveries_.begin(), next);
}

void Work::follow(const std::shared_ptr<Work>& other, std::uint64_t point) {
  flush();
  {
    const std::scoped_lock lock(other->mutex_);
    if (point > other->submitted_) other->flush();
  }
  before_.push_back({other, point});
}

void Work::synchronize() {
  const std::scoped_lock lock(mutex_);
  flush();
  wait(submitted_);
  staged_ = 0;
}

// Polls before sleeping, because a sleeping thread wakes late; after a while, lets other threads
// run between two looks. A software device needs the CPU itself.
void Work::reach(std::uint64_t point) {
  if (point == 0) return;
  if (!machine_->adapter.is_software) {
    using std::chrono::steady_clock;
    constexpr std::chrono::milliseconds alone(1), at_all(50);
    const auto start = steady_clock::now();
    for (auto waited = steady_clock::duration::zero(); waited < at_all;
         waited = steady_clock::now() - start) {
      std::uint64_t now = 0;
      machine_->require(machine_->api.vkGetSemaphoreCounterValue(machine_->handle, reached_, &now),
                        "waiting for the device");
      if (now >= point) return;
      if (waited > alone) std::this_thread::yield();
    }
  }
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &reached_;
  info.pValues = &point;
  machine_->require(machine_->api.vkWaitSemaphores(machine_->handle, &info, ~std::uint64_t{0}),
                    "waiting for the device");
}

void Work::flush() {
  const std::scoped_lock lock(mutex_);
  if (commands_.empty()) return;
  const std::uint64_t point = submitted_ + 1;
  const VkCommandBuffer buffer = recorded();
  std::vector<VkSemaphore> semaphores;
  std::vector<std::uint64_t> points;
  for (const Before& b : before_) semaphores.push_back(b.work->reached_), points.push_back(b.point);
  const std::vector<VkPipelineStageFlags> stages(
      semaphores.size(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT);
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<std::uint32_t>(points.size());
  timeline.pWaitSemaphoreValues = points.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &point;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<std::uint32_t>(semaphores.size());
  info.pWaitSemaphores = semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = 1;
  info.pCommandBuffers = &buffer;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &reached_;
  machine_->submit(info);
  submitted_ = recordings_.front().last = point;
  before_.clear();
}

// Takes the commands and returns a command buffer for them, reused if they were recorded before. It
// becomes the first recording.
VkCommandBuffer Work::recorded() {
  if (generation_ != machine_->generation) {
    reach(submitted_);
    forget_recordings(0);
    generation_ = machine_->generation;
  }
  std::uint64_t hash = hash_bytes(words_.data(), words_.size() * sizeof words_[0]);
  hash = hash_bytes(commands_.data(), commands_.size() * sizeof commands_[0], hash);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    Recording& r = *it->second;
    if (r.commands != commands_ || r.words != words_) continue;
    recordings_.splice(recordings_.begin(), recordings_, it->second);
    commands_.clear();
    words_.clear();
    reach(r.last);  // one submission of a buffer at a time
    return r.buffer;
  }
  if (recordings_.size() >= most_recordings) {
    reach(submitted_);
    forget_recordings(most_recordings / 2);
  }
  Recording r{std::move(commands_), std::move(words_), VK_NULL_HANDLE, 0};
  commands_ = {};
  words_ = {};
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  require(machine_->api.vkAllocateCommandBuffers(machine_->handle, &info, &r.buffer),
          "recording work");
  record(r);
  recordings_.push_front(std::move(r));
  by_hash_.emplace(hash, recordings_.begin());
  return recordings_.front().buffer;
}

void Work::forget_recordings(std::size_t keep) {
  while (recordings_.size() > keep) {
    const auto last = std::prev(recordings_.end());
    machine_->api.vkFreeCommandBuffers(machine_->handle, pool_, 1, &last->buffer);
    std::erase_if(by_hash_, [&](const auto& entry) { return entry.second == last; });
    recordings_.erase(last);
  }
}

void Work::record(const Command& c, const Recording& r, VkPipeline& bound) {
  const DeviceApi& api = machine_->api;
  switch (c.kind) {
    case Command::Kind::copy: {
      const VkBufferCopy region{c.from.offset, c.to.offset, c.bytes};
      return api.vkCmdCopyBuffer(r.buffer, c.from.buffer, c.to.buffer, 1, &region);
    }
    case Command::Kind::fill:
      return api.vkCmdFillBuffer(r.buffer, c.to.buffer, c.to.offset, c.bytes,
                                 static_cast<std::uint32_t>(c.groups_or_word));
    case Command::Kind::time: {
      const auto query = static_cast<std::uint32_t>(c.first_word);
      api.vkCmdResetQueryPool(r.buffer, c.queries, query, 1);
      return api.vkCmdWriteTimestamp(r.buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, c.queries,
                                     query);
    }
    case Command::Kind::dispatch:
      if (bound != c.pipeline)
        api.vkCmdBindPipeline(r.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, c.pipeline);
      bound = c.pipeline;
      if (c.words > 0)
        api.vkCmdPushConstants(r.buffer, c.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               static_cast<std::uint32_t>(c.words * 8),
                               r.words.data() + c.first_word);
      return api.vkCmdDispatch(r.buffer, static_cast<std::uint32_t>(c.groups_or_word), 1, 1);
  }
}

void Work::record(const Recording& r) {
  const DeviceApi& api = machine_->api;
  const VkCommandBuffer b = r.buffer;
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  require(api.vkBeginCommandBuffer(b, &begin), "recording work");
  constexpr VkPipelineStageFlags stages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                          reads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
  const auto barrier = [&](VkPipelineStageFlags after, VkAccessFlags access) {
    VkMemoryBarrier m{};
    m.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    m.srcAccessMask = writes;
    m.dstAccessMask = access;
    api.vkCmdPipelineBarrier(b, stages, after, 0, 1, &m, 0, nullptr, 0, nullptr);
  };
  VkPipeline bound = VK_NULL_HANDLE;
  for (auto from = r.commands.begin(); from != r.commands.end();) {
    const auto to = std::find_if(from + 1, r.commands.end(), std::mem_fn(&Command::waits));
    if (from != r.commands.begin()) barrier(stages, reads | writes), ++barriers_;
    // Any order is correct. With validation, uses the reverse order, which exposes missing barriers
    // on devices that run commands one by one.
    for (std::ptrdiff_t i = 0; i < to - from; ++i)
      record(machine_->instance->messenger ? *(to - 1 - i) : *(from + i), r, bound);
    from = to;
  }
  // Whatever comes later sees these writes: the host, and commands of buffers submitted after this
  // one, which need no barrier at their beginning.
  barrier(stages | VK_PIPELINE_STAGE_HOST_BIT, reads | writes | VK_ACCESS_HOST_READ_BIT);
  require(api.vkEndCommandBuffer(b), "recording work");
}

}  // namespace hone::vulkan
