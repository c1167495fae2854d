// Compiles everything to nothing: measures the compiler itself on any machine.
#pragma once

#include <memory>

#include "codegen/target.h"

namespace hone::null {

std::unique_ptr<Target> make_target(std::string_view isa);
std::vector<Candidate> no_candidates(const GroupSpec&, const TargetInfo&);

}  // namespace hone::null
