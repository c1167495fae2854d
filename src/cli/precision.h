// How far --precision takes the results from those of the model as given.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/load.h"
#include "compile/precision.h"

namespace hone::cli {

// Compares a plan of loaded.source with loaded.given. Results that become infinite or NaN are an
// error that tells what to do, or a warning if they are accepted.
PrecisionReport checked_precision(const Loaded&, const Plan&, const ModelOptions&,
                                  bool accepts_overflow);

Json precision_json(const ModelOptions&, const PrecisionReport&);
// One line; empty without --precision.
std::string precision_text(const ModelOptions&, const PrecisionReport&);
void add_accept_overflow(Arguments&, bool& accepts);

}  // namespace hone::cli
