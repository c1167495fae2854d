// Profiles a plan: times every step in place, over several runs. Not a benchmark: it waits for each
// step, so a profiled run takes longer. Step times come from the device's clock if it has one, else
// from the host's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/stats.h"
#include "ref/evaluate.h"
#include "runtime/session.h"
#include "target/target_info.h"

namespace hone {

// Steps of a variant are numbered in the order of for_each_step.
struct Profile {
  struct Step {
    Interval ms;    // total of all its executions in one run
    int calls = 0;  // in one run; for a loop: its tests and iterations
  };
  struct Event {
    std::uint32_t step = 0;
    double start_us = 0, us = 0;
  };

  std::uint32_t variant = 0;  // of the plan: the variant that served the inputs
  Sizing sizes;               // of the inputs
  int runs = 0, threads = 0;
  double run_ms = 0;  // median of the profiled runs
  std::vector<Step> steps;
  std::vector<Event> timeline;  // of the fastest run; at most most_events
  bool timeline_is_cut = false;
  MemoryReport memory;
  MachineRates rates;  // measured right after, with as many threads; empty if not measured

  static constexpr std::size_t most_events = 4000;
};

struct ProfileOptions {
  int runs = 40;
  double most_seconds = 4;
  int threads = 0;  // 0: as many as the machine has
};

Profile profile(const std::shared_ptr<const Executable>&, const std::vector<Array>& inputs,
                const ProfileOptions& = {});

}  // namespace hone
