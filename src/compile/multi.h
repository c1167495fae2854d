// The strategy `multi`: compiles a function for every kind of device of this machine and spreads it
// over them.
#pragma once

#include "compile/options.h"
#include "compile/source.h"

namespace hone {

// Whether these options ask for a plan over several devices: multi, or auto with measuring allowed.
bool is_spread(const CompileOptions&);

// Compares a few ways to spread each variant and returns the fastest: measured, or predicted when
// options.measure is not set. For auto, returns the plan for the fastest single kind of device, on
// inputs in its memory, unless a plan over several is clearly faster, including its copies. Throws
// UserError when multi is requested and no part of the function can be moved.
Plan compile_multi(const Source&, const CompileOptions&, CompileReport&);

}  // namespace hone
