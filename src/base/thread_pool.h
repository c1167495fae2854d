// Divides the chunks of one job between threads, including the caller. Chunks are claimed from a
// counter, so a slow thread delays only the chunks it holds. Not a task queue: one job at a time.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace hone {

// A user may supply another implementation.
class ThreadPool {
 public:
  // Computes chunks [begin, end). `thread` < threads() distinguishes bodies that run concurrently.
  // Must not throw.
  using Body = void (*)(void* context, std::int64_t begin, std::int64_t end, int thread);

  virtual ~ThreadPool() = default;
  virtual int threads() const = 0;
  // Every chunk of [0, chunks) is computed by exactly one call of `body`; returns when all are done
  // and their writes are visible.
  virtual void run(std::int64_t chunks, Body body, void* context) = 0;
};

struct ThreadPoolOptions {
  int threads = 0;  // the caller's included; 0: default_thread_count()
  // Processors for the pool's own threads, one each, round-robin. The caller's thread is not moved.
  std::vector<int> affinity = {};
  int spin_us = 20;  // how long an idle thread spins before it sleeps
};

// A job started while another one runs, or from inside a body, is computed entirely by its caller.
// A pool of several threads that is used in a forked child throws UserError. Threads that cannot be
// pinned run unpinned.
std::unique_ptr<ThreadPool> make_thread_pool(const ThreadPoolOptions& = {});

// HONE_THREADS, else the processors in this process's affinity mask, limited by its control group;
// at least 1.
int default_thread_count();

// Calls f(i) for i in [0, count) on the pool's threads; the first exception is rethrown after all
// threads have stopped.
template <class F>
void parallel_for(ThreadPool& pool, std::int64_t count, F&& f) {
  struct Job {
    F& f;
    std::mutex mutex;
    std::exception_ptr error;
  } job{f, {}, {}};
  pool.run(
      count,
      [](void* context, std::int64_t begin, std::int64_t end, int) {
        Job& j = *static_cast<Job*>(context);
        try {
          for (std::int64_t i = begin; i < end; ++i) j.f(i);
        } catch (...) {
          std::lock_guard lock(j.mutex);
          if (!j.error) j.error = std::current_exception();
        }
      },
      &job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace hone
