// A loop for operators that call a body once for each element, such as SequenceMap.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

// Calls the body with each first-axis slice of the stacked inputs, and with the other inputs
// unchanged. Stacks each result. At least one input is a stack.
Values mapped(NodeContext&, const onnx::Graph& body, const Values& inputs,
              const std::vector<bool>& is_stack);

}  // namespace hone::onnx
