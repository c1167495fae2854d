// The derivatives of convolutions, as convolutions, and of window reductions. Convolutions are
// channels-first here.
#include <limits>

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
  Dim in() const { return w.shape()[1]; }                      // channels of a group
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

// An element of x, counted from the start of the padding, is at stride * q + r along an axis. All
// with one r, a phase, are reached by the taps r, r + stride, ...: `taps` of them, by windows q,
// q - dilation, ...
struct Phases {
  std::int64_t count = 1, taps = 1, dilation = 1;
  Dim first, places;  // the range of q that x is in
  Dim low, high;      // pads of dy
};

// Cuts off what of dy does not reach x.
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

// Zeros between the elements of dy make a window of any stride one of stride 1.
void spread(Slide& s, int axis, Value& dy) {
  dy = spread_axis(dy, axis, s.stride);
  s.positions = s.positions * Dim(s.stride);
  s.stride = 1;
}

// The axes [place, phase] as the axis of x that they are.
Value interleaved(Value v, int axis, const Slide& s, const Phases& p) {
  Dims dims = v.shape().dims;
  dims.erase(dims.begin() + axis + 1);
  dims[static_cast<std::size_t>(axis)] = p.places * Dim(s.stride);
  v = reshape_to(pad_axis(v, axis + 1, 0, s.stride - p.count), dims);
  return slice_axis(v, axis, s.low - p.first * Dim(s.stride), s.size);
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
    // Dilated taps do not divide into phases.
    if (s.stride > 1 && s.dilation > 1) spread(s, i + 2, dy);
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
  Value dx =
      ops::conv(Values{dy, w}, attrs_of(Dims(phases.size(), 1), dilations, low, high, c.groups));
  // [batch, channels, phases, places]
  Axes pairs = {0, 1};
  for (int i = 0; i < space; ++i) {
    apart.push_back(phases[static_cast<std::size_t>(i)].places);
    pairs.insert(pairs.end(), {2 + space + i, 2 + i});
  }
  dx = transpose_by(reshape_to(dx, apart), pairs);
  for (int i = 0; i < space; ++i)
    dx = interleaved(dx, i + 2, axes[static_cast<std::size_t>(i)],
                     phases[static_cast<std::size_t>(i)]);
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
    // What the last window position leaves over is taken from the padding, then from x, then from
    // the padding before it.
    const Dim needed = Dim(s.stride) * (s.positions - Dim(1)) + Dim(s.dilation * (s.taps - 1) + 1),
              over = s.size + s.low + s.high - needed, of_x = min(max(over - s.high, 0), s.size);
    x = slice_axis(x, i + 3, 0, s.size - of_x);
    order.push_back(i + 3);
    swapped.push_back(i + 2);
    images.push_back(s.size - of_x);
    strides.push_back(s.dilation);
    dilations.push_back(s.stride);
    low.push_back(s.low - max(over - s.high - s.size, 0));
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

// ---- window reductions

// Number k of the elements under a window, in row-major order.
std::vector<std::int64_t> offsets(std::int64_t k, std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> out(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0; k /= sizes[i]) out[i] = k % sizes[i];
  return out;
}

std::int64_t product_of(std::span<const std::int64_t> sizes) {
  std::int64_t n = 1;
  for (const std::int64_t s : sizes) n *= s;
  return n;
}

// Numbers of places.
Value number_value(Graph& g, std::int64_t n) {
  return scalar(g, static_cast<double>(n), DType::i32);
}

// A window over the axes of x along which it is more than each element.
struct Windowed {
  Value x, dy;
  Axes axes;
  std::vector<Slide> slides;
};

Windowed windowed(const Call& c, Value dy) {
  Windowed w{c.operands[0], dy, {}, {}};
  for (int axis = 0; axis < w.x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const Slide s{w.x.shape()[axis],
                  dy.shape()[axis],
                  number_at(c.attrs, "window", i),
                  number_at(c.attrs, "strides", i),
                  number_at(c.attrs, "dilations", i),
                  c.attrs.dims("pads_low")[i],
                  c.attrs.dims("pads_high")[i]};
    if (s.taps == 1 && s.stride == 1 && s.low == Dim(0) && s.high == Dim(0)) continue;
    w.axes.push_back(axis);
    w.slides.push_back(s);
  }
  return w;
}

// dx of sums: sums of dy over the windows that reach an element.
Value derivative_of_sums(Windowed w) {
  const auto rank = static_cast<std::size_t>(w.x.rank());
  std::vector<Phases> phases;
  Dims window(rank, 1), dilations(rank, 1), low(rank, 0), high(rank, 0);
  for (std::size_t i = 0; i < w.axes.size(); ++i) {
    Slide& s = w.slides[i];
    // All phases must have the same taps.
    if (s.stride > 1 && (s.dilation > 1 || (s.taps > s.stride && s.taps % s.stride != 0)))
      spread(s, w.axes[i], w.dy);
    const Phases& p = phases.emplace_back(phases_of(s, w.axes[i], w.dy));
    const auto axis = static_cast<std::size_t>(w.axes[i]);
    window[axis] = p.taps;
    dilations[axis] = p.dilation;
    low[axis] = p.low;
    high[axis] = p.high;
  }
  Value d = ops::reduce_window(w.dy, {{"kind", std::string("sum")},
                                      {"window", window},
                                      {"strides", Dims(rank, 1)},
                                      {"dilations", dilations},
                                      {"pads_low", low},
                                      {"pads_high", high}});
  for (std::size_t i = w.axes.size(); i-- > 0;) {
    const int axis = w.axes[i];
    d = unsqueeze(d, {axis + 1});
    Shape all = d.shape();
    all[axis + 1] = phases[i].count;
    d = interleaved(broadcast_to(d, all), axis, w.slides[i], phases[i]);
  }
  return d;
}

// For each window the number of its first maximum, or of its last NaN, as PyTorch takes them. An
// axis of the numbers has `sizes` elements.
Value place_of_extreme(const Windowed& w, bool is_max, std::span<const std::int64_t> sizes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Dims low(static_cast<std::size_t>(w.x.rank()), 0), high = low;
  std::vector<std::int64_t> taps;
  for (std::size_t i = 0; i < w.axes.size(); ++i) {
    low[static_cast<std::size_t>(w.axes[i])] = w.slides[i].low;
    high[static_cast<std::size_t>(w.axes[i])] = w.slides[i].high;
    taps.push_back(w.slides[i].taps);
  }
  const std::int64_t count = product_of(taps);
  if (count > most_products)
    throw UserError("the derivative of a window of ", count,
                    " elements is not supported, expected at most ", most_products);
  const Value padded =
      pad_with(w.x, scalar(w.x.graph(), is_max ? -infinity : infinity, w.x.dtype()), low, high);
  Value best, place;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::vector<std::int64_t> at = offsets(k, taps);
    Value v = padded;
    std::int64_t number = 0;
    for (std::size_t i = 0; i < w.axes.size(); ++i) {
      const Slide& s = w.slides[i];
      v = slice_axis(v, w.axes[i], at[i] * s.dilation, s.positions, s.stride);
      number = number * sizes[i] + at[i];
    }
    const Value here = broadcast_to(number_value(w.x.graph(), number), v.shape());
    if (!best) {
      best = v, place = here;
      continue;
    }
    const Value is_better =
        ops::bit_or(is_max ? ops::lt(best, v) : ops::lt(v, best), ops::bit_not(ops::eq(v, v)));
    best = ops::select(is_better, v, best);
    place = ops::select(is_better, here, place);
  }
  return place;
}

// dx of extremes: of each window that reaches an element, dy if that is its place.
Value derivative_of_extremes(Windowed w, bool is_max) {
  std::vector<std::int64_t> sizes, taps;
  for (const Slide& s : w.slides)
    sizes.push_back(s.dilation > 1 ? s.taps : (s.taps + s.stride - 1) / s.stride * s.stride);
  Value place = place_of_extreme(w, is_max, sizes);
  std::vector<Phases> phases;
  for (std::size_t i = 0; i < w.axes.size(); ++i) {
    Slide &s = w.slides[i], same = s;
    if (s.stride > 1 && s.dilation > 1) {
      spread(same, w.axes[i], place);
      spread(s, w.axes[i], w.dy);
    }
    phases_of(s, w.axes[i], place);
    const Phases& p = phases.emplace_back(phases_of(s, w.axes[i], w.dy));
    place = pad_axis(place, w.axes[i], p.low, p.high);
    w.dy = pad_axis(w.dy, w.axes[i], p.low, p.high);
    taps.push_back(p.taps);
  }
  Shape apart = w.x.shape();
  for (std::size_t i = w.axes.size(); i-- > 0;) {
    apart[w.axes[i]] = phases[i].places;
    apart.dims.insert(apart.dims.begin() + w.axes[i] + 1, phases[i].count);
  }
  // The number of the phase's first tap, the same at all places.
  Shape each = apart;
  for (Dim& d : each.dims) d = 1;
  for (std::size_t i = 0; i < w.axes.size(); ++i)
    each[w.axes[i] + static_cast<int>(i) + 1] = phases[i].count;
  Value first = broadcast_to(number_value(place.graph(), 0), each);
  for (std::size_t i = 0; i < w.axes.size(); ++i)
    first = first * static_cast<double>(sizes[i]) +
            iota_value(first.graph(), first.dtype(), each, w.axes[i] + static_cast<int>(i) + 1);
  Value sum;
  for (std::int64_t k = 0; k < product_of(taps); ++k) {
    const std::vector<std::int64_t> at = offsets(k, taps);
    std::int64_t number = 0;
    Value d = w.dy, of = place;
    for (std::size_t i = w.axes.size(); i-- > 0;) {
      const Phases& p = phases[i];
      for (Value* v : {&d, &of})
        *v = unsqueeze(slice_axis(*v, w.axes[i], (p.taps - 1 - at[i]) * p.dilation, p.places),
                       {w.axes[i] + 1});
    }
    for (std::size_t i = 0; i < w.axes.size(); ++i)
      number = number * sizes[i] + at[i] * w.slides[i].stride;
    d = broadcast_to(d, apart);
    const Value is_place =
        ops::eq(broadcast_to(of, apart), broadcast_to(first + static_cast<double>(number), apart));
    d = ops::select(is_place, d, constant_like(d, 0));
    sum = sum ? sum + d : d;
  }
  for (std::size_t i = 0; i < w.axes.size(); ++i)
    sum = interleaved(sum, w.axes[i], w.slides[i], phases[i]);
  return sum;
}

}  // namespace

Values grads::conv(const Call& c, std::span<const Value>, std::span<const Value> dys) {
  const Value x = c.operands[0], w = c.operands[1];
  if (!is_float(x.dtype())) return Values(2);
  const ConvAxes axes = conv_axes(c.attrs, x.rank());
  Axes order = {axes.batch, axes.channel}, weight_order = {axes.out, axes.in};
  order.insert(order.end(), axes.space.begin(), axes.space.end());
  weight_order.insert(weight_order.end(), axes.weight_space.begin(), axes.weight_space.end());
  Convolved all{transpose_by(x, order),
                transpose_by(w, weight_order),
                transpose_by(cast_to(dys[0], w.dtype()), order),
                c.attrs.integer("groups"),
                {}};
  bool is_static = x.shape()[axes.batch].is_number();
  for (std::size_t i = 0; i < axes.space.size(); ++i) {
    all.axes.push_back({x.shape()[axes.space[i]], dys[0].shape()[axes.space[i]],
                        w.shape()[axes.weight_space[i]].number(), number_at(c.attrs, "strides", i),
                        number_at(c.attrs, "dilations", i), c.attrs.dims("pads_low")[i],
                        c.attrs.dims("pads_high")[i]});
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

Values grads::window(const Call& c, std::span<const Value>, std::span<const Value> dys) {
  const Value x = c.operands[0];
  const std::string& kind = c.attrs.get<std::string>("kind");
  const Windowed w = windowed(c, cast_to(dys[0], sum_dtype(x.dtype())));
  if (w.axes.empty()) return {dys[0]};
  return {cast_to(kind == "sum" ? derivative_of_sums(w) : derivative_of_extremes(w, kind == "max"),
                  x.dtype())};
}

}  // namespace hone
