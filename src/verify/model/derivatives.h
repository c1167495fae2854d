// Judges derivatives against differences of the function that they are the derivatives of, along
// random directions, by the reference in double precision. A plan that computes a wrong derivative
// faithfully would pass every other check.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/derivative.h"
#include "ir/function.h"
#include "ref/evaluate.h"

namespace hone {

struct JudgedDerivatives {
  int agree = 0;                       // values of Derivative::dxs that differences confirm
  std::vector<std::string> undecided;  // for each other one: which, and why
};

// The derivatives are of values of the function's graph. `starts`: what parameters hold, as far as
// that is known; others are made up. A derivative is refused only if it differs from the
// differences on each of several draws of data on which two steps agree about them: at a kink, or
// where the function steps, they do not. Throws InternalError that names the x and where its y
// comes from.
JudgedDerivatives judge_derivatives(const Function&, std::span<const Derivative>, const Sizing&,
                                    const std::vector<std::optional<Array>>& starts);

}  // namespace hone
