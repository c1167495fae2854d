// From a model file to a plan file, with everything that `hone optimize` checks on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "compile/optimize.h"
#include "import/import.h"
#include "optimize/expected.h"
#include "optimize/second_reading.h"
#include "optimize/states.h"

namespace hone {

struct ModelRequest {
  ImportOptions import = {};
  // Their inputs are the samples on which strategies are verified and timed, and decide open sizes
  // of the model; their outputs are compared with those of the plan. Empty: inputs are made up.
  std::vector<StoredSet> sets = {};
  OptimizeRequest optimize = {};
  AcceptedReading accepted = {};
  // Inputs that the plan keeps, with the outputs that are their next values.
  std::vector<StatePair> states = {};
};

struct OptimizedModel {
  Optimized optimized;
  SecondReading reading;
  std::int64_t bytes = 0;             // of the plan file
  std::vector<std::string> warnings;  // of the import, and nodes that no second reading judged
};

// Imports the model and reads it again with independent code; compiles it with every strategy,
// verifies and times each; compares with the stored outputs; writes the best plan, which another
// process must run with the same results before it replaces an older file. Throws UserError or
// InternalError (a defect of Hone); nothing is written then.
OptimizedModel optimize_model(const std::filesystem::path& model, const std::filesystem::path& plan,
                              const ModelRequest& = {});

}  // namespace hone
