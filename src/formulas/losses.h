// Losses as formulas over values, for every front end. Not operations: each returns the nodes it
// names.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace hone::formulas {

// Of each target: its loss, already weighted, and its weight. Both have the shape of the targets.
struct Weighed {
  Value loss, weight;
};

struct Classes {
  Value weight = {};                         // [classes]; empty: 1
  std::optional<std::int64_t> ignored = {};  // a target that has loss and weight 0
  double smoothing = 0;  // the share of the mean over all classes (Szegedy et al., 2016, section 7)
};

// -log_p[target] for log_p [n, classes, ...] and targets (integers) [n, ...]: no target is checked
// to be a class.
Weighed negative_log_likelihood(Value log_p, Value target, const Classes&);

Value mean_of(const Weighed&);  // sum of losses / sum of weights
Value sum_of(Value loss);

// |x - target|^2, |x - target|, and -(t log s(x) + (1 - t) log(1 - s(x))) for the sigmoid s, in a
// form that cannot overflow: max(x, 0) - x t + log(1 + exp(-|x|)). Equal shapes.
Value squared_error(Value x, Value target);
Value absolute_error(Value x, Value target);
Value binary_cross_entropy(Value logits, Value target);

}  // namespace hone::formulas
