// The main entry point: compiles with every strategy, verifies each plan against the reference,
// times them interleaved, and returns the best plan with all measurements.
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

// A strategy whose plan failed verification.
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
  // Seconds for comparing candidates and strategies; runs of the reference are not included.
  double budget = 15;
  bool profile = false;  // also fill Optimized::compiled and profile
  // Above this many multiply-adds (10^9), whole-function verification is skipped, with a message.
  double most_verified_gmac = 20;
  std::function<void(const std::string&)> progress = {};  // one line at a time; may be empty
  std::function<void(const Refusal&)> on_refusal = {};    // may be empty
};

// Error of one result for one set of sample inputs, against the reference.
struct ResultError {
  std::size_t sample = 0, result = 0;
  Comparison comparison;
  double largest = 0;  // max |expected|, over finite elements
};

// What verification covered for the chosen plan.
struct Tried {
  int kernels = 0, kernels_before = 0;  // checked in this run; in earlier runs of the same compiler
  int kernels_shortly = 0;              // of both: on fewer inputs, because the time was up
  double kernels_ms = 0, model_ms = 0;
  std::vector<std::string> inputs;  // each input set of the whole model, with its sizes
  std::vector<int> threads;         // on which everything was run again, with equal bits
  std::string left_out;  // why the model was not verified; empty: it was, in this run or earlier
};

Json to_json(const Tried&);

// How the strategies were timed.
struct TimingRecord {
  std::string sizes;  // of the inputs: "batch = 4"; empty: all sizes are fixed
  int threads = 0;    // of each strategy
  int rounds = 0;     // the largest number of rounds of any strategy
  double busy = 0;    // share of the machine's processors used by other processes, 0 to 1
  // Excludes copies of inputs and outputs between the host and devices with their own memory.
  bool leaves_copies_out = false;
  int repeats = 0;  // how often timing was repeated because times contradicted the choice
};

// All lists except `assumptions` are parallel to Plan::strategies.
struct Optimized {
  Plan plan;  // Plan::strategies holds the table
  // The made-up inputs when no samples were given, one line for each input.
  std::vector<std::string> assumptions;
  // The inputs for which the table states what a run of each plan needs: the samples, or made-up.
  std::vector<std::vector<Array>> inputs;
  TimingRecord timing;
  std::vector<std::vector<double>> times;        // by round; empty when not timed
  std::vector<std::vector<ResultError>> errors;  // empty when not verified
  std::vector<CompileReport> compiled;           // when a profile was asked for
  std::optional<Profile> profile;                // of the plan, on the first sample
  Tried tried;
  // Why no strategy was run on whole inputs: made-up ones were refused. Each kernel was verified;
  // nothing was timed as a whole. Empty: the model was run.
  std::string not_run;
};

// A failed strategy is in the table with the reason. Throws UserError when all fail.
Optimized optimize(const Source&, const OptimizeRequest&);

}  // namespace hone
