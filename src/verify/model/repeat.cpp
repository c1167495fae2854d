#include "verify/model/repeat.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>

#include "base/fault.h"
#include "runtime/host_memory.h"
#include "runtime/ports.h"

namespace hone {

namespace {

// So small that sets of sizes are dropped and made again between runs; or so large that none is.
constexpr std::size_t few_sizes = 2, all_sizes = 64;

// A NaN in every float dtype, and an index beyond every axis.
constexpr int poison = 0xff;

// Host memory of one session, whose contents before a run are a pattern.
class PoisonedMemory : public Allocator {
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

 protected:
  std::shared_ptr<Device> device_;
  std::vector<std::pair<DeviceMemory, std::size_t>> live_;
};

// The same, but freed memory stays unreadable as long as this object lives.
class ClosedMemory final : public PoisonedMemory {
 public:
  using PoisonedMemory::PoisonedMemory;
  ~ClosedMemory() override {
    for (const Block& b : blocks_) {
      if (b.is_closed) open_pages(b.begin, b.bytes);
      device_->free(b.all, b.all_bytes);
    }
  }

  DeviceMemory alloc(std::size_t bytes) override {
    const std::size_t pages = (bytes + fence_page_bytes - 1) / fence_page_bytes * fence_page_bytes,
                      all_bytes = pages + fence_page_bytes;
    blocks_.reserve(blocks_.size() + 1);
    const DeviceMemory all = device_->alloc(all_bytes);
    std::byte* address = device_->host_address(all);
    const std::size_t before =
        (fence_page_bytes - reinterpret_cast<std::uintptr_t>(address) % fence_page_bytes) %
        fence_page_bytes;
    const DeviceMemory at = all + static_cast<std::int64_t>(before);
    blocks_.push_back({all, at, all_bytes, pages, address + before, false});
    live_.push_back({at, bytes});
    return at;
  }
  void free(DeviceMemory at, std::size_t) noexcept override {
    std::erase_if(live_, [&](const auto& m) { return m.first == at; });
    const auto block = std::ranges::find(blocks_, at, &Block::at);
    close_pages(block->begin, block->bytes);
    block->is_closed = true;
  }

 private:
  struct Block {
    DeviceMemory all, at;
    std::size_t all_bytes, bytes;
    std::byte* begin;
    bool is_closed;
  };
  std::vector<Block> blocks_;
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

// NaN has many bit patterns: which of two an addition keeps depends on the order of its operands,
// which may differ between two places of a kernel that add the same numbers.
bool are_same(const Array& a, const Array& b) {
  if (std::ranges::equal(a.bytes(), b.bytes())) return true;
  if (!is_float(a.dtype()) || a.dims() != b.dims()) return false;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = a.real(i), y = b.real(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x != y || std::signbit(x) != std::signbit(y)) return false;
  }
  return true;
}

std::string sizes_text(const Repeat& r) {
  std::string sizes;
  for (const Array& a : r.inputs) sizes += cat(sizes.empty() ? "" : ", ", a.type());
  return sizes;
}

// One session, and its runs on copies of the inputs.
class Repeats {
 public:
  Repeats(const std::shared_ptr<const Executable>& executable, SessionOptions options,
          std::shared_ptr<PoisonedMemory> memory)
      : memory_(std::move(memory)) {
    options.allocator = memory_;
    session_ = std::make_unique<Session>(executable, std::move(options));
  }

  // `where`: of the run, for the error.
  void run(const Repeat& r, std::string_view where) {
    std::vector<Array> inputs;
    for (const Array& a : r.inputs) inputs.push_back(moved(a));
    if (memory_) memory_->fill();
    FaultScope faults;
    const std::vector<Array> got = session_->run(inputs);
    if (!faults.what().empty())
      throw UserError("refused: a kernel fails in a repeated run (", sizes_text(r), "), ", where,
                      ": ", faults.what());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!are_same(got[i], r.results[i])) differs(r, i, where);
    // The next run's results may use the same memory: elements that it does not write must show.
    for (const Array& a : got) {
      const std::span<std::byte> memory = as_input(a).memory;
      std::ranges::fill(memory, std::byte{poison});
    }
  }

 private:
  static void differs(const Repeat& r, std::size_t result, std::string_view where) {
    throw UserError("refused: result ", result, " changes from run to run on the same inputs (",
                    sizes_text(r), "), here ", where,
                    ": it depends on what ran before, on what its memory held or where it lay, on "
                    "the number of threads, or on what another session runs");
  }

  std::shared_ptr<PoisonedMemory> memory_;
  std::unique_ptr<Session> session_;
};

void check_threads(const std::shared_ptr<const Executable>& executable,
                   const std::vector<Repeat>& all, const Repeat& least, const Repeat& most,
                   int threads) {
  const auto pool = std::make_shared<EveryThread>(threads);
  const std::shared_ptr<Device>& first = executable->devices()[0];
  Repeats repeats(executable, {.pool = pool, .most_sizes = few_sizes},
                  first->shares_host_memory() ? std::make_shared<PoisonedMemory>(first) : nullptr);
  const std::string where = cat("with ", threads, threads == 1 ? " thread" : " threads");
  if (threads == 1) {
    repeats.run(least, where);
    for (std::size_t i = all.size(); i-- > 0;) repeats.run(all[i], where);
    if (&least == &all.front()) return;
  } else {
    if (&most != &least) repeats.run(most, where);
    // Special numbers must be rounded in the same way on each thread.
    pool->use_every_thread(true);
    repeats.run(all.back(), where);
    pool->use_every_thread(false);
  }
  repeats.run(least, where);
}

// What is kept for the smaller sizes must not refer to memory that the larger ones replaced.
void check_kept(const std::shared_ptr<const Executable>& executable, const Repeat& least,
                const Repeat& most) {
  Repeats repeats(executable, {.threads = 1, .most_sizes = all_sizes},
                  std::make_shared<ClosedMemory>(executable->devices()[0]));
  for (int round = 0; round < 2; ++round) {
    repeats.run(least, "between runs of other sizes");
    repeats.run(most, "between runs of other sizes");
  }
  repeats.run(least, "between runs of other sizes");
}

// One session runs between the steps of another; then both run at the same time.
void check_two_sessions(const std::shared_ptr<const Executable>& executable, const Repeat& a,
                        const Repeat& b) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds most_time{20};
  constexpr int most_runs = 8;
  constexpr std::string_view where = "while another session runs";
  const std::shared_ptr<Device>& device = executable->devices()[0];
  const auto memory = [&] { return std::make_shared<PoisonedMemory>(device); };
  Repeats second(executable, {.threads = 1}, memory());
  int runs = 0;
  const Clock::time_point start = Clock::now();
  const auto run_second = [&](const StepEvent&) {
    if (runs >= most_runs || (runs > 0 && Clock::now() - start > most_time)) return;
    ++runs;
    second.run(b, where);
  };
  {
    Repeats first(executable, {.threads = 1, .trace = run_second}, memory());
    first.run(a, where);
  }
  Repeats first(executable, {.threads = 1}, memory());
  const Clock::time_point end = Clock::now() + most_time / 10;
  std::exception_ptr error;
  const auto run_some = [&](Repeats& session, const Repeat& r) {
    for (int run = 0; run == 0 || (run < most_runs && Clock::now() < end); ++run)
      session.run(r, where);
  };
  std::thread other([&] {
    try {
      run_some(second, b);
    } catch (...) {
      error = std::current_exception();
    }
  });
  try {
    run_some(first, a);
  } catch (...) {
    error = std::current_exception();
  }
  other.join();
  if (error) std::rethrow_exception(error);
}

bool have_one_size(const Repeat& a, const Repeat& b) {
  return std::ranges::equal(a.inputs, b.inputs, {}, &Array::dims, &Array::dims);
}

}  // namespace

std::vector<int> check_repeats(const std::shared_ptr<const Executable>& executable,
                               const std::vector<Repeat>& all, std::chrono::nanoseconds most_time) {
  if (all.empty()) return {};
  const auto start = std::chrono::steady_clock::now();
  std::vector<int> done;
  // The cost of a run grows with its bytes.
  const auto bytes = [](const Repeat& r) { return bytes_of(r.inputs) + bytes_of(r.results); };
  const auto [least, most] = std::ranges::minmax_element(all, {}, bytes);
  for (const int threads : repeat_threads) {
    if (std::chrono::steady_clock::now() - start > most_time &&
        threads != std::ranges::max(repeat_threads))
      continue;
    check_threads(executable, all, *least, *most, threads);
    done.push_back(threads);
  }
  if (!std::ranges::all_of(executable->devices(), &Device::shares_host_memory)) return done;
  if (!have_one_size(*least, *most)) check_kept(executable, *least, *most);
  // With numbers of another kind, if there are any of the same sizes.
  const auto other = std::ranges::find_if(
      all, [&](const Repeat& r) { return &r != &all.back() && have_one_size(r, all.back()); });
  check_two_sessions(executable, other == all.end() ? *least : *other, all.back());
  return done;
}

}  // namespace hone
