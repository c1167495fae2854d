// Runs bound steps on a stream, one after another, looking at the caller's wishes between them.
// Knows no inputs and outputs: it is given addresses.
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

#include "base/error.h"
#include "plan/plan.h"
#include "runtime/bound.h"
#include "runtime/device.h"

namespace hone {

// A run that ended before its last step because its caller asked for that.
struct Cancelled : UserError {
  enum class Why : std::uint8_t { stopped, deadline };
  Cancelled(Why w, std::string_view text) : UserError(text), why(w) {}
  Why why;
};

struct StepEvent {
  const Step& step;
  const GroupRecord* group;  // null: belongs to none
  std::chrono::steady_clock::time_point start, end;
};

struct RunCounters {
  std::int64_t runs = 0, launches = 0, library_calls = 0, host_calls = 0, copies = 0;
  std::int64_t binds = 0;          // sets of sizes that were evaluated
  std::int64_t staged_copies = 0;  // of inputs and outputs that are not aligned
};

class StepRunner {
 public:
  explicit StepRunner(Stream& stream) : stream_(stream) {}

  // Looked at between steps.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::stop_token stop;
  // Called after each step; a step is then finished before the next one starts.
  std::function<void(const StepEvent&)> trace;
  RunCounters counters;

  // Where the operands of a run lie; `placement` is another number whenever they move.
  struct Memory {
    std::function<void*(const BoundAddress&)> address;
    std::uint64_t placement = 1;
  };
  // Binds what follows a size that data decides as soon as it is known, unless it was that size the
  // last time.
  void run(const Executable&, const Variant&, BoundProgram&, const Memory&);
  // Values of Executable::symbols() at the end of the last run.
  std::span<const std::int64_t> values() const { return last_->values; }

 private:
  std::uint32_t step(const BoundProgram&, const BoundOp&, void* const* operands,
                     std::uint32_t next);
  void place(BoundProgram&, const Memory&) const;
  BoundProgram& measured(const Executable&, const Variant&, BoundProgram&, const BoundOp&);
  void check_stop(const Variant&, const Step&) const;

  Stream& stream_;
  // A program and its next op.
  struct Frame {
    BoundProgram* program;
    std::uint32_t at;
  };
  std::vector<Frame> frames_;
  const BoundProgram* last_ = nullptr;
};

}  // namespace hone
