#include "verify/model/step_edge.h"

#include <algorithm>
#include <cmath>

#include "ref/evaluate.h"
#include "ref/rounding.h"
#include "verify/model/whole.h"

namespace hone {

bool differs_by_a_step(const Function& f, const Sizing& sizes, const std::vector<Array>& inputs,
                       std::size_t result, const Array& got, const Array& expected, double atol,
                       double rtol) {
  if (!is_float(got.dtype()) || got.type() != expected.type() || !has_steps(f) ||
      !is_explainable(f, sizes))
    return false;
  const std::vector<Wide> wide = evaluate_wide(f, inputs, Mode::wide),
                          stepwise = evaluate_wide(f, inputs, Mode::stepwise);
  double largest = 0;
  for (const double x : wide[result].reals) largest = std::max(largest, std::fabs(x));
  if (!std::isfinite(largest)) return false;
  Rounding rounding(f, inputs, stepwise, wide);
  return rounding.spans(result, got, atol * largest, rtol) &&
         rounding.spans(result, expected, atol * largest, rtol);
}

}  // namespace hone
