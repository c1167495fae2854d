// What is to blame when a plan was refused: a node, a pass.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/options.h"
#include "compile/source.h"
#include "verify/difference.h"

namespace hone {

// The first node whose compiled value differs, of the variant that serves the inputs. Nothing when
// every value agrees within its rounding. Throws UserError when no variant serves them.
std::optional<Difference> first_difference(const Source&, const CompileOptions&,
                                           const std::vector<Array>& inputs);

// A text for the end of the refusal: the first pass that changes what the variant means.
std::string guilty_pass(const SourceVariant&, const PassOptions&, const std::vector<Array>& inputs);

}  // namespace hone
