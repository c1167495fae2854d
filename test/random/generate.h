// A random function and its runs, all determined by one seed.
#pragma once

#include <string_view>
#include <vector>

#include "verify/reduce/case.h"

namespace hone::fuzz {

struct Generated : Case {
  std::vector<std::string_view> operators = {};  // the ONNX operators it was made of
};

// Has 2 to 60 nodes, or `nodes`. With derivatives: those of the sum of its float results for each
// float parameter are further results.
Generated generate(std::uint64_t seed, int nodes = 0, bool with_derivatives = false);
// One recipe of motifs() applied to parameters, with a few more nodes.
Generated generate_motif(std::string_view name, std::uint64_t seed);

}  // namespace hone::fuzz
