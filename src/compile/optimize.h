// The main job: compile with every strategy, verify each against the reference, time them side by
// side, and keep the best plan together with all numbers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "compile/profile.h"
#include "ref/compare.h"

namespace hone {

class Json;

// A strategy whose plan verification refused.
struct Refusal {
  std::string_view strategy, message;
  const Function& function;
  std::vector<Sizing> sizes;         // at which it was tried
  const std::vector<Array>& inputs;  // the first set
};

struct OptimizeRequest {
  CompileOptions compile = {};  // strategy, measure, budget and store are set by optimize
  std::vector<std::string> strategies = {};  // empty: all
  int rounds = 20;
  // Seconds for comparing candidates and strategies; the reference runs in time of its own.
  double budget = 15;
  bool profile = false;  // also fill Optimized::compiled and profile
  // Whole-function verification is left out, with a message, above so many multiply-adds.
  double most_verified_gmac = 20;
  std::function<void(const std::string&)> progress = {};  // one line at a time; may be empty
  std::function<void(const Refusal&)> on_refusal = {};    // may be empty
};

// One result for one set of sample inputs, against the reference.
struct ResultError {
  std::size_t sample = 0, result = 0;
  Comparison comparison;
  double largest = 0;  // max |expected|, over finite elements
};

// What verification tried of the plan that was chosen.
struct Tried {
  int kernels = 0, kernels_before = 0;  // checked now; in earlier runs of the same compiler
  double kernels_ms = 0, model_ms = 0;
  std::vector<std::string> inputs;  // each set for the whole model, with its sizes
  std::vector<int> threads;         // on which all was run again, with equal bits
  std::string left_out;             // why it was not; empty: it was, or in an earlier run
};

Json to_json(const Tried&);

// How the strategies were timed.
struct TimingRecord {
  std::string sizes;  // of the inputs: "batch = 4"; empty: all are fixed
  int threads = 0;    // of each strategy
  int rounds = 0;     // the most that a strategy was timed in
  double busy = 0;    // the share of the machine's processors that other processes took, 0 to 1
  // Of inputs and outputs between the host and devices that have their own memory.
  bool leaves_copies_out = false;
  int repeats = 0;  // how often all was timed again because the times contradicted the choice
};

// Lists but the first run parallel to Plan::strategies.
struct Optimized {
  Plan plan;  // Plan::strategies holds the table
  // What was made up when no samples were given, one line for each input.
  std::vector<std::string> assumptions;
  TimingRecord timing;
  std::vector<std::vector<double>> times;        // by round; empty when not timed
  std::vector<std::vector<ResultError>> errors;  // empty when not verified
  std::vector<CompileReport> compiled;           // when a profile was asked for
  std::optional<Profile> profile;                // of the plan, on the first sample
  Tried tried;
};

// A strategy that fails is in the table with its reason. Throws UserError when none is left.
Optimized optimize(const Source&, const OptimizeRequest&);

}  // namespace hone
