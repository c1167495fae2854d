// Makes up inputs that a function accepts when none are given: seeded random data whose contents
// are valid for the operations that read them, as far as a bounded search finds such values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "plan/plan.h"
#include "ref/evaluate.h"

namespace hone {

struct MadeInputs {
  std::vector<Array> arrays;  // one for each parameter
  // Assumptions about the inputs, one line for each parameter: "'ids' i64[2,3]: 0 to 1".
  std::vector<std::string> assumptions;
  // Why a run will refuse them, if no accepted inputs were found. Empty: none is known.
  std::string problem;
  bool has_chosen_reals = false;  // those of Fill::random were refused
};

// Parameters with required contents get these; others those of Fill::random, if the function
// accepts them.
MadeInputs made_inputs(const Function&, const Sizing&);
// Also makes up sizes that satisfy the guards; empty when none are found.
std::optional<MadeInputs> made_inputs_and_sizes(const Function&, const std::vector<Guard>&);
// The same for a model. Throws UserError with advice when no inputs are found.
MadeInputs made_inputs_of(std::string_view model, const Function&, const std::vector<Guard>&,
                          std::string_view instead);

}  // namespace hone
