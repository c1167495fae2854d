// Models from files to Functions. Reading and checking only: nothing here compiles or runs.
#pragma once

#include <filesystem>

#include "import/onnx/options.h"

namespace hone {

// Throws one UserError that lists every node that is not supported, with index, name, domain,
// operator, opset and the nearest operator that is.
Imported import_onnx(const std::filesystem::path&, const ImportOptions& = {});

}  // namespace hone
