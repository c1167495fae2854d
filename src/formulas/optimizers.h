// Steps of optimisers as formulas over values, for every front end. Scalars have rank 0 and the
// dtype of the parameter; moments have its shape.
#pragma once

#include "ir/graph.h"

namespace hone::formulas {

// Running means of a derivative and of its square.
struct Moments {
  Value first, second;
};
Moments next_moments(const Moments&, Value derivative, double beta1, double beta2);

// 1 - beta^step, for a step counted from 1: what a mean that began at 0 is to be divided by.
Value bias_correction(Value step, double beta);

// What Adam subtracts, before the rate: first / c1 / (sqrt(second / c2) + epsilon) for the
// corrections c1, c2 (Kingma and Ba, "Adam", 2015, algorithm 1).
Value adam_change(const Moments&, Value c1, Value c2, double epsilon);

// The next velocity, velocity * momentum + damped, where `damped` is the derivative or a part of
// it; and the direction to go: it, or with Nesterov derivative + momentum * it (Sutskever et al.,
// 2013).
struct Velocity {
  Value next, direction;
};
Velocity next_velocity(Value velocity, Value derivative, double momentum, Value damped,
                       bool is_nesterov);

}  // namespace hone::formulas
