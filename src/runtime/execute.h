// Runs bound steps on the streams of an executable's devices, and checks for a stop request or a
// deadline between them. Does not know inputs and outputs, only places in memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "runtime/bound.h"
#include "runtime/cancelled.h"
#include "runtime/device.h"

namespace hone {

struct StepEvent {
  const Step& step;
  const GroupRecord* group;  // null: the step belongs to no group
  std::chrono::steady_clock::time_point start, end;
  std::optional<double> device_ms;  // time of the work alone, where the device measures it
};

struct RunCounters {
  std::int64_t runs = 0, launches = 0, library_calls = 0, host_calls = 0, copies = 0;
  std::int64_t binds = 0;          // sets of sizes that were evaluated
  std::int64_t replays = 0;        // runs that replayed a recording
  std::int64_t staged_copies = 0;  // of inputs and outputs that are not used in place
  // Bytes copied between the host's memory and that of devices: inputs, outputs, and values that
  // the host needs for decisions.
  std::int64_t uploaded_bytes = 0, downloaded_bytes = 0;
  // Of all runs, until all steps were given to the devices; waiting for the devices is not counted.
  std::chrono::nanoseconds submitting{};
};

// One stream for each stream of an executable, in the same order.
class StreamSet {
 public:
  using Allocators = std::vector<std::shared_ptr<Allocator>>;
  // Scratch comes from the device's allocator in the list; if it is null or missing, from the
  // device itself. The caller's stream, if there is one, is the first.
  StreamSet(const Executable&, const std::shared_ptr<ThreadPool>&, const Allocators& = {},
            std::shared_ptr<Stream> callers = nullptr);

  Stream& operator[](std::size_t i) { return *streams_[i]; }
  std::size_t size() const { return streams_.size(); }
  // Reserves what the program's steps need.
  void reserve_scratch(const BoundProgram&);
  // Waits for all streams; throws the error of the first that failed.
  void synchronize();
  // Later work of the others starts after what the first has now; and the other way around.
  void fork();
  void join();

 private:
  const Executable& executable_;
  Event& event_of(std::size_t stream);
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;  // made at first use
};

class StepRunner {
 public:
  // Streams and executable outlive it.
  StepRunner(const Executable& executable, StreamSet& streams)
      : executable_(executable), streams_(streams) {}

  // Checked between steps, up to the first that updates a state.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::stop_token stop;
  // Called after each step. If set, every step is finished before the next one starts.
  std::function<void(const StepEvent&)> trace;
  RunCounters counters;

  // Where the operands of a run lie; `placement` changes whenever they move.
  struct Memory {
    std::function<DeviceMemory(const BoundAddress&)> address;
    std::uint64_t placement = 1;
  };
  // Steps after a measured size are bound as soon as the size is known, unless its value is that of
  // the last run. All work is finished when this returns or throws.
  void run(const Variant&, BoundProgram&, const Memory&);
  // Returns when all work is submitted; if it throws, all is finished.
  void submit(const Variant&, BoundProgram&, const Memory&);
  // Of a run that threw: whether work that was submitted before failed, too.
  bool has_lost_error() const { return has_lost_error_; }
  // Whether the last run reached a step that updates a state.
  bool has_updated() const { return has_updated_; }
  // Values of LoadedEntry::symbols at the end of the last run.
  std::span<const std::int64_t> values() const { return last_->values; }

 private:
  void run_steps(const Variant&, BoundProgram&, const Memory&);
  std::uint32_t step(const BoundProgram&, std::uint32_t at);
  // Whether the whole program was executed by replaying a recording.
  bool replayed(BoundProgram&, const Memory&);
  std::unique_ptr<Recording> recorded(BoundProgram&);
  void transfer(const BoundProgram&, const BoundOp&);
  void place(BoundProgram&, const Memory&) const;
  BoundProgram& measured(const Variant&, BoundProgram&, std::uint32_t at);
  std::int64_t read(const BoundProgram&, std::uint32_t at, std::uint32_t operand);
  void fetch(const BoundProgram&, std::uint32_t at);
  Event& event(const BoundOp&);
  std::uint32_t traced(const Variant&, const BoundProgram&, std::uint32_t at);
  void check_stop(const Variant&, const Step&) const;
  const Device& device_of(const BoundOp& op) const {
    return *executable_.device(executable_.stream_device(op.stream));
  }

  const Executable& executable_;
  StreamSet& streams_;
  // A program and its next op.
  struct Frame {
    BoundProgram* program;
    std::uint32_t at;
  };
  std::vector<Frame> frames_;
  const BoundProgram* last_ = nullptr;
  bool has_updated_ = false, has_lost_error_ = false;
  std::vector<std::unique_ptr<Event>> events_;  // of the variant that ran last
  const Variant* events_of_ = nullptr;
  // Events before and after the traced step, for each stream.
  struct Around {
    std::unique_ptr<Event> before, after;
  };
  std::vector<Around> around_;
  // Operands [fetched_from_, fetched_to_) of a program, copied to the host together.
  const BoundProgram* fetched_of_ = nullptr;
  std::uint32_t fetched_from_ = 0, fetched_to_ = 0;
  std::vector<std::int64_t> fetched_;
  std::vector<std::int64_t> found_;  // measured sizes
};

}  // namespace hone
