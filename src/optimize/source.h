// The inputs of a compilation, from what a program has: a function, an imported model, a plan.
#pragma once

#include <string>

#include "compile/source.h"
#include "import/import.h"

namespace hone {

// One function, or an imported model, ready to compile.
Source source(const Function&, std::string name = "function");
Source source(const Imported&);
// The functions that a plan keeps as text. Throws UserError when the plan was written without them.
Source source(const Plan&);

}  // namespace hone
