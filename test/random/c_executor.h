// Runs functions as plain C: the output of `hone aot`, compiled by gcc at -O1.
#pragma once

#include "test/random/executors.h"

namespace hone::fuzz {

// The sizes of each input are fixed first: each becomes a separate program, and one call of gcc
// compiles them all.
std::vector<Arrays> run_as_c(const Function&, const std::vector<Arrays>& inputs);

}  // namespace hone::fuzz
