#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/flags.h"

namespace hone {

namespace {

// A page that the kernel clears in a forked child, where the pool's threads do not exist.
class ForkMark {
 public:
  ForkMark() {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    mark_ = static_cast<std::atomic<int>*>(page);
    ::madvise(page, 4096, MADV_WIPEONFORK);
    mark_->store(1, std::memory_order_relaxed);
  }
  ~ForkMark() { ::munmap(mark_, 4096); }
  ForkMark(const ForkMark&) = delete;
  bool is_child() const { return mark_->load(std::memory_order_relaxed) == 0; }

 private:
  std::atomic<int>* mark_;
};

void pause() { __builtin_ia32_pause(); }

// Spins for up to `us` microseconds until the condition holds.
template <class Condition>
bool spin(int us, Condition holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  do {
    for (int i = 0; i < 32; ++i) {
      if (holds()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

thread_local bool inside_body = false;

void run_inline(std::int64_t chunks, ThreadPool::Body body, void* context) {
  if (chunks > 0) body(context, 0, chunks, 0);
}

class SingleThread final : public ThreadPool {
  int threads() const override { return 1; }
  void run(std::int64_t chunks, Body body, void* context) override {
    run_inline(chunks, body, context);
  }
};

// `state_` holds the job's number in the upper half and the number of unclaimed blocks in the
// lower; decrementing it claims a block. The job's fields are written only while no block is left,
// and read only by a thread that has claimed one, so a late thread never sees two jobs mixed.
class ChunkPool final : public ThreadPool {
 public:
  ChunkPool(int threads, const ThreadPoolOptions& options)
      : count_(threads), spin_us_(options.spin_us) {
    workers_ = std::make_unique<std::vector<std::thread>>();
    try {
      for (int i = 1; i < threads; ++i) {
        workers_->emplace_back([this, i] { work(i); });
        if (!options.affinity.empty())
          pin(workers_->back(),
              options.affinity[static_cast<std::size_t>(i - 1) % options.affinity.size()]);
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  ~ChunkPool() override { stop(); }

  int threads() const override { return count_; }

  void run(std::int64_t chunks, Body body, void* context) override {
    if (chunks <= 0) return;
    if (chunks == 1 || inside_body || busy_.exchange(true, std::memory_order_acquire))
      return run_inline(chunks, body, context);
    if (fork_mark_.is_child()) {
      busy_.store(false, std::memory_order_release);
      throw UserError(
          "thread pool: this process was forked after the pool was made, and the pool's threads "
          "stayed in the parent; load the plan in the child, or use one thread");
    }
    start(chunks, body, context);
    help(0);
    finish();
    busy_.store(false, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t block_mask = 0xffffffffu;
  static constexpr int blocks_per_thread = 8;  // small for balance, large against contention

  static void pin(std::thread& t, int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (processor < 0 || processor >= CPU_SETSIZE) return;
    CPU_SET(processor, &set);
    ::pthread_setaffinity_np(t.native_handle(), sizeof set, &set);
  }

  void start(std::int64_t chunks, Body body, void* context) {
    const std::int64_t most = static_cast<std::int64_t>(count_) * blocks_per_thread;
    step_ = (chunks + most - 1) / most;
    blocks_ = static_cast<std::uint32_t>((chunks + step_ - 1) / step_);
    chunks_ = chunks;
    body_ = body;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    job_ = (job_ + 1) & block_mask;
    state_.store((job_ << 32) | blocks_, std::memory_order_release);
    signal_.fetch_add(1, std::memory_order_release);
    signal_.notify_all();
  }

  // Computes blocks of the running job until none is left.
  void help(int thread) {
    std::uint64_t state = state_.load(std::memory_order_acquire);
    inside_body = true;
    while ((state & block_mask) != 0) {
      if (!state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        continue;
      const std::uint32_t blocks = blocks_;
      const std::int64_t block = blocks - static_cast<std::int64_t>(state & block_mask);
      const std::int64_t begin = block * step_;
      body_(context_, begin, std::min(begin + step_, chunks_), thread);
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks) done_.notify_one();
      state = state_.load(std::memory_order_acquire);
    }
    inside_body = false;
  }

  void finish() {
    auto all_done = [&] { return done_.load(std::memory_order_acquire) == blocks_; };
    if (spin(spin_us_, all_done)) return;
    for (std::uint32_t d; (d = done_.load(std::memory_order_acquire)) != blocks_;)
      done_.wait(d, std::memory_order_acquire);
  }

  void work(int thread) {
    for (std::uint32_t seen = 0;;) {
      auto changed = [&] { return signal_.load(std::memory_order_acquire) != seen; };
      if (!spin(spin_us_, changed)) signal_.wait(seen, std::memory_order_acquire);
      seen = signal_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_acquire)) return;
      help(thread);
    }
  }

  void stop() {
    // A forked child has no threads to join, and the handles are invalid.
    if (fork_mark_.is_child()) {
      static_cast<void>(workers_.release());
      return;
    }
    stopping_.store(true, std::memory_order_release);
    signal_.fetch_add(1, std::memory_order_release);
    signal_.notify_all();
    for (std::thread& t : *workers_) t.join();
  }

  const int count_;
  const int spin_us_;
  ForkMark fork_mark_;
  std::atomic<bool> busy_{false};

  // The running job.
  std::int64_t chunks_ = 0, step_ = 1;
  std::uint32_t blocks_ = 0;
  Body body_ = nullptr;
  void* context_ = nullptr;
  std::uint64_t job_ = 0;

  alignas(64) std::atomic<std::uint64_t> state_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> signal_{0};
  std::atomic<bool> stopping_{false};
  std::unique_ptr<std::vector<std::thread>> workers_;
};

int affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Processors available by `quota` per `period`, or 0 when there is no limit.
double quota_of(const std::string& directory) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(directory + "/cpu.max"); v2 >> quota >> period && quota != "max")
    return period > 0 ? std::atof(quota.c_str()) / period : 0;
  double used = 0;
  std::ifstream q(directory + "/cpu.cfs_quota_us"), p(directory + "/cpu.cfs_period_us");
  if (q >> used && p >> period && used > 0 && period > 0) return used / period;
  return 0;
}

// The tightest limit of the process's control groups and their ancestors.
double cgroup_quota() {
  double least = 0;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers.find("cpu") == std::string::npos) continue;
    const std::string root = "/sys/fs/cgroup" + (controllers.empty() ? "" : "/" + controllers);
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (const double q = quota_of(root + path); q > 0) least = least > 0 ? std::min(least, q) : q;
      if (path.rfind('/') == std::string::npos || path.empty()) break;
    }
  }
  return least;
}

}  // namespace

int default_thread_count() {
  if (const long set = flag_number("HONE_THREADS"); set > 0) return static_cast<int>(set);
  const int count = affinity_count();
  const double quota = cgroup_quota();
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, count) : count;
}

std::unique_ptr<ThreadPool> make_thread_pool(const ThreadPoolOptions& options) {
  if (options.threads < 0 || options.threads > 1024)
    throw UserError("thread pool: threads is ", options.threads,
                    ", expected 1 to 1024, or 0 for as many as the machine offers");
  const int threads = options.threads > 0 ? options.threads : default_thread_count();
  if (threads == 1) return std::make_unique<SingleThread>();
  return std::make_unique<ChunkPool>(threads, options);
}

}  // namespace hone
