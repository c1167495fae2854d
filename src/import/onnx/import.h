// Imports ONNX files as Functions. Reading and checking only: nothing here compiles or runs.
#pragma once

#include <filesystem>

#include "import/common/options.h"

namespace hone {

// Throws one UserError that lists every unsupported node, with index, name, domain, operator, opset
// and the most similar supported operator.
Imported import_onnx(const std::filesystem::path&, const ImportOptions& = {});

}  // namespace hone
