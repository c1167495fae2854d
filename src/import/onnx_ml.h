// The operators of domain ai.onnx.ml.
#pragma once

#include "import/onnx_context.h"

namespace hone::onnx {

std::span<const ImportEntry> ml_imports();

}  // namespace hone::onnx
