// Finds the node that is at fault when a plan was refused. Compiles the function again, with inner
// values as results.
#pragma once

#include <optional>
#include <vector>

#include "compile/options.h"
#include "compile/source.h"
#include "verify/model/difference.h"

namespace hone {

// The first node whose compiled value differs, in the variant that serves the inputs. Empty when
// every value agrees within its rounding. Throws UserError when no variant serves them.
std::optional<Difference> first_difference(const Source&, const CompileOptions&,
                                           const std::vector<Array>& inputs);

}  // namespace hone
