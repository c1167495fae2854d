// A model read a second time, by other code: what plan and reference share, the import, is checked
// against it.
#pragma once

#include <filesystem>

#include "compile/source.h"
#include "import/import.h"
#include "verify/onnx/check.h"

namespace hone::cli {

// Nothing is judged where the model is too much work for the reference, or needs inputs that cannot
// be made up.
// `source` is the model as it was read at first.
onnx::ReadingCheck read_again(const std::filesystem::path&, const ImportOptions&,
                              const Source& source);

}  // namespace hone::cli
