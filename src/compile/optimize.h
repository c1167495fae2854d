// The main job: compile with every strategy, verify each against the reference, time them side by
// side, and keep the best plan together with all numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace hone {

struct OptimizeRequest {
  CompileOptions compile = {};  // strategy and measure are set by optimize
  std::vector<std::string> strategies = {"ref", "cpu", "onednn", "auto"};
  int rounds = 20;
  // Whole-function verification is left out, with a message, above so many multiply-adds.
  double most_verified_gmac = 20;
  std::function<void(const std::string&)> progress = {};  // one line at a time; may be empty
};

struct Optimized {
  Plan plan;                               // Plan::strategies holds the table
  std::vector<std::vector<double>> times;  // per strategy record, by round; empty when not timed
};

// A strategy that fails is in the table with its reason. Throws UserError when none is left.
Optimized optimize(const Source&, const OptimizeRequest&);

}  // namespace hone
