// What one caller needs to run an entry of an executable: arena, thread pool, bound inputs and
// outputs. Runs one call at a time; several sessions may share one executable.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/device_tensor.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "runtime/memory_report.h"
#include "runtime/ports.h"
#include "runtime/state.h"
#include "type/array.h"

namespace hone {

struct SessionOptions {
  // Null: the session makes its own pool of `threads` threads; 0: default_thread_count().
  std::shared_ptr<ThreadPool> pool = nullptr;
  int threads = 0;
  std::vector<int> affinity = {};
  // For memory of the executable's first device; null: the device itself.
  std::shared_ptr<Allocator> allocator = nullptr;
  // Limit of peak() in bytes; -1: default_memory_limit(). Unless this is above the default limit,
  // peak() plus the results that run() allocates must fit the default limit.
  std::int64_t max_memory = -1;
  std::function<void(const StepEvent&)> trace = nullptr;
  std::size_t most_sizes = 8;  // sets of sizes that are kept ready
  std::string entry = {};      // the plan's function to run; empty: its only one
  // Memory of the states that the entry uses: each of their groups in one of these.
  std::vector<State> states = {};
  // The caller's, of the executable's first device: runs are submitted to it and return; null: runs
  // wait until their results are there.
  std::shared_ptr<Stream> stream = nullptr;
  // Instead of States: parameters that are states are inputs, and results that update states are
  // outputs that overwrite them. For tests and measurements.
  bool states_are_inputs = false;
};

class Session {
 public:
  explicit Session(std::shared_ptr<const Executable>, SessionOptions = {});
  ~Session();  // waits for runs
  // A moved-from session may only be assigned to or destroyed. Not copyable: a session is the state
  // of one caller; open another one for the same executable.
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Executable& executable() const;
  const PlanEntry& entry() const;
  // The caller's inputs and outputs: all parameters that are no states, and all results that update
  // none. The numbers below are places in these lists.
  std::vector<const PlanParam*> inputs() const;
  std::vector<const PlanParam*> outputs() const;
  std::size_t input_count() const;
  std::size_t output_count() const;
  // Throw UserError that lists the names.
  std::size_t input_number(std::string_view name) const;
  std::size_t output_number(std::string_view name) const;

  // Binds the caller's memory for input or output i. Every run uses it until other memory is bound;
  // it must live that long; a tensor is kept alive. A device uses dense memory of its own, or of
  // the host if it shares that, in place if it has the device's alignment; each run copies other
  // memory: on the device, or through the host if it is another device's. Inputs and outputs must
  // not overlap. A result that overwrites a donated parameter uses the parameter's memory: bind
  // that or empty memory. Throws UserError when the dtype, the rank, a size that the plan fixes,
  // the strides or the length of the memory is wrong, for memory of a device that the executable
  // does not use, and for read-only tensors that runs would write; the previous binding is then
  // kept.
  void bind_input(std::size_t i, const TensorRef&);
  void bind_output(std::size_t i, const TensorRef&);
  void bind_input(std::size_t i, const DeviceTensor&);
  void bind_output(std::size_t i, const DeviceTensor&);
  // Sizes of every output for the inputs bound now. A data-dependent size is given as its upper
  // bound. The bound memory, of any dims, must be that large; a run writes densely at its start.
  std::vector<std::vector<std::int64_t>> output_dims();
  // The memory that each output needs. With several data-dependent sizes, this can be less than the
  // product of output_dims(); then bind the output with one axis.
  std::vector<std::size_t> output_bytes();
  // Sizes of the outputs of the last run.
  std::vector<std::vector<std::int64_t>> result_dims();
  // For the inputs bound now. Binds the steps to their sizes, but does not allocate the arena yet.
  MemoryReport memory();
  // The plan's variant that serves the inputs bound now.
  std::uint32_t variant();

  // A run that uses states waits until no other run or call writes those that it reads, or uses
  // those that it writes. One that ends early after its first write leaves its States torn.
  // A run allocates nothing when its sizes are among the last few, and its measured sizes are those
  // of the previous run.
  // With SessionOptions::stream, a run returns when its work is submitted to that stream: bound
  // memory must live, and the host must not touch it, until wait(). Runs still wait by themselves
  // for values by which the host decides, and where the host copies between strided memory or
  // devices. What fails later is thrown by wait() or by whatever waits first: a binding or a run
  // that frees memory; the groups of states that it updated are then torn.
  void run();
  void run(std::span<const TensorRef> inputs, std::span<const TensorRef> outputs);
  // Allocates the outputs. Donated inputs are not modified.
  std::vector<Array> run(std::span<const Array> inputs);

  // run() without unnecessary copies, for callers who repeat runs on the same inputs or need few
  // results. An input is copied to a device only if it was bound since the last copy, and results
  // stay on the device until fetch() copies those of the last run to the bound outputs. If a run
  // writes to a copied donated input, the next run reads what it wrote. Throws UserError as run()
  // does; fetch() also when there was no run at the bound sizes.
  void compute();
  void fetch();

  // run() in another thread. Until it is finished, every call except poll() and wait() is refused.
  void submit();
  bool poll() const;  // has it returned?
  // Also for runs on the caller's stream; rethrows a run's exception.
  void wait();

  // Later runs start after the event's point; a point after all runs so far. The second event must
  // be made by the executable's first device.
  void wait_for(Event&);
  void record(Event&);

  // Checked while a run waits for states, and between steps up to the first that updates a state.
  void set_deadline(std::chrono::steady_clock::time_point);
  void clear_deadline();
  void set_stop_token(std::stop_token);

  // Must not be called during a run.
  const RunCounters& counters() const;
  // Frees the arena and everything that is kept for sets of sizes.
  void trim();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
