// Small functions that have something to break for every fault, and inputs that no verification has
// seen.
#pragma once

#include "test/compile/models.h"

namespace hone::test {

struct SmallModel {
  std::string name;
  Source source;
  std::vector<std::vector<Array>> inputs;
};

// Compiled for every fault of a compilation.
std::vector<SmallModel> small_models();
// Compiled for few: its kernel is half a billion operations.
SmallModel large_model();

}  // namespace hone::test
