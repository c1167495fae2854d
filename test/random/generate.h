// A random function and the runs in which it is tried, all of it decided by one seed.
#pragma once

#include <string_view>
#include <vector>

#include "test/random/inputs.h"

namespace hone::fuzz {

// A function, and sizes and inputs for it.
struct Case {
  Function function;
  std::vector<Run> runs;
  // Of ONNX, those it was made of, where it comes from a seed.
  std::vector<std::string_view> operators = {};
};

// 2 to 60 nodes, or as many as are asked for.
Case generate(std::uint64_t seed, int nodes = 0);
// One recipe of motifs() on parameters, and a little around it.
Case generate_motif(std::string_view name, std::uint64_t seed);

}  // namespace hone::fuzz
