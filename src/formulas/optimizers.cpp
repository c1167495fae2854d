#include "formulas/optimizers.h"

#include "ops/common.h"

namespace hone::formulas {

Moments next_moments(const Moments& m, Value d, double beta1, double beta2) {
  return {m.first * beta1 + d * (1 - beta1), m.second * beta2 + d * d * (1 - beta2)};
}

Value bias_correction(Value step, double beta) {
  return 1.0 - ops::pow(constant_like(step, beta), step);
}

Value adam_change(const Moments& m, double epsilon) {
  return m.first / (ops::sqrt(m.second) + epsilon);
}

Value adagrad_change(Value derivative, Value sum_of_squares, double epsilon) {
  return derivative / (ops::sqrt(sum_of_squares) + epsilon);
}

Velocity next_velocity(Value velocity, Value derivative, double momentum, Value damped,
                       bool is_nesterov) {
  const Value next = velocity * momentum + damped;
  return {next, is_nesterov ? derivative + next * momentum : next};
}

}  // namespace hone::formulas
