// A random function and the runs in which it is tried, all of it decided by one seed.
#pragma once

#include <string_view>
#include <vector>

#include "verify/case.h"

namespace hone::fuzz {

struct Generated : Case {
  std::vector<std::string_view> operators = {};  // of ONNX, those it was made of
};

// 2 to 60 nodes, or as many as are asked for.
Generated generate(std::uint64_t seed, int nodes = 0);
// One recipe of motifs() on parameters, and a little around it.
Generated generate_motif(std::string_view name, std::uint64_t seed);

}  // namespace hone::fuzz
