// What one caller needs to run an executable: arena, thread pool, bound inputs and outputs. Runs
// one call at a time; several sessions may share one executable.
#pragma once

#include <algorithm>
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
#include "type/array.h"

namespace hone {

// A dense row-major tensor in the host's memory.
struct TensorRef {
  DType dtype = DType::f32;
  std::span<const std::int64_t> dims;
  void* data = nullptr;
};

// Of one device of the executable.
struct DeviceUse {
  std::string name;
  std::size_t arena = 0, arena_lower_bound = 0, scratch = 0, staging = 0;
};

// Bytes in use during a run: what sessions of the executable share, and what this one adds. Memory
// that the caller binds is the caller's, and is not in it.
struct MemoryReport {
  SharedMemory shared;
  std::size_t arena = 0, arena_lower_bound = 0;
  std::size_t scratch = 0;  // of kernels and libraries, all threads
  // Copies of inputs and outputs whose memory is not aligned, or not read by the device.
  std::size_t staging = 0;
  std::size_t steps = 0;  // bound to the sizes that are kept ready
  // What libraries took for themselves when those steps were bound, as measured then: other
  // threads' allocations count, and what a library keeps between sessions counts in the first.
  std::size_t library = 0;
  std::vector<DeviceUse> devices;  // what arena, scratch and staging are the sums of

  std::size_t session() const { return arena + scratch + staging + steps + library; }
  std::size_t peak() const { return std::max(shared.peak(), shared.total() + session()); }
};

// "weights 12 + arena 4096 + ...": the parts that are not 0, in bytes.
std::string memory_text(const MemoryReport&);

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

// 80 % of what this process can have.
std::int64_t default_memory_limit();

class Session {
 public:
  explicit Session(std::shared_ptr<const Executable>, SessionOptions = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Executable& executable() const;

  // Caller's memory for input or output i, used by every run until another is bound. Memory at a
  // multiple of the device's alignment is used in place by a device that shares the host's memory;
  // other memory is copied by each run. Inputs and
  // outputs must not overlap. A result that overwrites a donated parameter lies where that
  // parameter lies: its data is null or that address. Throws UserError when the type is wrong.
  void bind_input(std::size_t i, const TensorRef&);
  void bind_output(std::size_t i, const TensorRef&);
  // Sizes of every output for the inputs bound now. Where data decides a size, it is the largest
  // that it can be, and the bound memory, of any dims, must have room for that much; what a run
  // writes lies dense at the start of it.
  std::vector<std::vector<std::int64_t>> output_dims();
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
