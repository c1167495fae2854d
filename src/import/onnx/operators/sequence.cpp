#include "import/onnx/operators/sequence.h"

#include <algorithm>

#include "import/common/build.h"
#include "import/onnx/node/context.h"

namespace hone::onnx {

namespace {

std::vector<Type> tuple_types(const Call& c, Type::Kind kind) {
  Type t;
  t.kind = kind;
  t.element = {Type(c.operands.empty() ? DType::f32 : c.type(0).dtype, {})};
  return {t};
}

constinit const Op sequence_op = {
    .name = "sequence",
    .doc = "Values in order. Only while a model is read.",
    .infer = [](const Call& c) { return tuple_types(c, Type::Kind::sequence); },
};
constinit const Op stacked_op = {
    .name = "stacked_sequence",
    .doc = "The slices along the first axis, in order. Only while a model is read.",
    .infer = [](const Call& c) { return tuple_types(c, Type::Kind::sequence); },
};
constinit const Op parts_op = {
    .name = "parts",
    .doc =
        "Parts of attribute number elements along attribute axis, in order; the last may be "
        "shorter. Only "
        "while a model is read.",
    .infer = [](const Call& c) { return tuple_types(c, Type::Kind::sequence); },
};
constinit const Op appended_op = {
    .name = "appended",
    .doc = "A sequence that a loop carries, and one element more. Only while a model is read.",
    .infer = [](const Call& c) -> std::vector<Type> { return {c.type(0)}; },
};
constinit const Op optional_op = {
    .name = "optional",
    .doc =
        "A value, or none; or a value and a bool that says whether it is there. Only while a "
        "model is read.",
    .infer = [](const Call& c) { return tuple_types(c, Type::Kind::optional); },
};

}  // namespace

Value sequence_of(hone::Graph& g, const Values& elements) {
  return g.intern(sequence_op, elements, {});
}
Value stacked_sequence(hone::Graph& g, Value stack) {
  return g.intern(stacked_op, Values{stack}, {});
}
Value axis_parts(Value whole, int axis, const Dim& each) {
  return whole.graph().intern(parts_op, Values{whole},
                              {{"axis", std::int64_t{axis}}, {"number", Dims{each}}});
}
Value optional_of(hone::Graph& g, Value element, Value is_there) {
  Values operands;
  for (const Value& v : {element, is_there})
    if (v) operands.push_back(v);
  return g.intern(optional_op, operands, {});
}
bool is_sequence(Value v) { return v.is(sequence_op); }
bool is_stacked(Value v) { return v.is(stacked_op); }
bool is_parts(Value v) { return v.is(parts_op); }
bool is_optional(Value v) { return v.is(optional_op); }
bool may_be_empty(Value v) { return is_optional(v) && v.operand_count() == 2; }

void add_elements(Value v, Values& out) {
  if (v.type().is_tensor()) return out.push_back(v);
  if (may_be_empty(v))
    throw Unsupported(
        "only a run tells whether the optional holds an element; OptionalHasElement and "
        "OptionalGetElement can read it");
  if (!is_stacked(v)) {
    for (const Value& e : v.operands()) add_elements(e, out);
    return;
  }
  for (std::int64_t i = 0; i < v.operand(0).shape()[0].number(); ++i)
    out.push_back(take_axis(v.operand(0), 0, i));
}

Value appended_to(Value carried, Value element) {
  return carried.graph().intern(appended_op, Values{carried, element}, {});
}

bool is_carried(Value v) {
  return v.is(appended_op) || (v.is(ops::param) && v.type().kind == Type::Kind::sequence);
}

Carried carried_parts(Value v) {
  Carried out;
  for (; v.is(appended_op); v = v.operand(0)) out.appended.push_back(v.operand(1));
  std::reverse(out.appended.begin(), out.appended.end());
  out.from = v;
  return out;
}

Type element_type(Value stack) {
  Type t = stack.type();
  t.shape.dims.erase(t.shape.dims.begin());
  return t;
}

Value as_element(NodeContext& c, Value v, const Type& type) {
  const bool fits = v.dtype() == type.dtype && v.rank() == type.rank();
  for (int k = 0; fits && k < v.rank(); ++k)
    c.graph().require_equal(v.shape()[k], type.shape[k],
                            cat("an element is ", v.type(), ", expected ", type,
                                " like the others of a sequence of open length"));
  if (!fits)
    c.unsupported(cat("an element is ", v.type(), ", expected ", type,
                      " like the others of a sequence of open length"));
  return reshape_to(v, type.shape.dims);
}

Value stack_of(NodeContext& c, Value sequence) {
  if (is_stacked(sequence)) return sequence.operand(0);
  if (!is_sequence(sequence) || sequence.operand_count() == 0)
    c.unsupported(
        "the loop reads a sequence that it carries for more iterations than are unrolled, expected "
        "one that has an element before the loop, and elements of one type");
  Values parts;
  for (const Value& v : sequence.operands())
    parts.push_back(unsqueeze(as_element(c, v, sequence.operand(0).type()), {0}));
  return concat_values(parts, 0);
}

Value extended_sequence(NodeContext& c, Value sequence, Value stack) {
  if (!is_sequence(sequence) && !is_stacked(sequence))
    c.unsupported(cat("a loop carries a ", sequence.type(), ", expected a sequence"));
  Values parts;
  if (is_stacked(sequence)) {
    const Type whole = sequence.operand(0).type();
    Type wanted = stack.type();
    wanted.shape.dims[0] = whole.shape[0];
    parts.push_back(as_element(c, sequence.operand(0), wanted));
  } else {
    for (const Value& v : sequence.operands())
      parts.push_back(unsqueeze(as_element(c, v, element_type(stack)), {0}));
  }
  parts.push_back(stack);
  return stacked_sequence(c.graph(), concat_values(parts, 0));
}

}  // namespace hone::onnx
