// What a refusal leaves behind for who has to find the mistake: a case that shows it, as small as
// it could be made.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "compile/options.h"
#include "verify/case.h"

namespace hone {

// What is wrong with what these options make of the case: results that differ from the reference's,
// or an exception that is no refusal. Empty: nothing. Verifies and caches nothing.
std::string fault_of(const Case&, const CompileOptions&);

struct Evidence {
  Case found;
  std::string fault;  // empty: made-up inputs do not show it, and `found` is what was given
};

// The function at each of the sizes, on ordinary and on extreme numbers, reduced for so long.
Evidence evidence_of(const Function&, const std::vector<Sizing>&, const CompileOptions&,
                     std::chrono::seconds most = std::chrono::seconds(60));
Evidence reduced_evidence(Case, const CompileOptions&, std::chrono::seconds most);

}  // namespace hone
