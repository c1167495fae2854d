// Sequences and optionals whose elements are known one by one while the model is read: they never
// reach the function, only their elements do.
#include "import/onnx/sequence.h"

#include <algorithm>

#include "import/onnx/build.h"
#include "import/onnx/context.h"
#include "import/onnx/open.h"

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
constinit const Op optional_op = {
    .name = "optional",
    .doc = "A value, or none. Only while a model is read.",
    .infer = [](const Call& c) { return tuple_types(c, Type::Kind::optional); },
};

}  // namespace

Value sequence_of(hone::Graph& g, const Values& elements) {
  return g.intern(sequence_op, elements, {});
}
Value optional_of(hone::Graph& g, Value element) {
  return g.intern(optional_op, element ? Values{element} : Values{}, {});
}
bool is_sequence(Value v) { return v.is(sequence_op); }
bool is_optional(Value v) { return v.is(optional_op); }

void add_elements(Value v, Values& out) {
  if (v.type().is_tensor()) return out.push_back(v);
  for (const Value& e : v.operands()) add_elements(e, out);
}

namespace {

Values elements(NodeContext& c, std::size_t input) {
  Value v = c.in(input);
  if (is_optional(v) && v.operand_count() == 1) v = v.operand(0);
  if (!is_sequence(v)) c.fail(cat("input ", input, " is ", v.type(), ", expected a sequence"));
  return v.operands();
}

// A position that counts from the back when negative; `end` itself may be one.
std::size_t position(NodeContext& c, std::size_t input, std::size_t size, bool end) {
  const auto n = static_cast<std::int64_t>(size);
  std::int64_t at = c.number(input);
  if (at < 0) at += n;
  if (at < 0 || at > n - (end ? 0 : 1))
    c.fail(cat("input ", input, " ('position') is ", c.number(input), ", expected ", -n, " to ",
               n - (end ? 0 : 1)));
  return static_cast<std::size_t>(at);
}

Values construct(NodeContext& c) { return {sequence_of(c.graph(), c.all_inputs())}; }

Values empty(NodeContext& c) {
  c.ignore("dtype");
  return {sequence_of(c.graph(), {})};
}

Values length(NodeContext& c) {
  return {integer(c.graph(), static_cast<std::int64_t>(elements(c, 0).size()))};
}

Value length_of(NodeContext& c, const Values& all) {
  return integer(c.graph(), static_cast<std::int64_t>(all.size()));
}

Values at(NodeContext& c) {
  Values all = elements(c, 0);
  if (!c.decides(1)) return {all[position(c, 1, all.size(), false)]};
  Value number = cast_to(reshape_to(c.in(1), {}), DType::i64), count = length_of(c, all);
  number = ops::select(ops::lt(number, integer(c.graph(), 0)), number + count, number);
  return {option_at(c, number, all)};
}

Values insert(NodeContext& c) {
  Values all = elements(c, 0);
  const std::size_t where = c.has(2) ? position(c, 2, all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(where), c.in(1));
  return {sequence_of(c.graph(), all)};
}

Values erase(NodeContext& c) {
  Values all = elements(c, 0);
  if (all.empty()) c.fail("the sequence is empty, expected at least one element");
  const std::size_t where = c.has(1) ? position(c, 1, all.size(), false) : all.size() - 1;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(where));
  return {sequence_of(c.graph(), all)};
}

// Parts of the given sizes, or of one size and what is left, or single slices.
Values split(NodeContext& c) {
  constexpr std::int64_t most = 4096;
  Value x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  const bool keep = c.flag("keepdims", true);
  const Dim size = x.shape()[axis];
  Dims sizes;
  if (c.has(1) && c.in(1).rank() == 1) {
    sizes = c.contents(1);
  } else {
    const std::int64_t each = c.has(1) ? c.number(1) : 1;
    if (!size.is_number())
      c.unsupported(cat("axis ", axis, " has the open size ", size,
                        ", expected a number; give it with --dim"));
    if (each < 1 || size.number() / each > most)
      c.fail(cat("axis ", axis, " of size ", size, " is split into parts of ", each,
                 ", expected parts of 1 or more, at most ", most, " of them"));
    for (std::int64_t left = size.number(); left > 0; left -= each)
      sizes.push_back(std::min(each, left));
  }
  Values parts = split_axis(x, axis, sizes);
  if (!c.has(1) && !keep)
    for (Value& v : parts) v = squeeze(v, {axis});
  return {sequence_of(c.graph(), parts)};
}

Values concat(NodeContext& c) {
  Values all = elements(c, 0);
  if (all.empty()) c.fail("the sequence is empty, expected at least one element");
  const bool is_new = c.flag("new_axis");
  const int axis = c.axis(c.integer("axis", 0), all[0].rank() + is_new);
  if (is_new)
    for (Value& v : all) v = unsqueeze(v, {axis});
  return {concat_values(all, axis)};
}

// The body for each element; other sequences are walked alongside, tensors are given each time.
Values map(NodeContext& c) {
  const onnx::Graph& g = c.body("body");
  const std::size_t count = elements(c, 0).size();
  std::vector<Values> made(g.outputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    Values arguments;
    for (std::size_t k = 0; k < c.inputs(); ++k) {
      Value v = c.in(k);
      if (is_sequence(v) && v.operand_count() != count)
        c.fail(cat("the sequences have ", count, " and ", v.operand_count(),
                   " elements, expected equal lengths"));
      arguments.push_back(is_sequence(v) ? v.operand(i) : v);
    }
    Values results = c.bodies().inlined(g, arguments);
    for (std::size_t k = 0; k < made.size(); ++k) made[k].push_back(results.at(k));
  }
  Values out;
  for (const Values& v : made) out.push_back(sequence_of(c.graph(), v));
  return out;
}

Values make_optional(NodeContext& c) {
  c.ignore("type");
  return {optional_of(c.graph(), c.has(0) ? c.in(0) : Value())};
}

Values has_element(NodeContext& c) {
  const bool has = c.has(0) && (!is_optional(c.in(0)) || c.in(0).operand_count() == 1);
  return {integer(c.graph(), has, DType::b1)};
}

Values get_element(NodeContext& c) {
  Value v = c.in(0);
  if (!is_optional(v)) return {v};
  if (v.operand_count() == 0) c.fail("the optional is empty, expected an element");
  return {v.operand(0)};
}

constexpr ImportEntry sequence_table[] = {
    {"SequenceConstruct", construct, 11},
    {"SequenceEmpty", empty, 11},
    {"SequenceLength", length, 11},
    {"SequenceAt", at, 11},
    {"SequenceInsert", insert, 11},
    {"SequenceErase", erase, 11},
    {"SplitToSequence", split, 11},
    {"ConcatFromSequence", concat, 11},
    {"SequenceMap", map, 17},
    {"Optional", make_optional, 15},
    {"OptionalHasElement", has_element, 15},
    {"OptionalGetElement", get_element, 15},
};

}  // namespace

std::span<const ImportEntry> sequence_imports() { return sequence_table; }

}  // namespace hone::onnx
