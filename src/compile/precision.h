// Converts a source to another precision, and measures how far its plans are from the given model.
#pragma once

#include <string>
#include <vector>

#include "compile/options.h"
#include "compile/source.h"
#include "pass/precision.h"

namespace hone {

Source at_precision(const Source&, Precision);

// Error of one float result over all sets of inputs, against the given model.
struct PrecisionError {
  std::string name;
  double largest_error = 0, largest_value = 0;  // absolute, over finite elements
  // Elements that are infinite or NaN where the given model, in its own types, has numbers.
  std::int64_t overflowed = 0;
  std::string other_sizes = {};  // "f32[3] instead of f32[4]": what was computed decides a size
};

struct PrecisionReport {
  std::vector<PrecisionError> results;  // floats that are not always 0
  int sets = 0;                         // of inputs
  std::string overflow = {};            // the first result that overflows, and where that begins
};

// Runs a plan of `narrow` on every sample of `given`, or on made-up inputs of different sizes for a
// variant without one. The model as given is evaluated by the reference in wide mode until that has
// taken `most_gmac` multiply-adds (10^9), and is compiled for the rest.
PrecisionReport precision_report(const Source& given, const Source& narrow, const Plan&,
                                 const CompileOptions&, double most_gmac = 20);

}  // namespace hone
