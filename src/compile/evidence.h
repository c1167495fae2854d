// Makes a test case for a refused plan: the smallest one found that still shows the fault.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "compile/options.h"
#include "verify/reduce/case.h"

namespace hone {

// The fault when the case is compiled with these options: results that differ from the reference's,
// or an exception that is not a refusal. Empty: no fault. Verifies and caches nothing.
std::string fault_of(const Case&, const CompileOptions&);

struct Evidence {
  Case found;
  std::string fault;  // empty: made-up inputs do not show it, and `found` is the given function
};

// Tries the function at each of the sizes, on ordinary and extreme numbers, and reduces it within
// the time limit.
Evidence evidence_of(const Function&, const std::vector<Sizing>&, const CompileOptions&,
                     std::chrono::seconds most = std::chrono::seconds(60));
Evidence reduced_evidence(Case, const CompileOptions&, std::chrono::seconds most);

}  // namespace hone
