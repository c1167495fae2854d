// Functions to a Plan: passes, grouping, candidates, their choice, code, verification. Knows no
// file format.
#pragma once

#include "compile/options.h"
#include "compile/source.h"

namespace hone {

Plan compile(const Source&, const CompileOptions& = {}, CompileReport* = nullptr);

}  // namespace hone
