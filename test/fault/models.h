// Small functions that give every fault something to break, and inputs that no verification has
// used.
#pragma once

#include "test/compile/models.h"

namespace hone::test {

struct SmallModel {
  std::string name;
  Source source;
  std::vector<std::vector<Array>> inputs;
};

// Compiled for every compilation fault.
std::vector<SmallModel> small_models();
// Compiled for few faults: its kernel executes half a billion operations.
SmallModel large_model();

}  // namespace hone::test
