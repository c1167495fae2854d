// The derivatives of convolutions, as convolutions. Everything is channels-first here.
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/gradients.h"

namespace hone {

namespace {

constexpr std::int64_t most_products = 1024;

std::int64_t number_at(const Attrs& attrs, AttrName name, std::size_t i) {
  return attrs.dims(name)[i].number();
}

Dim ceil_div(const Dim& a, std::int64_t b) { return floor_div(a + Dim(b - 1), b); }

// A spatial axis of x: what its window does along it.
struct Slide {
  Dim size, positions;  // of x and of y
  std::int64_t taps = 1, stride = 1, dilation = 1;
  Dim low, high;  // pads
};

// The convolution with its operands in channels-first form.
struct Convolved {
  Value x, w, dy;
  Dim groups;
  std::vector<Slide> axes;

  Dim batch() const { return x.shape()[0]; }
  Dim in() const { return w.shape()[1]; }                       // channels of a group
  Dim out() const { return floor_div(w.shape()[0], groups); }  // the same
};

Attrs attrs_of(const Dims& strides, const Dims& dilations, const Dims& low, const Dims& high,
               const Dim& groups) {
  return {{"strides", strides}, {"dilations", dilations},    {"pads_low", low},
          {"pads_high", high},  {"groups", groups.number()}, {"channels_last", std::int64_t{0}}};
}

Value pad_axis(Value v, int axis, const Dim& low, const Dim& high) {
  Dims before(static_cast<std::size_t>(v.rank()), 0), after = before;
  before[static_cast<std::size_t>(axis)] = low;
  after[static_cast<std::size_t>(axis)] = high;
  return pad_with(v, scalar(v.graph(), 0, v.dtype()), before, after);
}

// The axis as two: [outer, inner].
Value split_in(Value v, int axis, const Dim& outer, const Dim& inner) {
  Dims dims = v.shape().dims;
  dims[static_cast<std::size_t>(axis)] = outer;
  dims.insert(dims.begin() + axis + 1, inner);
  return reshape_to(v, dims);
}

// Adds zeros after each element of an axis.
Value spread_axis(Value v, int axis, std::int64_t step) {
  Value apart = pad_axis(unsqueeze(v, {axis + 1}), axis + 1, 0, step - 1);
  Dims dims = v.shape().dims;
  dims[static_cast<std::size_t>(axis)] = dims[static_cast<std::size_t>(axis)] * Dim(step);
  return reshape_to(apart, dims);
}

// x along one axis, counted from the start of the padding, is at stride * q + r: each `phase` r is a
// convolution of dy with the taps r, r + stride, ... of w. `taps` are those of a phase.
struct Phases {
  std::int64_t count = 1, taps = 1, dilation = 1;
  Dim first, places;  // the range of q that x is in
  Dim low, high;      // pads of dy
};

// Takes what does not reach x off dy.
Phases phases_of(const Slide& s, int axis, Value& dy) {
  Phases p;
  p.count = std::min(s.stride, s.taps);
  p.taps = (s.taps + s.stride - 1) / s.stride;
  p.dilation = s.stride == 1 ? s.dilation : 1;
  p.first = floor_div(s.low, s.stride);
  p.places = ceil_div(s.low + s.size, s.stride) - p.first;
  const Dim reach = p.dilation * (p.taps - 1), before = max(p.first - reach, 0),
            after = max(s.positions - before, 0),
            left = min(after, max(p.first + p.places - before, 0));
  dy = slice_axis(dy, axis, min(before, s.positions), left);
  p.low = max(reach - p.first, 0);
  p.high = p.places + reach - left - p.low;
  return p;
}

// dx: a convolution of dy that computes all phases as channels, which are then interleaved.
Value derivative_of_input(const Convolved& c) {
  const int space = static_cast<int>(c.axes.size());
  Value dy = c.dy, w = split_in(c.w, 0, c.groups, c.out());  // [groups, out, in, window]
  const Dim in = c.in(), channels = c.groups * in;
  std::vector<Slide> axes = c.axes;
  std::vector<Phases> phases;
  Axes order = {0, 2}, taps, flipped;
  for (int i = 0; i < space; ++i) {
    Slide& s = axes[static_cast<std::size_t>(i)];
    if (s.stride > 1 && s.dilation > 1) {  // dilated taps do not divide into phases
      dy = spread_axis(dy, i + 2, s.stride);
      s.positions = s.positions * Dim(s.stride);
      s.stride = 1;
    }
    const Phases& p = phases.emplace_back(phases_of(s, i + 2, dy));
    const int axis = 3 + 2 * i;
    w = pad_axis(w, axis, 0, p.count * p.taps - s.taps);
    w = split_in(w, axis, p.taps, p.count);
    order.push_back(axis + 1);
    taps.push_back(axis);
    flipped.push_back(i + 2);
  }
  order.push_back(1);
  order.insert(order.end(), taps.begin(), taps.end());
  Dims weights = {channels, c.out()}, low, high, dilations, apart = {c.batch(), channels};
  for (const Phases& p : phases) {
    weights[0] = weights[0] * Dim(p.count);
    weights.push_back(p.taps);
    low.push_back(p.low);
    high.push_back(p.high);
    dilations.push_back(p.dilation);
    apart.push_back(p.count);
  }
  w = reverse_axes(reshape_to(transpose_by(w, order), weights), flipped);
  Value dx = ops::conv(
      Values{dy, w}, attrs_of(Dims(phases.size(), 1), dilations, low, high, c.groups));
  // [batch, channels, phases, places]
  Dims joined = {c.batch(), channels};
  Axes interleaved = {0, 1};
  for (int i = 0; i < space; ++i) {
    const auto k = static_cast<std::size_t>(i);
    apart.push_back(phases[k].places);
    joined.push_back(phases[k].places * Dim(axes[k].stride));
    interleaved.insert(interleaved.end(), {2 + space + i, 2 + i});
  }
  dx = transpose_by(reshape_to(dx, apart), interleaved);
  for (int i = 0; i < space; ++i) {
    const auto k = static_cast<std::size_t>(i);
    dx = pad_axis(dx, 3 + 2 * i, 0, axes[k].stride - phases[k].count);
  }
  dx = reshape_to(dx, joined);
  for (int i = 0; i < space; ++i) {
    const auto k = static_cast<std::size_t>(i);
    dx = slice_axis(dx, i + 2, axes[k].low - phases[k].first * Dim(axes[k].stride), axes[k].size);
  }
  return dx;
}

// dw: a convolution whose images are the channels of x, whose channels are its images, and whose
// window is dy.
Value derivative_of_weights(const Convolved& c) {
  const int space = static_cast<int>(c.axes.size());
  Value x = split_in(c.x, 1, c.groups, c.in());
  Axes order = {2, 1, 0}, swapped = {1, 0};
  Dims images = {c.in(), c.groups * c.batch()}, strides, dilations, low, high;
  for (int i = 0; i < space; ++i) {
    const Slide& s = c.axes[static_cast<std::size_t>(i)];
    // What the last window position leaves over is taken from the padding, then from x.
    const Dim needed = Dim(s.stride) * (s.positions - Dim(1)) + Dim(s.dilation * (s.taps - 1) + 1),
              over = s.size + s.low + s.high - needed, of_x = max(over - s.high, 0);
    x = slice_axis(x, i + 3, 0, s.size - of_x);
    order.push_back(i + 3);
    swapped.push_back(i + 2);
    images.push_back(s.size - of_x);
    strides.push_back(s.dilation);
    dilations.push_back(s.stride);
    low.push_back(s.low);
    high.push_back(max(s.high - over, 0));
  }
  x = reshape_to(transpose_by(x, order), images);
  const Value dw = ops::conv(Values{x, transpose_by(c.dy, swapped)},
                             attrs_of(strides, dilations, low, high, c.groups));
  return transpose_by(dw, swapped);
}

// dw for open sizes: a product of dy with what each tap reads.
Value derivative_by_products(const Convolved& c) {
  const int space = static_cast<int>(c.axes.size());
  std::int64_t count = 1;
  Value x = c.x;
  AxisPairs contracted = {{0, 0}};
  for (int i = 0; i < space; ++i) {
    const Slide& s = c.axes[static_cast<std::size_t>(i)];
    count *= s.taps;
    x = pad_axis(x, i + 2, s.low, s.high);
    contracted.emplace_back(i + 3, i + 3);
  }
  if (count > most_products)
    throw UserError("conv: the derivative for a window of ", count,
                    " elements is not supported for open sizes, expected at most ", most_products,
                    "; make the sizes of ", c.x.type(), " numbers");
  x = split_in(x, 1, c.groups, c.in());
  const Value dy = split_in(c.dy, 1, c.groups, c.out());
  Values parts;  // [groups, out, in]
  for (std::int64_t k = 0; k < count; ++k) {
    Value under = x;
    std::int64_t rest = k;
    for (int i = space; i-- > 0;) {
      const Slide& s = c.axes[static_cast<std::size_t>(i)];
      under = slice_axis(under, i + 3, rest % s.taps * s.dilation, s.positions, s.stride);
      rest /= s.taps;
    }
    parts.push_back(unsqueeze(dot_general(dy, under, {{1, 1}}, contracted), {3}));
  }
  return reshape_to(concat_values(parts, 3), c.w.shape().dims);
}

}  // namespace

Values grads::conv(const Call& c, std::span<const Value>, std::span<const Value> dys) {
  const Value x = c.operands[0], w = c.operands[1];
  if (!is_float(x.dtype())) return Values(2);
  const ConvAxes axes = conv_axes(c.attrs, x.rank());
  Axes order = {axes.batch, axes.channel}, weight_order = {axes.out, axes.in};
  order.insert(order.end(), axes.space.begin(), axes.space.end());
  weight_order.insert(weight_order.end(), axes.weight_space.begin(), axes.weight_space.end());
  Convolved all{transpose_by(x, order), transpose_by(w, weight_order),
                transpose_by(cast_to(dys[0], w.dtype()), order), c.attrs.integer("groups"), {}};
  bool is_static = x.shape()[axes.batch].is_number();
  for (std::size_t i = 0; i < axes.space.size(); ++i) {
    all.axes.push_back({x.shape()[axes.space[i]], dys[0].shape()[axes.space[i]],
                        w.shape()[axes.weight_space[i]].number(),
                        number_at(c.attrs, "strides", i), number_at(c.attrs, "dilations", i),
                        c.attrs.dims("pads_low")[i], c.attrs.dims("pads_high")[i]});
    is_static = is_static && dys[0].shape()[axes.space[i]].is_number();
  }
  const auto back = [](const Value& d, const Axes& from) {
    Axes perm(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      perm[static_cast<std::size_t>(from[i])] = static_cast<int>(i);
    return transpose_by(d, perm);
  };
  if (w.shape().count() == Dim(0)) return Values(2);
  const Value dx = derivative_of_input(all);
  const Value dw = is_static && dys[0].shape().count() != Dim(0) && all.batch() != Dim(0)
                       ? derivative_of_weights(all)
                       : derivative_by_products(all);
  return {back(dx, order), back(dw, weight_order)};
}

}  // namespace hone
