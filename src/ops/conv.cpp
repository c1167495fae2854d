// Convolution over one to three spatial axes.
#include <algorithm>

#include "ops/check.h"
#include "ops/contraction.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"
#include "ops/window.h"

namespace hone {

ConvAxes conv_axes(const Attrs& attrs, int rank) {
  ConvAxes x;
  bool last = attrs.integer_or("channels_last", 0) != 0;
  if (last) {
    x.channel = rank - 1;
    x.in = rank - 2;
    x.out = rank - 1;
  }
  for (int i = 0; i < rank - 2; ++i) {
    x.space.push_back(last ? i + 1 : i + 2);
    x.weight_space.push_back(last ? i : i + 2);
  }
  return x;
}

namespace {

std::vector<Type> infer_conv(const Call& c) {
  expect_operands(c, 2);
  const Shape &x = c.shape(0), &w = c.shape(1);
  if (x.rank() < 3 || x.rank() > 5 || w.rank() != x.rank())
    throw UserError(
        "conv: operands are ", c.type(0), " and ", c.type(1),
        ", expected equal ranks: batch or channels, channels, and one to three spatial axes");
  std::int64_t groups = integer_attr(c, "groups", 1);
  integer_attr(c, "channels_last", 0);
  ConvAxes axes = conv_axes(c.attrs, x.rank());
  auto spatial = static_cast<std::size_t>(x.rank() - 2);
  std::vector<std::int64_t> strides = numbers_attr(c, "strides", spatial, 1),
                            dilations = numbers_attr(c, "dilations", spatial, 1);
  const Dims &low = sizes_attr(c, "pads_low", spatial, 0),
             &high = sizes_attr(c, "pads_high", spatial, 0);
  equal_sizes(c, w[axes.in] * Dim(groups), x[axes.channel], "channels of the weights (times ",
              groups, " groups) and of the input");
  if (!w.is_static() || w[axes.out].number() % groups != 0)
    throw UserError("conv: the weights are ", c.type(1),
                    ", expected numbers as sizes and a multiple of the ", groups,
                    " groups as output channels");
  Shape y = x;
  y[axes.channel] = w[axes.out];
  for (std::size_t i = 0; i < spatial; ++i)
    y[axes.space[i]] =
        window_positions(c, x[axes.space[i]], low[i] + high[i], w[axes.weight_space[i]].number(),
                         strides[i], dilations[i], axes.space[i]);
  return {Type(contraction_dtype(c), std::move(y))};
}

Wide permuted(const Wide& x, const Axes& perm) {
  Sizes strides = row_major(x.dims), dims, from;
  for (int p : perm) {
    dims.push_back(x.dims[static_cast<std::size_t>(p)]);
    from.push_back(strides[static_cast<std::size_t>(p)]);
  }
  return take_box(x, {0, from}, dims);
}

Axes with_space(int first, int second, const Axes& space) {
  Axes perm = {first, second};
  perm.insert(perm.end(), space.begin(), space.end());
  return perm;
}

struct Problem {
  std::int64_t batch, groups, in, out;  // channels per group
  std::int64_t x_size, y_size, taps;    // spatial elements
  std::vector<WindowTap> each;
};

// to[k] += products of one element from each of `channels` rows, one channel after the other.
template <int channels, class U>
void add_products(const Problem& p, const U* from, const U* w, U* __restrict to, std::int64_t n,
                  std::int64_t from_step, std::int64_t to_step) {
  U factors[channels];
  for (int c = 0; c < channels; ++c) factors[c] = w[c * p.taps];
  const std::int64_t row = p.x_size;
  const auto sum = [&](U total, std::int64_t at) {
    for (int c = 0; c < channels; ++c) total += factors[c] * from[c * row + at];
    return total;
  };
  if (from_step == 1 && to_step == 1)
    for (std::int64_t k = 0; k < n; ++k) to[k] = sum(to[k], k);
  else
    for (std::int64_t k = 0; k < n; ++k) to[k * to_step] = sum(to[k * to_step], k * from_step);
}

// Computes adjacent output planes of a group, which must be zero before. Each element is summed
// over taps, then channels, in order; pieces of rows are read once for all planes.
template <class U>
void add_planes(const Problem& p, const U* x, const U* w, U* y, std::int64_t planes) {
  constexpr int together = 8;
  constexpr std::int64_t piece = 256;
  const auto add = [&]<int channels>(std::int64_t i, std::int64_t t, auto& at, auto& step,
                                     std::int64_t first, std::int64_t n) {
    for (std::int64_t o = 0; o < planes; ++o)
      add_products<channels>(p, x + i * p.x_size + at[1] + first * step[1],
                             w + (o * p.in + i) * p.taps + t,
                             y + o * p.y_size + at[0] + first * step[0], n, step[1], step[0]);
  };
  for (std::int64_t t = 0; t < p.taps; ++t) {
    const WindowTap& tap = p.each[static_cast<std::size_t>(t)];
    tap.rows.each(tap.first, [&](auto& at, auto& step, std::int64_t n) {
      for (std::int64_t k = 0; k < n; k += piece) {
        std::int64_t i = 0;
        for (; i + together <= p.in; i += together)
          add.template operator()<together>(i, t, at, step, k, std::min(piece, n - k));
        for (; i < p.in; ++i) add.template operator()<1>(i, t, at, step, k, std::min(piece, n - k));
      }
    });
  }
}

// The numbers themselves if they have type U, else `copy` filled with them.
template <class U, class T>
const U* numbers_as(const std::vector<T>& from, std::vector<U>& copy) {
  if constexpr (std::is_same_v<U, T>) {
    return from.data();
  } else {
    copy.resize(from.size());
    std::ranges::transform(from, copy.begin(), [](T x) { return static_cast<U>(x); });
    return copy.data();
  }
}

// Multiplies and sums T in type U.
template <class U, class T>
void convolve(const Problem& p, const std::vector<T>& x, const std::vector<T>& w,
              std::vector<T>& y) {
  constexpr std::int64_t together = 16;  // output channels computed together
  const std::int64_t blocks = (p.out + together - 1) / together;
  std::vector<U> x_copy, w_copy;
  const U *in = numbers_as<U>(x, x_copy), *weights = numbers_as<U>(w, w_copy);
  parallel_chunks(p.batch * p.groups * blocks,
                  p.batch * p.groups * p.out * p.in * p.taps * p.y_size,
                  [&](std::int64_t from, std::int64_t to) {
                    std::vector<U> sums;
                    for (std::int64_t k = from; k < to; ++k) {
                      const std::int64_t part = k / blocks, first = k % blocks * together,
                                         o = part % p.groups * p.out + first,
                                         planes = std::min(together, p.out - first);
                      sums.assign(static_cast<std::size_t>(planes * p.y_size), U{});
                      add_planes(p, in + part * p.in * p.x_size, weights + o * p.in * p.taps,
                                 sums.data(), planes);
                      std::ranges::copy(sums, y.begin() + (part * p.out + first) * p.y_size);
                    }
                  });
}

std::vector<Wide> eval_conv(const Evaluation& e) {
  ConvAxes axes = conv_axes(e.attrs, e.result_types[0].rank());
  Axes order = with_space(axes.batch, axes.channel, axes.space);
  Wide x = permuted(*e.inputs[0], order);
  Wide w = permuted(*e.inputs[1], with_space(axes.out, axes.in, axes.weight_space));
  Sizes y_dims = e.result_dims(), ordered;
  for (int a : order) ordered.push_back(y_dims[static_cast<std::size_t>(a)]);
  Wide y(e.result_types[0].dtype, ordered);
  auto space = [](const Wide& t) { return Sizes(t.dims.begin() + 2, t.dims.end()); };
  Problem p{x.dims[0],          e.attrs.integer("groups"), w.dims[1],          0,
            count_of(space(x)), count_of(space(y)),        count_of(space(w)), {}};
  p.out = w.dims[0] / p.groups;
  p.each = window_taps({space(x), space(y), space(w), e.sizes(e.attrs.dims("strides")),
                        e.sizes(e.attrs.dims("dilations")), e.sizes(e.attrs.dims("pads_low"))});
  if (y.is_real() && e.round_sums && y.dtype != DType::f64)
    convolve<float>(p, x.reals, w.reals, y.reals);
  else if (y.is_real())
    convolve<double>(p, x.reals, w.reals, y.reals);
  else
    convolve<std::uint64_t>(p, x.integers, w.integers, y.integers);
  for (std::int64_t& n : y.integers) n = wrap(y.dtype, n);
  Axes back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return {permuted(y, back)};
}

struct Shape2 {
  Dims strides, dilations, low, high;
  int groups = 1;
  bool last = false;
};

Attrs conv_attrs(Shape2 s) {
  return {{"strides", s.strides}, {"dilations", s.dilations}, {"pads_low", s.low},
          {"pads_high", s.high},  {"groups", s.groups},       {"channels_last", int{s.last}}};
}

}  // namespace

constinit const Op ops::conv = {
    .name = "conv",
    .doc =
        "Cross-correlation of x with weights (operand 1) over one to three spatial axes, padded "
        "with nothing (pads add no products). Attributes strides, dilations, pads_low, pads_high "
        "(one entry for each spatial axis), groups, channels_last. Channels-first: x [N,C,...], "
        "weights [O,C/groups,...]; channels-last: x [N,...,C], weights [...,C/groups,O]. Narrow "
        "floats are summed in f32 and rounded once. Optional attributes dtype and mode as for dot.",
    .kind = OpKind::contraction,
    .infer = infer_conv,
    .grad = grads::conv,
    .eval = eval_conv,
    .samples = []() -> Samples {
      Dims one = {1, 1}, none = {0, 0};
      Dim n = sample_symbol();
      return {
          {{f32({1, 3, 5, 6}), f32({4, 3, 3, 3})}, conv_attrs({one, one, one, one})},
          {{f32({2, 4, 7, 7}), f32({6, 2, 3, 1})}, conv_attrs({{2, 1}, one, {1, 0}, {0, 0}, 2})},
          {{f32({1, 5, 6, 3}), f32({3, 3, 3, 4})},
           conv_attrs({one, {2, 1}, {2, 1}, {2, 1}, 1, true})},
          {{f32({1, 4, 4, 6}), f32({3, 3, 1, 6})}, conv_attrs({one, one, one, one, 6, true})},
          {{f16({1, 8, 5, 5}), f16({8, 8, 1, 1})}, conv_attrs({one, one, none, none})},
          {{f32({n, 2, 9}), f32({3, 2, 4})}, conv_attrs({{3}, {1}, {0}, {2}})},
          {{f32({1, 2, 3, 4, 3}), f32({2, 2, 2, 2, 2})},
           conv_attrs({{1, 2, 1}, {1, 1, 1}, {0, 0, 1}, {1, 0, 0}})},
          {{Type(DType::bf16, {1, 2, 4}), Type(DType::bf16, {2, 1, 3})},
           conv_attrs({{1}, {1}, {1}, {1}, 2})},
          {{i32({1, 1, 5}), i32({1, 1, 2})}, conv_attrs({{1}, {1}, {0}, {0}})},
          {{f32({0, 2, 4}), f32({3, 2, 2})}, conv_attrs({{1}, {1}, {0}, {0}})}};
    },
};

}  // namespace hone
