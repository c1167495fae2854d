#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "ops/contraction.h"
#include "pass/simplify.h"

namespace hone {

namespace {

// ---- a contraction with one-hot rows selects rows

bool counts_up(Value v, std::int64_t size) {
  while (v.is(ops::reshape)) v = v.operand(0);
  if (v.is(ops::iota)) return v.rank() > 0 && v.attrs().integer("axis") == v.rank() - 1;
  if (!v.is(ops::constant) || v.rank() == 0 || v.shape().count() != Dim(size)) return false;
  const Array& a = v.attrs().get<Array>("value");
  if (a.dims().back() != size) return false;
  for (std::int64_t i = 0; i < size; ++i)
    if (a.integer(i) != i) return false;
  return true;
}

Value without_broadcast(Value v) { return v.is(ops::broadcast) ? v.operand(0) : v; }

// If `equal` is x == 0, 1, 2, ... along the last axis: x, the index of each row.
std::optional<Value> row_indices(Value equal) {
  for (int side : {0, 1}) {
    Value index = without_broadcast(equal.operand(side)),
          count = without_broadcast(equal.operand(1 - side));
    std::optional<std::int64_t> size = equal.shape()[-1].as_number();
    if (!is_integer(index.dtype()) || !size || !counts_up(count, *size)) continue;
    if (index.rank() == equal.rank() && index.shape()[-1] == Dim(1)) {
      Dims rows = index.shape().dims;
      rows.pop_back();
      return reshape_to(index, rows);
    }
    if (index.rank() == 0) return index;
  }
  return std::nullopt;
}

// 0 * infinity would change the result.
bool all_finite(Value v) {
  if (!v.is(ops::constant)) return false;
  const Array& a = v.attrs().get<Array>("value");
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (!std::isfinite(a.real(i))) return false;
  return true;
}

bool takes_rows(const Match& m) {
  Value hot = m["hot"], table = m["table"];
  DotAxes axes = dot_axes(m.root.attrs(), hot.rank(), table.rank());
  return axes.batch_a.empty() && axes.contract_a == Axes{hot.rank() - 1} && table.rank() >= 1 &&
         m.root.dtype() == table.dtype() && is_float(table.dtype()) && row_indices(m["equal"]) &&
         m["equal"].shape() == hot.shape() && all_finite(table);
}

// Rows of the table, zero where the index is out of range.
Value taken_rows(const Match& m) {
  Value table = m["table"], index = *row_indices(m["equal"]);
  DotAxes axes = dot_axes(m.root.attrs(), m["hot"].rank(), table.rank());
  Axes rows_first = {axes.contract_b[0]};
  rows_first.insert(rows_first.end(), axes.free_b.begin(), axes.free_b.end());
  table = transpose_by(table, rows_first);
  const Shape& full = m.root.shape();
  Dims rows(full.dims.begin(), full.dims.end() - (table.rank() - 1));
  index = broadcast_to(index, Shape(rows));
  Value taken = ops::gather(Values{table, index}, {{"axis", 0}});
  Value size = size_value(table.graph(), table.shape()[0], index.dtype());
  Value inside = ops::bit_and(ops::le(integer_like(index, 0), index),
                              ops::lt(index, broadcast_to(size, index.shape())));
  rows.resize(full.dims.size(), Dim(1));
  inside = broadcast_to(reshape_to(inside, rows), full);
  return ops::select(inside, taken, constant_like(taken, 0));
}

// ---- a convolution includes its padding

bool pads_space_with_zeros(const Match& m) {
  Value pad = m["pad"];
  ConvAxes axes = conv_axes(m.root.attrs(), pad.rank());
  const Dims &low = pad.attrs().dims("low"), &high = pad.attrs().dims("high");
  for (int axis : {axes.batch, axes.channel})
    if (low[static_cast<std::size_t>(axis)] != Dim(0) ||
        high[static_cast<std::size_t>(axis)] != Dim(0))
      return false;
  return uniform_number(m["number"]) == 0.0;
}

Value padding_convolution(const Match& m) {
  ConvAxes axes = conv_axes(m.root.attrs(), m["pad"].rank());
  Attrs attrs = m.root.attrs();
  auto add = [&](AttrName to, AttrName from) {
    Dims pads = attrs.dims(to);
    for (std::size_t i = 0; i < pads.size(); ++i)
      pads[i] = pads[i] + m["pad"].attrs().dims(from)[static_cast<std::size_t>(axes.space[i])];
    attrs.set(to, pads);
  };
  add("pads_low", "low");
  add("pads_high", "high");
  return ops::conv(Values{m["x"], m["w"]}, attrs);
}

Pattern named(std::string name, Pattern p) {
  p.hole = std::move(name);
  return p;
}

std::vector<Rule> make_contraction_rules() {
  using enum RuleClass;
  const Pattern a = Pattern::any("a"), b = Pattern::any("b"), x = Pattern::any("x"),
                w = Pattern::any("w");
  const Pattern hot = named("hot", ops::cast(named("equal", ops::eq(a, b))));
  const Pattern pad = named("pad", ops::pad(x, Pattern::any("number")));
  return {
      {"one-hot-dot", rounding, ops::dot(hot, Pattern::any("table")), taken_rows, takes_rows},
      {"conv-of-pad", rounding, ops::conv(pad, w), padding_convolution, pads_space_with_zeros},
  };
}

}  // namespace

std::span<const Rule> contraction_rules() {
  static const std::vector<Rule> rules = make_contraction_rules();
  return rules;
}

}  // namespace hone
