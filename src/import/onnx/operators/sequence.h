// Sequences and optionals as graph values: nodes whose operands are the elements, or one tensor
// with equal elements along its first axis. They exist only between the nodes of a model; no
// Function takes or returns one.
#pragma once

#include "ir/graph.h"

namespace hone::onnx {

Value sequence_of(hone::Graph&, const Values& elements);
// A sequence of the slices along the first axis, whose size need not be a number.
Value stacked_sequence(hone::Graph&, Value stack);
// The parts of `each` elements along an axis, whose size need not be a number; the last may be
// shorter.
Value axis_parts(Value whole, int axis, const Dim& each);
// Empty if `element` is invalid. `is_there` is a bool, set when only the run knows whether the
// optional has an element.
Value optional_of(hone::Graph&, Value element, Value is_there = {});
bool is_sequence(Value);
bool is_stacked(Value);
bool is_parts(Value);
bool is_optional(Value);
// Whether only the run knows if there is an element. The element is then a tensor.
bool may_be_empty(Value optional);
// Appends a tensor, or all tensors in a sequence or optional, in order. The length of a stacked
// sequence must be a number.
void add_elements(Value, Values& out);
// The type of a stack's slices along its first axis.
Type element_type(Value stack);

class NodeContext;
// `v`, for a sequence of open length whose elements are of this type: open sizes are checked at run
// time.
Value as_element(NodeContext&, Value v, const Type&);
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
Value appended_to(Value carried, Value element);
bool is_carried(Value);
Carried carried_parts(Value);

}  // namespace hone::onnx
