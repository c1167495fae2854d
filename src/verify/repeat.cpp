#include "verify/repeat.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/host_memory.h"
#include "runtime/ports.h"

namespace hone {

namespace {

// So small that sets of sizes are dropped and made again between runs.
constexpr std::size_t most_sizes = 2;

// A NaN in every float dtype, and an index beyond every axis.
constexpr int poison = 0xff;

class PoisonedMemory final : public Allocator {
 public:
  explicit PoisonedMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  DeviceMemory alloc(std::size_t bytes) override {
    const DeviceMemory at = device_->alloc(bytes);
    live_.push_back({at, bytes});
    return at;
  }
  void free(DeviceMemory at, std::size_t bytes) noexcept override {
    std::erase_if(live_, [&](const auto& m) { return m.first == at; });
    device_->free(at, bytes);
  }
  void fill() const {
    for (const auto& [at, bytes] : live_) std::memset(device_->host_address(at), poison, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<std::pair<DeviceMemory, std::size_t>> live_;
};

// A copy with little more alignment than the element size.
Array moved(const Array& a) {
  const std::size_t bytes = a.bytes().size(), step = static_cast<std::size_t>(byte_size(a.dtype()));
  auto memory = std::make_shared<std::vector<std::byte>>(bytes + 2 * step);
  std::byte* at = memory->data() + step;
  std::ranges::copy(a.bytes(), at);
  return {a.dtype(), a.dims(), Storage(memory, {at, bytes})};
}

// A pool that can force each of its threads to compute a part of every launch. Otherwise the
// caller's thread may finish a short launch, or any launch on a busy machine, before another wakes.
class EveryThread final : public ThreadPool {
 public:
  explicit EveryThread(int threads)
      // With more threads than processors, spinning threads would block each other.
      : pool_(make_thread_pool({.threads = threads, .spin_us = 0})) {}

  void use_every_thread(bool on) { uses_every_thread_ = on; }
  int threads() const override { return pool_->threads(); }
  void run(std::int64_t chunks, Body body, void* context) override {
    if (!uses_every_thread_) return pool_->run(chunks, body, context);
    Job job{chunks, std::min<std::int64_t>(chunks, threads()), body, context, 0};
    pool_->run(
        job.parts,
        [](void* all, std::int64_t begin, std::int64_t end, int thread) {
          static_cast<Job*>(all)->run(begin, end, thread);
        },
        &job);
  }

 private:
  struct Job {
    std::int64_t chunks, parts;
    Body body;
    void* context;
    std::atomic<std::int64_t> waiting;

    // A thread that waits for the others does not take a second part.
    void run(std::int64_t begin, std::int64_t end, int thread) {
      if (end - begin == 1)
        for (++waiting; waiting < parts;) std::this_thread::yield();
      const std::int64_t first = begin * chunks / parts, last = end * chunks / parts;
      body(context, first, last, thread);
    }
  };

  std::shared_ptr<ThreadPool> pool_;
  bool uses_every_thread_ = false;
};

class Repeats {
 public:
  Repeats(const std::shared_ptr<const Executable>& executable, int threads)
      : threads_(threads), pool_(std::make_shared<EveryThread>(threads)) {
    const std::shared_ptr<Device>& first = executable->devices()[0];
    if (first->shares_host_memory()) memory_ = std::make_shared<PoisonedMemory>(first);
    session_ = std::make_unique<Session>(
        executable, SessionOptions{.pool = pool_, .allocator = memory_, .most_sizes = most_sizes});
  }

  void run(const Repeat& r, bool on_every_thread = false) {
    pool_->use_every_thread(on_every_thread);
    std::vector<Array> inputs;
    for (const Array& a : r.inputs) inputs.push_back(moved(a));
    if (memory_) memory_->fill();
    const std::vector<Array> got = session_->run(inputs);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!std::ranges::equal(got[i].bytes(), r.results[i].bytes())) differs(r, i);
    // The next run's results may use the same memory: elements that it does not write must show.
    for (const Array& a : got) {
      const std::span<std::byte> memory = as_input(a).memory;
      std::ranges::fill(memory, std::byte{poison});
    }
  }

 private:
  void differs(const Repeat& r, std::size_t result) const {
    std::string sizes;
    for (const Array& a : r.inputs) sizes += cat(sizes.empty() ? "" : ", ", a.type());
    throw UserError("refused: result ", result, " changes from run to run on the same inputs (",
                    sizes, "), here with ", threads_, threads_ == 1 ? " thread" : " threads",
                    ": it depends on what ran before, on what its memory held or where it lay, or "
                    "on the number of threads");
  }

  int threads_;
  std::shared_ptr<EveryThread> pool_;
  std::shared_ptr<PoisonedMemory> memory_;
  std::unique_ptr<Session> session_;
};

}  // namespace

void check_repeats(const std::shared_ptr<const Executable>& executable,
                   const std::vector<Repeat>& all) {
  if (all.empty()) return;
  // The cost of a run grows with its bytes.
  const auto bytes = [](const Repeat& r) { return bytes_of(r.inputs) + bytes_of(r.results); };
  const auto [least, most] = std::ranges::minmax_element(all, {}, bytes);
  for (const int threads : repeat_threads) {
    Repeats repeats(executable, threads);
    if (threads == 1) {
      repeats.run(*least);
      for (std::size_t i = all.size(); i-- > 0;) repeats.run(all[i]);
      if (least == all.begin()) continue;
    } else {
      if (most != least) repeats.run(*most);
      // Special numbers must be rounded in the same way on each thread.
      repeats.run(all.back(), true);
    }
    repeats.run(*least);
  }
}

}  // namespace hone
