// Sequences and optionals as graph values: nodes whose operands are the elements, or one tensor
// with equal elements along its first axis. They exist only between the nodes of a model; no
// Function takes or returns one.
#pragma once

#include "ir/graph.h"

namespace hone::onnx {

Value sequence_of(hone::Graph&, const Values& elements);
// A sequence of the slices along the first axis, whose size need not be a number.
Value stacked_sequence(hone::Graph&, Value stack);
// Empty if `element` is invalid. `is_there` is a bool, set when only the run knows whether the
// optional has an element.
Value optional_of(hone::Graph&, Value element, Value is_there = {});
bool is_sequence(Value);
bool is_stacked(Value);
// Parts of an axis whose size need not be a number. The parts may have different sizes.
bool is_parts(Value);
bool is_optional(Value);
// Whether only the run knows if there is an element. The element is then a tensor.
bool may_be_empty(Value optional);
// Appends a tensor, or all tensors in a sequence or optional, in order. The length of a stacked
// sequence must be a number.
void add_elements(Value, Values& out);

class NodeContext;
// Stacks the elements, at least one and all of one type, along a new first axis.
Value stack_of(NodeContext&, Value sequence);
// `sequence` followed by the slices of the stack, which must have its element type.
Value extended_sequence(NodeContext&, Value sequence, Value stack);

// A sequence carried by a loop: a parameter of its body, and the elements that the body appends. No
// other operation is possible on it.
struct Carried {
  Value from;  // the parameter
  Values appended;
};
bool is_carried(Value);
Carried carried_parts(Value);

}  // namespace hone::onnx
