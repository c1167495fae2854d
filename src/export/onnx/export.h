// Writes a Function as an ONNX model: the inverse of import. The file has standard operators only,
// of opset 21 or, if needed, a newer one; no functions and no custom domain.
#pragma once

#include <cstdint>
#include <filesystem>

#include "ir/function.h"

namespace hone {

struct OnnxExportOptions {
  // Constants of more bytes go to a file NAME.data beside the model; 0: all stay in the model.
  std::int64_t external_above = 1 << 20;
};

// NAME.data beside the model, where its large constants go.
std::filesystem::path external_data_of(const std::filesystem::path& model);

// Writes `to` and, if needed, its data file. Every op becomes one or more equivalent operators.
// Importing the file gives a Function that computes the same, and has the same structure where ONNX
// has the op. Indices that Hone clamps or drops are clamped or dropped in the file too; if the
// function checks its indices (ops::require, as in functions from ONNX), the file leaves the check
// to the runtime that runs it. An operator that ONNX lacks for a dtype is written in another, or as
// several. Throws UserError with one line for each node that has no equivalent operator; then
// nothing is written.
void export_onnx(const Function&, const std::filesystem::path& to, const OnnxExportOptions& = {});

}  // namespace hone
