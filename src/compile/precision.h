// A source in another precision, and how far plans made of it are from the model as it was given.
#pragma once

#include <string>
#include <vector>

#include "compile/source.h"
#include "pass/precision.h"

namespace hone {

Source at_precision(const Source&, Precision);

// One result over the sample inputs, against the given model in the reference's wide mode.
struct PrecisionError {
  std::string name;
  double largest_error = 0, largest_value = 0;  // absolute, over finite elements
};
// Empty when one run of the given model is more than `most_gmac` multiply-adds: the reference
// would take too long. Integers and bools are left out.
std::vector<PrecisionError> precision_errors(const Source& given, const Plan&, int threads,
                                             double most_gmac = 20);

}  // namespace hone
