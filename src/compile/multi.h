// The strategy `multi`: a function compiled for every kind of device here, and spread over them.
#pragma once

#include "compile/options.h"
#include "compile/source.h"

namespace hone {

// Whether these options ask for a plan over several devices: multi, and auto where it may time.
bool is_spread(const CompileOptions&);

// Of a few ways to spread each variant the fastest: measured, or predicted when options.measure is
// not set. As auto, the plan for the kind of device that is fastest alone, on inputs that lie
// there, unless one over several is clearly faster, its copies included. Throws UserError when
// multi is asked for and nothing of the function can be moved.
Plan compile_multi(const Source&, const CompileOptions&, CompileReport&);

}  // namespace hone
