// The dtypes in which ONNX has an operator: the standard lists few of them for some, and programs
// that run files have fewer still.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/onnx/graph.h"

namespace hone::onnx {

// The dtype for an operator on numbers of type `t`: `t` itself, or another from which the result
// can be cast back and is then the same, overflow included.
DType dtype_for(std::string_view op, DType t);

// The first opset, from 21 on, in which it takes such numbers.
std::int64_t opset_for(std::string_view op, DType);

// x, of dtype `from`, in dtype_for(op, from), and the way back. The order of numbers is kept.
std::string in_dtype_for(ExportGraph&, std::string_view op, const std::string& x, DType from);
std::string back_from(ExportGraph&, std::string_view op, const std::string& y, DType to);

// The operator on these operands, all of dtype `t`, and its first result, of the same dtype.
// `more` are operands of other dtypes that follow.
std::string one_in_dtype(ExportGraph&, std::string_view op, std::vector<std::string> operands,
                         DType t, const std::vector<std::string>& more = {},
                         const std::vector<Message>& attributes = {});

}  // namespace hone::onnx
