// Checks operands against the dtypes that ONNX allows for their operator. Defined in
// unsupported.cpp.
#pragma once

#include "import/onnx/file/model.h"
#include "ir/graph.h"

namespace hone::onnx {

// Throws UserError when the operator does not allow the dtype of an operand, nor does a later
// version that says what the result is. Dtypes that ONNX forbids though the result is clear, such
// as small integers in a sum, are accepted.
void check_dtypes(const Node&, std::int64_t opset, const Values& operands);

}  // namespace hone::onnx
