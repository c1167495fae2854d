// Imports a model for the inputs that a command was given, where the model leaves sizes open.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "import/import.h"

namespace hone::cli {

// What a command knows of the inputs: --input as it was typed, and the sets beside the model.
struct KnownInputs {
  std::vector<std::string> specs = {};
  std::vector<std::vector<Array>> sets = {};
};

struct FittedImport {
  Imported imported;
  std::vector<std::string> notes = {};  // what was decided by the inputs, a line for each
  ImportOptions options = {};           // with which it was imported
};

// Imports with `options`, and again where the inputs do not fit what that serves: a size that is 0
// in an input gets a range from 0 (the size 0 alone where the model cannot be read for such a
// range); of two sizes that must be equal and differ, the one that is 1 becomes the number 1, so
// that it broadcasts. A model that is refused because data decides a shape is read for what small
// integer inputs hold; inputs without a rank get that of what is given for them. Ranges that
// `options` states stay.
FittedImport import_fitting(const std::filesystem::path&, const ImportOptions& options,
                            const KnownInputs&);

}  // namespace hone::cli
