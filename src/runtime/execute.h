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

  // `addresses` are those of the program, in its order.
  void run(const BoundProgram&, const Variant&, std::span<void* const> addresses);

 private:
  std::uint32_t step(const BoundProgram&, const BoundOp&, void* const* operands,
                     std::uint32_t next);
  void check_stop(const Variant&, const Step&) const;

  Stream& stream_;
};

}  // namespace hone
