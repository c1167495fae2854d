// Pad and CenterCropPad: add elements around axes or cut them off, with pads that are numbers,
// sizes of inputs or data-dependent.
#include <algorithm>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// Elements added before and after each axis of x; negative ones are cut off.
struct Pads {
  Dims low, high;
  // Data-dependent pads as i64 scalars, else null.
  Values open_low, open_high;
  Dim most_added = 0;  // data-dependent maximum for one axis
};

std::vector<NodeContext::Element> pad_list(NodeContext& c) {
  if (c.opset() >= 11) return c.elements(1);
  auto list = c.integers(c.opset() < 2 ? "paddings" : "pads");
  if (!list) c.fail("'pads' is missing; it is required");
  std::vector<NodeContext::Element> out;
  for (std::int64_t n : *list) out.push_back({n, {}});
  return out;
}

// The maximum that data-dependent pads add to one axis: the largest sum of any two of them, one
// before and one after, if all are known.
Dim most_added_by(NodeContext& c, Value pads, int rank) {
  const std::optional<std::int64_t> count = pads.shape()[0].as_number();
  if (!count || c.decides(1)) return c.open_limit(static_cast<std::size_t>(rank));
  const Dims list = c.contents(1);
  Dim low = 0, high = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Dim& most = i < list.size() / 2 ? low : high;
    most = max(most, list[i]);
  }
  return low + high;
}

// Pads for data-dependent axes, or a data-dependent number of them; pads of one axis add up.
Pads pads_of_named(NodeContext& c, int rank) {
  hone::Graph& g = c.graph();
  Value list = cast_to(flatten(c.in(1)), DType::i64);
  Value axes = c.has(3) ? cast_to(flatten(c.in(3)), DType::i64) : counted(g, DType::i64, rank);
  const Dim count = axes.shape()[0];
  const std::string why = cat("'pads' has ", amount(list.shape()[0], "element", "elements"),
                              ", expected ", count * Dim(2), ", two for each axis");
  if (prove_equal(list.shape()[0], count * Dim(2)) == false) c.fail(why);
  g.require_equal(list.shape()[0], count * Dim(2), why);
  const auto n = static_cast<std::size_t>(rank);
  Pads out{Dims(n, 0), Dims(n, 0), Values(n), Values(n), most_added_by(c, list, rank)};
  Value named = named_axes(axes, rank);
  Value low = by_axis(named, slice_axis(list, 0, 0, count), 0),
        high = by_axis(named, slice_axis(list, 0, count, count), 0);
  for (int a = 0; a < rank; ++a) {
    out.open_low[static_cast<std::size_t>(a)] = take_axis(low, 0, a);
    out.open_high[static_cast<std::size_t>(a)] = take_axis(high, 0, a);
  }
  return out;
}

Pads pads_of(NodeContext& c, int rank) {
  if (c.opset() >= 11 && (!c.in(1).shape().count().as_number() || (c.has(3) && c.decides(3))))
    return pads_of_named(c, rank);
  const std::vector<NodeContext::Element> list = pad_list(c);
  const auto n = static_cast<std::size_t>(rank);
  Pads out{Dims(n, 0), Dims(n, 0), Values(n), Values(n), 0};
  std::size_t open = 0;
  std::vector<std::int64_t> axes;
  if (c.has(3))
    axes = c.numbers(3);
  else
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  c.axes(axes, rank);  // without duplicates
  if (list.size() != 2 * axes.size())
    c.fail(cat("'pads' has ", amount(list.size(), "element", "elements"), ", expected ",
               2 * axes.size(), ", two for each axis"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<std::size_t>(c.axis(axes[i], rank));
    const NodeContext::Element &low = list[i], &high = list[i + axes.size()];
    if (low.known && high.known) {
      out.low[axis] = *low.known;
      out.high[axis] = *high.known;
      continue;
    }
    const auto value = [&](const NodeContext::Element& e) {
      return e.known ? size_value(c.graph(), *e.known, DType::i64) : e.open;
    };
    out.open_low[axis] = value(low);
    out.open_high[axis] = value(high);
    ++open;
  }
  if (open > 0) out.most_added = c.open_limit(open);
  return out;
}

// Pads or cuts one axis by data-dependent amounts: reads each result element by position in x.
Value openly_padded(NodeContext& c, Value x, int axis, Value low, Value high, const Dim& most_added,
                    std::string_view mode, Value number) {
  hone::Graph& g = c.graph();
  const Dim size = x.shape()[axis];
  Value zero = integer(g, 0), one = integer(g, 1);
  Value cut_low = ops::maximum(-low, zero), cut_high = ops::maximum(-high, zero);
  Value kept = size_value(g, size, DType::i64) - cut_low - cut_high;  // left after cutting
  const Dim n =
      c.measured(kept + ops::maximum(low, zero) + ops::maximum(high, zero), size + most_added);
  Value i = counted(g, DType::i64, n);
  const auto all = [&](Value v) { return broadcast_to(v, i.shape()); };
  i = i - all(ops::maximum(low, zero));
  Value last = kept - one, at = i;
  if (mode == "wrap") at = ops::mod(i, all(ops::maximum(kept, one)));
  if (mode == "reflect") {
    Value twice = all(ops::maximum(last + last, one));
    at = ops::mod(i, twice);
    at = ops::minimum(at, twice - at);
  }
  at = ops::minimum(ops::maximum(at, all(zero)), all(last));
  // An axis without elements still has one to read, which is not used.
  if (mode == "constant" && size.low() < 1) {
    Dims none(static_cast<std::size_t>(x.rank()), 0), one_more = none;
    one_more[static_cast<std::size_t>(axis)] = 1;
    x = pad_with(x, number, none, one_more);
  }
  Value y = at_clamped(x, axis, at + all(cut_low));
  if (mode != "constant") return y;
  Value inside = ops::bit_and(ops::le(all(zero), i), ops::le(i, all(last)));
  return where(along(inside, axis, y.rank()), y, number);
}

// Applies negative pads as cuts, so that none remain.
Value without_negative(Value x, Pads& p) {
  for (int a = 0; a < x.rank(); ++a) {
    Dim &low = p.low[static_cast<std::size_t>(a)], &high = p.high[static_cast<std::size_t>(a)];
    Dim cut_low = max(Dim(0) - low, 0), cut_high = max(Dim(0) - high, 0);
    low = max(low, 0);
    high = max(high, 0);
    x = slice_axis(x, a, cut_low, x.shape()[a] - cut_low - cut_high);
  }
  return x;
}

// Pads each end with the elements of the other end.
Value wrapped(Value x, const Pads& p) {
  for (int a = 0; a < x.rank(); ++a) {
    const Dim &low = p.low[static_cast<std::size_t>(a)],
              &high = p.high[static_cast<std::size_t>(a)];
    if (low == Dim(0) && high == Dim(0)) continue;
    const Dim size = x.shape()[a], all = low + size + high;
    Value i = counted(x.graph(), DType::i64, all);
    auto number = [&](const Dim& d) {
      return broadcast_to(size_value(x.graph(), d, DType::i64), i.shape());
    };
    x = ops::gather(Values{x, ops::mod(i - number(low), number(size))},
                    {{"axis", std::int64_t{a}}});
  }
  return x;
}

Values pad_import(NodeContext& c) {
  Pads p = pads_of(c, c.in(0).rank());
  std::string_view mode = c.text("mode", "constant");
  double value = c.opset() < 11 ? c.real("value", 0) : 0;
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.unsupported(
        cat("attribute 'mode' is '", mode, "', expected constant, reflect, edge or wrap"));
  Value x = without_negative(c.in(0), p);
  // The value is used in one mode only, but may be given in all.
  Value number = c.has(2) ? reshape_to(c.in(2), {}) : scalar(c.graph(), value, x.dtype());
  for (int a = 0; a < x.rank(); ++a)
    if (const auto i = static_cast<std::size_t>(a); p.open_low[i])
      x = openly_padded(c, x, a, p.open_low[i], p.open_high[i], p.most_added, mode, number);
  if (mode == "reflect") return {ops::pad_reflect(x, {{"low", p.low}, {"high", p.high}})};
  if (mode == "edge") return {ops::pad_edge(x, {{"low", p.low}, {"high", p.high}})};
  if (mode == "wrap") return {wrapped(x, p)};
  return {pad_with(x, number, p.low, p.high)};
}

// Cuts or zero-pads on both sides; an odd element goes to the end.
Values center_crop_pad(NodeContext& c) {
  Value x = c.in(0);
  const Dims sizes = c.open_contents(1);
  std::vector<std::int64_t> axes;
  if (auto given = c.integers("axes"))
    axes = *given;
  else
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (axes.size() != sizes.size())
    c.fail(cat("input 1 ('shape') has ", amount(sizes.size(), "element", "elements"), ", expected ",
               axes.size(), ", one for each axis"));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int axis = c.axis(axes[i], x.rank());
    const Dim size = x.shape()[axis], kept = min(size, sizes[i]);
    const Dim cut = size - kept, add = sizes[i] - kept;
    x = slice_axis(x, axis, floor_div(cut, 2), kept);
    Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
    low[static_cast<std::size_t>(axis)] = floor_div(add, 2);
    high[static_cast<std::size_t>(axis)] = add - floor_div(add, 2);
    x = pad_with(x, constant(c.graph(), Array::scalar_int(0, x.dtype())), low, high);
  }
  return {x};
}

constexpr ImportEntry pad_table[] = {
    {"Pad", pad_import},
    {"CenterCropPad", center_crop_pad, 18},
};

}  // namespace

std::span<const ImportEntry> pad_imports() { return pad_table; }

}  // namespace hone::onnx
