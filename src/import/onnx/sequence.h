// Sequences and optionals as values of the graph that is built: nodes whose operands are the
// elements. They stand only between the nodes of a model; no Function gives or takes one.
#pragma once

#include "ir/graph.h"

namespace hone::onnx {

Value sequence_of(hone::Graph&, const Values& elements);
// An invalid element: none.
Value optional_of(hone::Graph&, Value element);
bool is_sequence(Value);
bool is_optional(Value);
// Adds a tensor, or all tensors in a sequence or optional, in order.
void add_elements(Value, Values& out);

}  // namespace hone::onnx
