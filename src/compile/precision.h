// Converts a source to another precision, and measures how far its plans are from the given model.
#pragma once

#include <string>
#include <vector>

#include "compile/source.h"
#include "pass/precision.h"

namespace hone {

Source at_precision(const Source&, Precision);

// Error of one result over the sample inputs, against the given model in the reference's wide mode.
struct PrecisionError {
  std::string name;
  double largest_error = 0, largest_value = 0;  // absolute, over finite elements
};
// Empty when one run of the given model needs more than `most_gmac` multiply-adds (10^9): the
// reference would take too long. Skips integers and bools.
std::vector<PrecisionError> precision_errors(const Source& given, const Plan&, int threads,
                                             double most_gmac = 20);

}  // namespace hone
