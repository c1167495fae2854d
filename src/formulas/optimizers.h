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

// first / (sqrt(second) + epsilon): what Adam subtracts, before the rate. Of corrected moments it
// is algorithm 1 of Kingma and Ba, "Adam", 2015; with the correction in the rate, the end of their
// section 2.
Value adam_change(const Moments&, double epsilon);

// The same for the sum of all squares (Duchi et al., 2011).
Value adagrad_change(Value derivative, Value sum_of_squares, double epsilon);

// The next velocity, velocity * momentum + damped, where `damped` is the derivative or a part of
// it; and the direction to go: it, or with Nesterov derivative + momentum * it (Sutskever et al.,
// 2013).
struct Velocity {
  Value next, direction;
};
Velocity next_velocity(Value velocity, Value derivative, double momentum, Value damped,
                       bool is_nesterov);

}  // namespace hone::formulas
