// The compiler for one backend. The caller has checked the options.
#pragma once

#include "compile/options.h"
#include "compile/source.h"

namespace hone {

Plan compile_single(const Source&, const CompileOptions&, CompileReport&);

}  // namespace hone
