// Finds the first node whose compiled value differs from the reference, also in the branches that
// the inputs take. A search, not a check: it compiles the function with inner values as results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "plan/plan.h"
#include "ref/compare.h"

namespace hone {

struct Difference {
  std::string where;  // operation and origins
  Comparison comparison;
};

// Compiles a function of the same parameters without verification, so that faulty code can run.
using MakePlan = std::function<Plan(const Function&)>;

// Empty when every value agrees within its rounding (promise 1 of the design).
std::optional<Difference> first_difference(const Function&, const MakePlan&,
                                           const std::vector<Array>& inputs, int threads);

}  // namespace hone
