// What one caller needs to run an executable: arena, thread pool, bound inputs and outputs. Runs
// one call at a time; several sessions may share one executable.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "runtime/memory_report.h"
#include "runtime/ports.h"
#include "type/array.h"

namespace hone {

struct SessionOptions {
  // Null: a pool of `threads` threads of its own; 0 threads asks default_thread_count().
  std::shared_ptr<ThreadPool> pool = nullptr;
  int threads = 0;
  std::vector<int> affinity = {};
  // Of memory of the executable's first device; null: the device itself.
  std::shared_ptr<Allocator> allocator = nullptr;
  // Bytes of peak(); -1: default_memory_limit(), which also holds with the results that run()
  // allocates, unless more is given.
  std::int64_t max_memory = -1;
  std::function<void(const StepEvent&)> trace = nullptr;
  std::size_t most_sizes = 8;  // sets of sizes kept ready
};

class Session {
 public:
  explicit Session(std::shared_ptr<const Executable>, SessionOptions = {});
  ~Session();  // waits for submit()
  // Of what was moved from, nothing but assignment and destruction is allowed. Not copied: a
  // session is the state of one caller; open another one for the same executable.
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Executable& executable() const;

  // Caller's memory for input or output i, used by every run until another is bound; it must live
  // that long. Memory at a multiple of the device's alignment is used in place by a device that
  // shares the host's memory; other memory is copied by each run. Inputs and outputs must not
  // overlap. A result that overwrites a donated parameter lies where that parameter lies: its
  // memory is empty or the parameter's. Throws UserError when the dtype, the rank, a size that the
  // plan fixes or the length of the memory is wrong; what was bound before then stays bound.
  void bind_input(std::size_t i, const TensorRef&);
  void bind_output(std::size_t i, const TensorRef&);
  // Sizes of every output for the inputs bound now. Where data decides a size, it is the largest
  // that it can be, and the bound memory, of any dims, must have room for that much; what a run
  // writes lies dense at the start of it.
  std::vector<std::vector<std::int64_t>> output_dims();
  // The memory that each of them needs. Where data decides several sizes, that can be less than
  // output_dims() come to; it is bound as elements in a row then.
  std::vector<std::size_t> output_bytes();
  // Sizes of the outputs of the last run.
  std::vector<std::vector<std::int64_t>> result_dims();
  // For the inputs bound now; makes the session ready for them, but takes no arena yet.
  MemoryReport memory();
  // The plan's variant that serves the inputs bound now.
  std::uint32_t variant();

  // A run allocates nothing when its sizes are among the last few, and those that data decides are
  // as in the run before.
  void run();
  void run(std::span<const TensorRef> inputs, std::span<const TensorRef> outputs);
  // Allocates the outputs. A donated input is left as it is.
  std::vector<Array> run(std::span<const Array> inputs);

  // run() for a caller whose next run takes the same inputs, or who needs few of the results: an
  // input that a device has a copy of is copied only when it was bound since, and results stay
  // there until fetch() copies those of the last run to the bound outputs. What a run writes to a
  // copied donated input is what the next one reads. Throws UserError as run() does; fetch() also
  // when nothing ran at the sizes that are bound.
  void compute();
  void fetch();

  // run() in another thread. Until it is finished every other call but poll() and wait() is
  // refused.
  void submit();
  bool poll() const;  // finished?
  void wait();        // rethrows what the run threw

  // Looked at between steps.
  void set_deadline(std::chrono::steady_clock::time_point);
  void clear_deadline();
  void set_stop_token(std::stop_token);

  // Not while a run is under way.
  const RunCounters& counters() const;
  // Gives the arena and everything kept for sizes back.
  void trim();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hone
