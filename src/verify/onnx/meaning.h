// Evaluates nodes of a model file as the operators' pages specify, on plain numbers, element by
// element. Shares no code with operations, and with the import only the file parser, so that it
// detects operators that the import reads wrongly.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "import/onnx/file/model.h"
#include "verify/onnx/numbers.h"

namespace hone::onnx {

class Noise;

// The leading results of the node; a null input is omitted. Subgraphs of the node may use outer
// values. Empty if the operator, an attribute or a dtype is not covered, or if the evaluation would
// take too long. Elements that the page leaves open are marked.
// With noise the numbers that its subgraphs compute are changed by a little (open.h).
std::optional<std::vector<Numbers>> meaning_of(const Node&, std::int64_t opset,
                                               std::span<const Numbers* const> inputs,
                                               const NumbersByName& outer = {},
                                               Noise* noise = nullptr);
bool has_meaning(const Node&);
// Whether the operator's results are single roundings of exact ones, or elements of its operands:
// they never depend on the order of an evaluation.
bool is_exact(const Node&);

}  // namespace hone::onnx
