// Imports a model with open sizes so that it fits the inputs that are known.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/import.h"
#include "plan/plan.h"

namespace hone {

// Inputs that are known before the model is read.
struct KnownInputs {
  std::vector<std::vector<Array>> sets = {};  // such as those beside the model
  // Single ones by name, read when they are needed; nullopt if there is more than one tensor.
  struct Named {
    std::string name;
    std::function<std::optional<Array>()> read;
  };
  std::vector<Named> named = {};
  // One more set, once the types are known. Empty: there is none.
  std::function<std::vector<Array>(std::span<const PlanParam>)> last = {};
};

struct FittedImport {
  Imported imported;
  std::vector<std::string> notes = {};  // what the inputs decided, one line each
  ImportOptions options = {};           // used for the import
};

// Imports with `options`, and again if the inputs do not fit the result: a size that is 0 in an
// input gets a range from 0 (or only the size 0, if the model cannot be imported for such a range);
// if two sizes must be equal and differ, the one that is 1 becomes the number 1, so that it
// broadcasts. A model that is refused because of a data-dependent shape is imported for the
// contents of small integer inputs; inputs without a rank get the rank of the given data. Ranges in
// `options` are kept.
FittedImport import_fitting(const std::filesystem::path&, const ImportOptions& options,
                            const KnownInputs&);

}  // namespace hone
