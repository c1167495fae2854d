// The list of the importer's operators.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "import/onnx/node/context.h"

namespace hone::onnx {

// Also covers every Op::onnx without an import function of its own.
std::span<const ImportEntry> elementwise_imports();
std::span<const ImportEntry> shape_imports();
std::span<const ImportEntry> slice_imports();
std::span<const ImportEntry> pad_imports();
std::span<const ImportEntry> network_imports();
std::span<const ImportEntry> math_imports();
std::span<const ImportEntry> linear_imports();
std::span<const ImportEntry> loss_imports();
std::span<const ImportEntry> attention_imports();
std::span<const ImportEntry> resize_imports();
std::span<const ImportEntry> sample_imports();
std::span<const ImportEntry> signal_imports();
std::span<const ImportEntry> order_imports();
std::span<const ImportEntry> dynamic_imports();
std::span<const ImportEntry> suppress_imports();
std::span<const ImportEntry> gram_imports();
std::span<const ImportEntry> window_imports();
std::span<const ImportEntry> scatter_imports();
std::span<const ImportEntry> quantize_imports();
std::span<const ImportEntry> recurrent_imports();
std::span<const ImportEntry> einsum_imports();
std::span<const ImportEntry> random_imports();
std::span<const ImportEntry> loop_imports();
std::span<const ImportEntry> sequence_imports();
std::span<const ImportEntry> training_imports();
std::span<const ImportEntry> text_imports();
// Of domain ai.onnx.ml.
std::span<const ImportEntry> ml_imports();
std::span<const ImportEntry> ml_model_imports();
// Of domain com.microsoft.
std::span<const ImportEntry> contrib_imports();
std::span<const ImportEntry> contrib_attention_imports();
std::span<const ImportEntry> contrib_quantize_imports();
Values import_same(NodeContext&, const Op&);
std::vector<const ImportEntry*> all_imports();
// Null when no entry supports the opset.
const ImportEntry* find_import(std::string_view domain, std::string_view op, std::int64_t opset);
// The supported operator with the most similar name; empty when none is close.
std::string_view nearest_import(std::string_view op);

}  // namespace hone::onnx
