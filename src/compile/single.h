// The compiler for one backend, all checks of what is asked for being done.
#pragma once

#include "compile/options.h"
#include "compile/source.h"

namespace hone {

Plan compile_single(const Source&, const CompileOptions&, CompileReport&);

}  // namespace hone
