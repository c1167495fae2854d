// Functions as plain C: what `hone aot` writes, compiled by gcc at -O1 and called.
#pragma once

#include "test/random/executors.h"

namespace hone::fuzz {

// All inputs' sizes are fixed first: each is a program of its own, and all of them one call of gcc.
std::vector<Arrays> run_as_c(const Function&, const std::vector<Arrays>& inputs);

}  // namespace hone::fuzz
