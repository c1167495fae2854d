// Compiles functions to a Plan: passes, grouping, candidates, choice, code, verification. Does not
// know file formats.
#pragma once

#include "compile/options.h"
#include "compile/source.h"

namespace hone {

Plan compile(const Source&, const CompileOptions& = {}, CompileReport* = nullptr);

}  // namespace hone
