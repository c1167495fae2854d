// Finds the first node whose compiled value differs from the reference, in the branches that the
// inputs take, too. A search, not a check: it compiles the function with inner values as results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "ref/compare.h"

namespace hone {

struct Difference {
  std::string where;  // operation and origins
  Comparison comparison;
};

// Nothing when every value agrees within its rounding (promise 1 of the design).
std::optional<Difference> first_difference(const Source&, const CompileOptions&,
                                           const std::vector<Array>& inputs);

}  // namespace hone
