// Finds the pass that is at fault when a plan was refused. Runs the passes again; does not compile.
#pragma once

#include <string>
#include <vector>

#include "compile/pipeline.h"
#include "compile/source.h"

namespace hone {

// Text to append to the error message: the first pass that changes the meaning of the variant.
std::string guilty_pass(const SourceVariant&, const PassOptions&, const std::vector<Array>& inputs);

}  // namespace hone
