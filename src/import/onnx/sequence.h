// Sequences and optionals as values of the graph that is built: nodes whose operands are the
// elements, or one tensor with equal elements along its first axis. They stand only between the
// nodes of a model; no Function gives or takes one.
#pragma once

#include "ir/graph.h"

namespace hone::onnx {

Value sequence_of(hone::Graph&, const Values& elements);
// A sequence of the slices along the first axis, whose size need not be a number.
Value stacked_sequence(hone::Graph&, Value stack);
// Empty if `element` is invalid. `is_there` is a bool, given when only a run tells whether the
// optional has an element.
Value optional_of(hone::Graph&, Value element, Value is_there = {});
bool is_sequence(Value);
bool is_stacked(Value);
// Parts of an axis whose size need not be a number. They have no equal sizes.
bool is_parts(Value);
bool is_optional(Value);
// Whether only a run tells if there is an element. The element is a tensor then.
bool may_be_empty(Value optional);
// Adds a tensor, or all tensors in a sequence or optional, in order. Of a stacked sequence there
// must be a number of them.
void add_elements(Value, Values& out);

class NodeContext;
// The elements, which must be of one type and at least one, along a new first axis.
Value stack_of(NodeContext&, Value sequence);
// `sequence`, with the slices of the stack behind its elements, which must have their type.
Value extended_sequence(NodeContext&, Value sequence, Value stack);

// A sequence that a loop carries: a parameter of its body, and what the body appends to it. Nothing
// else can be done with it.
struct Carried {
  Value from;  // the parameter
  Values appended;
};
bool is_carried(Value);
Carried carried_parts(Value);

}  // namespace hone::onnx
