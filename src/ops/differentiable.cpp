// Sliding windows in a differentiable form: the elements at each window position are a slice of the
// padded operand. Creates one or a few nodes per position, so suitable only for small windows.
#include <limits>

#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/gradients.h"

namespace hone {

namespace {

constexpr std::int64_t most_places = 1024;

// A window over some axes of a padded value.
struct Sliding {
  Axes axes;
  std::vector<std::int64_t> window, strides, dilations;
  Dims positions;  // number of window positions along each of the axes

  std::int64_t places() const {
    std::int64_t n = 1;
    for (std::int64_t w : window) n *= w;
    if (n > most_places)
      throw UserError("the derivative of a window of ", n,
                      " elements is not supported, expected at most ", most_places);
    return n;
  }
  // The offset of window element k, in row-major order, along window axis i.
  std::int64_t along(std::size_t i, std::int64_t k) const {
    for (std::size_t j = window.size(); j-- > i + 1;) k /= window[j];
    return k % window[i];
  }
  Value under(Value padded, std::int64_t k) const {
    for (std::size_t i = 0; i < axes.size(); ++i)
      padded = slice_axis(padded, axes[i], along(i, k) * dilations[i], positions[i], strides[i]);
    return padded;
  }
};

std::vector<std::int64_t> as_numbers(const Dims& dims) {
  std::vector<std::int64_t> out;
  for (const Dim& d : dims) out.push_back(d.number());
  return out;
}

Value padded_by(Value x, double edge, const Axes& axes, const Dims& low, const Dims& high) {
  Dims before(static_cast<std::size_t>(x.rank()), 0), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<std::size_t>(axes[i])] = low[i];
    after[static_cast<std::size_t>(axes[i])] = high[i];
  }
  return pad_with(x, scalar(x.graph(), edge, x.dtype()), before, after);
}

}  // namespace

// Of equal elements of a window, the first has the derivative, as in PyTorch.
Values grads::window_of_slices(const Call& c) {
  const Value x = c.operands[0];
  const std::string& kind = c.attrs.get<std::string>("kind");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double edge = kind == "sum" ? 0 : kind == "max" ? -infinity : infinity;
  const Sliding s{all_axes(x.rank()), as_numbers(c.attrs.dims("window")),
                  as_numbers(c.attrs.dims("strides")), as_numbers(c.attrs.dims("dilations")),
                  c.results[0].shape.dims};
  const Value padded =
      padded_by(x, edge, s.axes, c.attrs.dims("pads_low"), c.attrs.dims("pads_high"));
  Values parts;
  for (std::int64_t k = 0; k < s.places(); ++k) parts.push_back(unsqueeze(s.under(padded, k), {0}));
  const Value all = ops::concat(parts, {{"axis", std::int64_t{0}}});
  if (kind == "sum") return {reduce_axes(ops::reduce_sum, all, {0})};
  const Op& place = kind == "max" ? ops::argmax : ops::argmin;
  const Value first = place(all, {{"axis", std::int64_t{0}}, {"dtype", DType::i64}});
  const Value is_first = ops::eq(iota_value(x.graph(), DType::i64, all.shape(), 0),
                                 broadcast_back(first, {0}, all.shape()));
  return {reduce_axes(ops::reduce_sum, ops::select(is_first, all, constant_like(all, 0)), {0})};
}

// The convolution as a sum of matrix products, one per position in the weights.
Values grads::conv_of_products(const Call& c) {
  const Value x = c.operands[0], w = c.operands[1];
  const ConvAxes axes = conv_axes(c.attrs, x.rank());
  const DType dtype = sum_dtype(x.dtype());
  const Dim groups = c.attrs.integer("groups"), batch = x.shape()[axes.batch],
            in = w.shape()[axes.in], out = floor_div(w.shape()[axes.out], groups);
  Axes order = {axes.batch, axes.channel}, weight_order = axes.weight_space, space;
  Sliding s{{}, {}, as_numbers(c.attrs.dims("strides")), as_numbers(c.attrs.dims("dilations")), {}};
  Dims split = {batch, groups, in}, together = {batch, groups * out};
  for (std::size_t i = 0; i < axes.space.size(); ++i) {
    order.push_back(axes.space[i]);
    space.push_back(static_cast<int>(i) + 2);
    s.axes.push_back(static_cast<int>(i) + 3);
    s.window.push_back(w.shape()[axes.weight_space[i]].number());
    s.positions.push_back(c.results[0].shape[axes.space[i]]);
    together.push_back(s.positions.back());
  }
  weight_order.insert(weight_order.end(), {axes.out, axes.in});
  Value image = padded_by(transpose_by(cast_to(x, dtype), order), 0, space,
                          c.attrs.dims("pads_low"), c.attrs.dims("pads_high"));
  for (int axis : space) split.push_back(image.shape()[axis]);
  image = reshape_to(image, split);  // [batch, groups, in, space]
  const Value weights =
      reshape_to(transpose_by(cast_to(w, dtype), weight_order), {s.places(), groups, out, in});
  Value sum;  // [groups, out, batch, space]
  for (std::int64_t k = 0; k < s.places(); ++k) {
    const Value part = dot_general(take_axis(weights, 0, k), s.under(image, k), {{0, 1}}, {{2, 2}});
    sum = sum ? sum + part : part;
  }
  Axes back = {2, 0, 1};
  for (int axis : space) back.push_back(axis + 1);
  sum = reshape_to(transpose_by(sum, back), together);
  Axes placed(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    placed[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return {cast_to(transpose_by(sum, placed), c.results[0].dtype)};
}

}  // namespace hone
