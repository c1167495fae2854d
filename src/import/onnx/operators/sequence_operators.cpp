// The operators on sequences and optionals whose elements are known individually during import, and
// on sequences of equal elements stored in one tensor. They never become part of the function, only
// their elements do.
#include <algorithm>

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/operators/loop.h"
#include "import/onnx/operators/sequence.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t most_elements = 4096;

Value sequence_input(NodeContext& c, std::size_t input) {
  Value v = c.in(input);
  if (is_optional(v) && v.operand_count() == 1) v = v.operand(0);
  if (is_carried(v))
    c.unsupported(
        "a loop carries the sequence for more iterations than are unrolled; in its body, elements "
        "can only be appended");
  if (!is_sequence(v) && !is_stacked(v) && !is_parts(v))
    c.fail(cat("input ", input, " is ", v.type(), ", expected a sequence"));
  return v;
}

// Individual elements, so their number must be known.
Values elements(NodeContext& c, std::size_t input) {
  const Value v = sequence_input(c, input);
  if (is_parts(v))
    c.unsupported(
        "the sequence has an unknown number of parts of an axis, and the last may be shorter; "
        "its elements can be read by position, counted, and concatenated along that axis");
  if (is_stacked(v)) {
    const Dim& count = v.operand(0).shape()[0];
    if (!count.is_number() || count.number() > most_elements)
      c.unsupported(cat("the sequence has ", count, " elements, expected a number up to ",
                        most_elements, " where it is not only read, appended to or concatenated"));
  }
  Values out;
  add_elements(v, out);
  return out;
}

// A position, counted from the back when negative; may be equal to the length with `end`.
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

// The parts of an axis when their number is open.
struct Parts {
  explicit Parts(Value v)
      : whole(v.operand(0)),
        axis(static_cast<int>(v.attrs().integer("axis"))),
        each(v.attrs().dims("number")[0]) {}

  Dim count() const { return ceil_div(whole.shape()[axis], each); }

  Value whole;
  int axis;
  Dim each;
};

Values length(NodeContext& c) {
  if (const Value v = sequence_input(c, 0); is_parts(v))
    return {size_value(c.graph(), Parts(v).count(), DType::i64)};
  if (const Value v = sequence_input(c, 0); is_stacked(v))
    return {size_value(c.graph(), v.operand(0).shape()[0], DType::i64)};
  return {integer(c.graph(), static_cast<std::int64_t>(elements(c, 0).size()))};
}

Value length_of(NodeContext& c, const Values& all) {
  return integer(c.graph(), static_cast<std::int64_t>(all.size()));
}

// Negative positions count from the back.
Value from_the_front(Value number, Value count) {
  return ops::select(ops::lt(number, integer_like(number, 0)), number + count, number);
}

// A position in a list of `count` items, from the front; a run with any other is rejected.
Value checked_position(NodeContext& c, std::size_t input, const Dim& count, const Dim& last) {
  const Value at = from_the_front(cast_to(reshape_to(c.in(input), {}), DType::i64),
                                  size_value(c.graph(), count, DType::i64));
  require_within(at, 0, last, "a position in a sequence");
  return at;
}

Value slice_of_stack(NodeContext& c, Value stack) {
  const Dim& count = stack.shape()[0];
  const Value number = checked_position(c, 1, count, count - Dim(1));
  return reshape_to(slice_at(stack, 0, number), element_type(stack).shape.dims);
}

Value part_at(NodeContext& c, const Parts& p) {
  hone::Graph& g = c.graph();
  const Value number = checked_position(c, 1, p.count(), p.count() - Dim(1));
  const Dim& size = p.whole.shape()[p.axis];
  const Value each = size_value(g, p.each, DType::i64), start = number * each;
  const Value left = size_value(g, size, DType::i64) - start;
  const Dim first = c.measured(start, max(size - Dim(1), 0)),
            count = c.measured(ops::minimum(left, each), min(size, p.each));
  return slice_axis(p.whole, p.axis, first, count);
}

Values at(NodeContext& c) {
  if (const Value v = sequence_input(c, 0); is_parts(v)) return {part_at(c, Parts(v))};
  if (const Value v = sequence_input(c, 0); is_stacked(v)) return {slice_of_stack(c, v.operand(0))};
  Values all = elements(c, 0);
  if (!c.decides(1)) return {all[position(c, 1, all.size(), false)]};
  Value number = cast_to(reshape_to(c.in(1), {}), DType::i64), count = length_of(c, all);
  return {option_at(c, from_the_front(number, count), all)};
}

// Whether elements must be accessed in one tensor: their number is open, or the position is
// data-dependent.
bool is_found_in_stack(NodeContext& c, Value sequence, std::size_t position) {
  return (is_stacked(sequence) && !sequence.operand(0).shape()[0].is_number()) ||
         (c.has(position) && c.decides(position) &&
          (is_stacked(sequence) || (is_sequence(sequence) && sequence.operand_count() > 0)));
}

// The slices at these positions.
Value slices_at(Value stack, Value places) {
  return ops::gather(Values{stack, places}, {{"axis", std::int64_t{0}}});
}

// Appends the new element to the stack, then gathers all elements in their new order.
Value inserted(NodeContext& c, Value stack) {
  const Value more = as_element(c, c.in(1), element_type(stack));
  const Value all = concat_values(Values{stack, unsqueeze(more, {0})}, 0);
  if (!c.has(2)) return all;
  const Dim& count = stack.shape()[0];
  const Value i = counted(c.graph(), DType::i64, count + Dim(1)),
              at = broadcast_to(checked_position(c, 2, count, count), i.shape()),
              end = broadcast_to(size_value(c.graph(), count, DType::i64), i.shape());
  const Value behind = ops::select(ops::eq(i, at), end, i - integer_like(i, 1));
  return slices_at(all, ops::select(ops::lt(i, at), i, behind));
}

Value erased(NodeContext& c, Value stack) {
  const Dim count = at_least(c, stack.shape()[0], 1, "the number of elements");
  const Dim left = count - Dim(1);
  if (!c.has(1)) return slice_axis(stack, 0, 0, left);
  const Value i = counted(c.graph(), DType::i64, left),
              at = broadcast_to(checked_position(c, 1, count, left), i.shape());
  return slices_at(stack, ops::select(ops::lt(i, at), i, i + integer_like(i, 1)));
}

Values insert(NodeContext& c) {
  if (is_carried(c.in(0)) && !c.has(2)) return {appended_to(c.in(0), c.in(1))};
  const Value v = sequence_input(c, 0);
  if (is_found_in_stack(c, v, 2) || (is_stacked(v) && !c.has(2)))
    return {stacked_sequence(c.graph(), inserted(c, stack_of(c, v)))};
  Values all = elements(c, 0);
  const std::size_t where = c.has(2) ? position(c, 2, all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(where), c.in(1));
  return {sequence_of(c.graph(), all)};
}

Values erase(NodeContext& c) {
  if (const Value v = sequence_input(c, 0); is_found_in_stack(c, v, 1))
    return {stacked_sequence(c.graph(), erased(c, stack_of(c, v)))};
  Values all = elements(c, 0);
  if (all.empty()) c.fail("the sequence is empty, expected at least one element");
  const std::size_t where = c.has(1) ? position(c, 1, all.size(), false) : all.size() - 1;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(where));
  return {sequence_of(c.graph(), all)};
}

Value moved_first(Value x, int axis) {
  Axes order = {axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  return transpose_by(x, order);
}

// The slices of an axis along a new first one; if they keep that axis, its size is 1.
Value slices_first(Value x, int axis, bool keeps_axis) {
  const Value stack = moved_first(x, axis);
  return keeps_axis ? unsqueeze(stack, {axis + 1}) : stack;
}

// Concatenates the elements of a stack along one of their axes, or along a new one.
Value join_stack(Value stack, int axis, bool is_new) {
  Axes order;
  for (int i = 1; i < stack.rank(); ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  Value out = transpose_by(stack, order);
  if (is_new) return out;
  Dims dims = out.shape().dims;
  const auto at = dims.begin() + axis;
  at[1] = at[0] * at[1];
  dims.erase(at);
  return reshape_to(out, dims);
}

// The data-dependent size of parts, limited to the size of the axis.
Dim open_part(NodeContext& c, const Dim& size) {
  const Dim most = max(size, 1);
  const Value given = cast_to(reshape_to(c.in(1), {}), DType::i64);
  const Value kept = ops::minimum(given, size_value(c.graph(), most, DType::i64));
  return at_least(c, c.measured(kept, most), 1, "the size of the parts");
}

// Parts with the given sizes, or with one size and a remainder, or single slices.
Values split(NodeContext& c) {
  Value x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  const bool keep = c.flag("keepdims", true);
  const Dim size = x.shape()[axis];
  Dims sizes;
  if (c.has(1) && c.in(1).rank() == 1) {
    const std::optional<std::int64_t> count = c.in(1).shape()[0].as_number();
    sizes = part_sizes(c, 1, static_cast<std::size_t>(count.value_or(0)), size);
  } else if (c.has(1) && c.decides(1)) {
    return {axis_parts(x, axis, open_part(c, size))};
  } else {
    const std::int64_t each = c.has(1) ? c.number(1) : 1;
    if (each == 1 && (!size.is_number() || size.number() > most_elements))
      return {stacked_sequence(c.graph(), slices_first(x, axis, c.has(1) || keep))};
    if (!size.is_number() && each > 0) return {axis_parts(x, axis, each)};
    if (each < 1 || !size.is_number() || size.number() / each > most_elements)
      c.fail(cat("axis ", axis, " of size ", size, " is split into parts of ", each,
                 ", expected parts of 1 or more, at most ", most_elements, " of them"));
    for (std::int64_t left = size.number(); left > 0; left -= each)
      sizes.push_back(std::min(each, left));
  }
  Values parts = split_axis(x, axis, sizes);
  if (!c.has(1) && !keep)
    for (Value& v : parts) v = squeeze(v, {axis});
  return {sequence_of(c.graph(), parts)};
}

Values concat(NodeContext& c) {
  if (const Value v = sequence_input(c, 0); is_parts(v)) {
    const Parts p(v);
    if (!c.flag("new_axis") && c.axis(c.integer("axis", 0), p.whole.rank()) == p.axis)
      return {p.whole};
  }
  if (const Value v = sequence_input(c, 0); is_stacked(v)) {
    const Value stack = v.operand(0);
    const bool is_new = c.flag("new_axis");
    return {join_stack(stack, c.axis(c.integer("axis", 0), stack.rank() - 1 + is_new), is_new)};
  }
  Values all = elements(c, 0);
  if (all.empty()) c.fail("the sequence is empty, expected at least one element");
  const bool is_new = c.flag("new_axis");
  const int axis = c.axis(c.integer("axis", 0), all[0].rank() + is_new);
  if (is_new)
    for (Value& v : all) v = unsqueeze(v, {axis});
  return {concat_values(all, axis)};
}

// If one sequence is a stack, all of them are processed as stacks.
Values mapped_stacks(NodeContext& c, const onnx::Graph& g) {
  Values inputs, out;
  std::vector<bool> is_stack;
  for (std::size_t k = 0; k < c.inputs(); ++k) {
    is_stack.push_back(!c.in(k).type().is_tensor());
    Value v = is_stack.back() ? sequence_input(c, k) : c.in(k);
    if (is_stack.back() && (is_parts(v) || v.operand_count() == 0))
      c.unsupported(cat("input ", k,
                        " is mapped beside a sequence of open length, expected one "
                        "that has an element, and elements of one type"));
    inputs.push_back(is_stack.back() ? stack_of(c, v) : v);
  }
  for (const Value& v : mapped(c, g, inputs, is_stack))
    out.push_back(stacked_sequence(c.graph(), v));
  return out;
}

// Calls the body for each element; other sequences advance together, tensors are passed unchanged.
Values map(NodeContext& c) {
  const onnx::Graph& g = c.body("body");
  if (std::ranges::any_of(c.all_inputs(), is_stacked)) return mapped_stacks(c, g);
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
  if (c.has(0) && may_be_empty(c.in(0))) return {c.in(0).operand(1)};
  const bool has = c.has(0) && (!is_optional(c.in(0)) || c.in(0).operand_count() == 1);
  return {integer(c.graph(), has, DType::b1)};
}

Values get_element(NodeContext& c) {
  Value v = c.in(0);
  if (!is_optional(v)) return {v};
  if (v.operand_count() == 0) c.fail("the optional is empty, expected an element");
  if (may_be_empty(v)) {
    const Value there = cast_to(v.operand(1), DType::i64);
    require_within(integer_like(there, 1) - there, 0, 0,
                   "the number of elements missing in the optional");
  }
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
