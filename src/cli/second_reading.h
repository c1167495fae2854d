// A model read a second time, by other code: what plan and reference share, the import, is checked
// against it.
#pragma once

#include <filesystem>

#include "import/import.h"
#include "verify/onnx/check.h"

namespace hone::cli {

// Nothing is judged where the model is too much work for the reference, or needs inputs that cannot
// be made up.
onnx::ReadingCheck read_again(const std::filesystem::path&, const ImportOptions&);

}  // namespace hone::cli
