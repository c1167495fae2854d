// Compiles programs: each entry as a function, joined to one plan over the program's states.
#pragma once

#include <vector>

#include "compile/optimize.h"
#include "compile/options.h"
#include "ir/program.h"

namespace hone {

// All entries run on the device of the strategy's backend. Throws UserError for an invalid program
// and for the strategy `multi`.
Plan compile(const ProgramGraph&, const CompileOptions& = {});

struct OptimizedProgram {
  Plan plan;
  std::vector<Optimized> entries;  // in the program's order; their plans have one entry each
};

// Each entry with every strategy of one backend (CompileOptions::backend of the request; null: the
// default), verified and timed as optimize() does; states are inputs there.
OptimizedProgram optimize(const ProgramGraph&, const OptimizeRequest&);

// One plan of the program's entries. `plans[i]` was compiled from entry i.
Plan joined(const ProgramGraph&, const std::vector<Plan>& plans);

}  // namespace hone
