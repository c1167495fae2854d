// The loop of an operator that calls its body once for each element. Not Loop and Scan themselves.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

// The results of the body, stacked, for each slice along the first axis of the inputs that are
// stacks, of which there is one at least; the others are given to each call.
Values mapped(NodeContext&, const onnx::Graph& body, const Values& inputs,
              const std::vector<bool>& is_stack);

}  // namespace hone::onnx
