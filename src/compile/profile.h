// Where the time of one plan goes: every step timed in place, run after run. Not a benchmark: each
// step is waited for, so a profiled run takes longer than others. A device with a clock says how
// long its step took; else it is what the host saw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/stats.h"
#include "ref/evaluate.h"
#include "runtime/session.h"
#include "target/target_info.h"

namespace hone {

// Steps of a variant are numbered as for_each_step meets them.
struct Profile {
  struct Step {
    Interval ms;    // of all its executions in one run together
    int calls = 0;  // in one run; of a loop: its tests and its turns
  };
  struct Event {
    std::uint32_t step = 0;
    double start_us = 0, us = 0;
  };

  std::uint32_t variant = 0;  // of the plan: the one that served the inputs
  Sizing sizes;               // of the inputs
  int runs = 0, threads = 0;
  double run_ms = 0;  // median of the profiled runs
  std::vector<Step> steps;
  std::vector<Event> timeline;  // of the fastest run, the least disturbed; at most most_events
  bool timeline_is_cut = false;
  MemoryReport memory;
  MachineRates rates;  // measured right after, with as many threads; empty without a measure

  static constexpr std::size_t most_events = 4000;
};

struct ProfileOptions {
  int runs = 40;
  double most_seconds = 4;
  int threads = 0;  // 0: the machine's
};

Profile profile(const std::shared_ptr<const Executable>&, const std::vector<Array>& inputs,
                const ProfileOptions& = {});

}  // namespace hone
