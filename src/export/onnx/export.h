// A Function as an ONNX model: the way back from import. The file has standard operators only, of
// opset 21 or, where it needs them, the next newer ones; no functions and no domain of its own.
#pragma once

#include <cstdint>
#include <filesystem>

#include "ir/function.h"

namespace hone {

struct OnnxExportOptions {
  // Constants of more bytes go to a file beside the model, NAME.data; 0: all of them stay inside.
  std::int64_t external_above = 1 << 20;
};

// Writes `to` and, if need be, its data file. Every op becomes the operator that means the same, or
// several; importing the file gives a Function that computes the same, and has the same structure
// where ONNX has the op. An index that Hone clamps or drops is treated so in the file too; where
// the function checks its indices (ops::require, as those that came from ONNX do), the file leaves
// the check to who runs it. Some operators take more dtypes here than the standard lists for them.
// Throws UserError with one line for each node that no operator stands for; then nothing is
// written.
void export_onnx(const Function&, const std::filesystem::path& to, const OnnxExportOptions& = {});

}  // namespace hone
