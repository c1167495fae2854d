// Fourier transforms, windows and mel filters. A transform is a contraction with cosines and sines;
// for a known length that is long and has factors, two contractions with the factors.
#include <cmath>
#include <numbers>

#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/node/open.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

// The angle 2 pi (row * column mod length) / length, [rows, columns] in f64: the product is reduced
// exactly as an integer first.
Value angles(hone::Graph& g, const Dim& rows, const Dim& columns, const Dim& length) {
  Shape shape{rows, columns};
  Value product = iota_value(g, DType::i64, shape, 0) * iota_value(g, DType::i64, shape, 1);
  Value n = broadcast_to(size_value(g, length, DType::i64), shape);
  Value part = cast_to(ops::rem(product, n), DType::f64) / cast_to(n, DType::f64);
  return part * (2 * std::numbers::pi);
}

// [.., n] with its last axis cut or zero-padded to `length`.
Value fitted(Value x, const Dim& length) {
  const int last = x.rank() - 1;
  const Dim have = x.shape()[last], taken = min(have, length);
  x = slice_axis(x, last, 0, taken);
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
  high.back() = length - taken;
  return pad_with(x, scalar(x.graph(), 0, x.dtype()), low, high);
}

Value contracted(Value x, Value matrix) {
  return dot_general(x, cast_to(matrix, x.dtype()), {}, {{x.rank() - 1, 0}});
}

struct Complex {
  Value real, imaginary;  // [.., n]; imaginary may be null
};

template <class F>
Complex each_part(const Complex& x, const F& f) {
  return {f(x.real), x.imaginary ? f(x.imaginary) : Value()};
}

// exp(-+ 2 pi i r c / length), [rows, columns] in f64.
Complex roots(hone::Graph& g, const Dim& rows, const Dim& columns, const Dim& length,
              bool inverse) {
  Value angle = angles(g, rows, columns, length);
  return {ops::cos(angle), inverse ? ops::sin(angle) : -ops::sin(angle)};
}

// sum over t of x[t] exp(-+ 2 pi i t k / length) for k below `count`.
Complex summed(const Complex& x, const Dim& length, const Dim& count, bool inverse) {
  const auto [cosine, sine] = roots(x.real.graph(), length, count, length, inverse);
  Complex y{contracted(x.real, cosine), contracted(x.real, sine)};
  if (!x.imaginary) return y;
  return {y.real - contracted(x.imaginary, sine), y.imaginary + contracted(x.imaginary, cosine)};
}

// The largest factor of the length up to its square root, if two steps with the factors are faster
// than one contraction, for one transform and for a hundred; else 1.
std::int64_t small_factor(const Dim& length, bool is_real) {
  const std::int64_t least = is_real ? 320 : 192;
  if (!length.is_number() || length.number() < least) return 1;
  auto factor = static_cast<std::int64_t>(std::sqrt(static_cast<double>(length.number())));
  while (length.number() % factor != 0) --factor;
  return factor;
}

Complex product(const Complex& a, const Complex& b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

// Reshapes [.., n] to [.., tail].
Value with_tail(Value x, const Dims& tail) {
  Dims dims(x.shape().dims.begin(), x.shape().dims.end() - 1);
  dims.insert(dims.end(), tail.begin(), tail.end());
  return reshape_to(x, dims);
}
Value joined_tail(Value x) {
  Dims dims(x.shape().dims.begin(), x.shape().dims.end() - 2);
  dims.push_back(x.shape()[-2] * x.shape()[-1]);
  return reshape_to(x, dims);
}

// The same in two steps (Cooley and Tukey, Math. Comp. 19, 1965). With length = n m, t = m r + s
// and k = p + n q: m transforms over r, of length n, a product with exp(-+ 2 pi i s p / length),
// and n transforms over s, of length m.
Complex factored(const Complex& x, const Dim& length, const Dim& count, bool inverse) {
  const Dim n = small_factor(length, !x.imaginary), m = floor_div(length, n);
  if (n == Dim(1)) return summed(x, length, count, inverse);
  Complex y = each_part(x, [&](const Value& v) { return transpose_matrix(with_tail(v, {n, m})); });
  y = factored(y, n, n, inverse);
  y = product(y, each_part(roots(x.real.graph(), m, n, length, inverse), [&](const Value& v) {
                return broadcast_to(cast_to(v, y.real.dtype()), y.real.shape());
              }));
  const Dim columns = floor_div(count - Dim(1), n) + Dim(1);
  y = factored(each_part(y, transpose_matrix), m, columns, inverse);
  return each_part(y, [&](const Value& v) {
    return slice_axis(joined_tail(transpose_matrix(v)), -1, 0, count);
  });
}

// The same for a complex signal of even length 2 m: the sums of its halves give the even
// frequencies, their differences times exp(-+ 2 pi i s / length) the odd ones. Half the products,
// and no larger error.
Complex halved(const Complex& x, const Dim& length, bool inverse) {
  const Dim m = floor_div(length, 2);
  auto half = [&](const Dim& start) {
    return each_part(x, [&](const Value& v) { return slice_axis(v, -1, start, m); });
  };
  const Complex low = half(0), high = half(m);
  const Complex turn = each_part(roots(x.real.graph(), 2, m, length, inverse), [&](const Value& v) {
    return broadcast_to(cast_to(take_axis(v, 0, 1), x.real.dtype()), low.real.shape());
  });
  const Complex odd = product({low.real - high.real, low.imaginary - high.imaginary}, turn);
  const int last = x.real.rank() - 1;
  auto both = [&](const Value& a, const Value& b) {
    return concat_values(Values{unsqueeze(a, {last}), unsqueeze(b, {last})}, last);
  };
  const Complex y = summed(
      {both(low.real + high.real, odd.real), both(low.imaginary + high.imaginary, odd.imaginary)},
      m, m, inverse);
  return each_part(y, [](const Value& v) { return joined_tail(transpose_matrix(v)); });
}

Complex transformed(const Complex& x, const Dim& length, const Dim& count, bool inverse) {
  const Complex in = each_part(x, [&](const Value& v) { return fitted(v, length); });
  const bool is_even = length.is_number() && length.number() % 2 == 0;
  const bool is_halved =
      in.imaginary && is_even && count == length && small_factor(length, false) == 1;
  Complex y = is_halved ? halved(in, length, inverse) : factored(in, length, count, inverse);
  if (inverse) {
    Value n = size_value(x.real.graph(), length, y.real.dtype());
    y = {y.real / n, y.imaginary / n};
  }
  return y;
}

// The real signal whose first length / 2 + 1 frequencies are given.
Value real_signal(const Complex& x, const Dim& length) {
  hone::Graph& g = x.real.graph();
  const Dim count = floor_div(length, 2) + Dim(1);
  if (x.imaginary && small_factor(length, true) > 1) {
    // The others are those of the second half, mirrored and conjugated.
    const Complex half = each_part(x, [&](const Value& v) { return fitted(v, count); });
    auto all = [&](const Value& v, bool is_turned) {
      const Value rest = reverse_axes(slice_axis(v, -1, 1, length - count), {v.rank() - 1});
      return concat_values(Values{v, is_turned ? -rest : rest}, v.rank() - 1);
    };
    return transformed({all(half.real, false), all(half.imaginary, true)}, length, length, true)
        .real;
  }
  Value k = counted(g, DType::i64, count),
        n = broadcast_to(size_value(g, length, DType::i64), k.shape());
  // All frequencies but the first and the middle one count twice.
  Value alone = ops::bit_or(ops::eq(k, integer_like(k, 0)), ops::eq(k + k, n));
  Value times_counted = where_or(alone, constant_like(cast_to(k, DType::f64), 1), 2);
  Value weight = unsqueeze(times_counted / cast_to(n, DType::f64), {1});
  Value angle = angles(g, count, length, length);
  Value y = contracted(fitted(x.real, count), times(ops::cos(angle), weight));
  if (!x.imaginary) return y;
  return y - contracted(fitted(x.imaginary, count), times(ops::sin(angle), weight));
}

// [.., n, .., 1 or 2] as complex numbers with axis n last.
Complex split_complex(NodeContext& c, Value x, int axis) {
  const int last = x.rank() - 1;
  const Dim parts = x.shape()[last];
  if (parts != Dim(1) && parts != Dim(2))
    c.fail(
        cat("the input is ", x.type(), ", expected a last axis of size 1 (real) or 2 (complex)"));
  Axes order;
  for (int i = 0; i < last; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  auto part = [&](std::int64_t i) { return transpose_by(take_axis(x, last, i), order); };
  return {part(0), parts == Dim(2) ? part(1) : Value()};
}

// Moves the last axis back to its position, with the parts along a new last axis.
Value join_complex(const Values& parts, int axis) {
  Axes order;
  const int rank = parts[0].rank();
  for (int i = 0; i + 1 < rank; ++i) order.push_back(i);
  order.insert(order.begin() + axis, rank - 1);
  Values out;
  for (const Value& p : parts) out.push_back(unsqueeze(transpose_by(p, order), {rank}));
  return concat_values(out, rank);
}

struct Transform {
  std::optional<Dim> length;  // default: from the size of the axis
  bool inverse, onesided;
};

// x transformed along one axis.
Value transformed_along(NodeContext& c, Value x, const Transform& how, int axis) {
  if (axis == x.rank() - 1)
    c.fail(cat("the axis is ", axis,
               ", expected one other than the last, which holds real and imaginary parts"));
  Complex in = split_complex(c, cast_to(x, sum_dtype(x.dtype())), axis);
  const bool to_real = how.inverse && how.onesided;
  const Dim size = x.shape()[axis];
  const Dim length = how.length.value_or(to_real ? (size - Dim(1)) * Dim(2) : size);
  if (length.low() < 1)
    c.unsupported(cat("the length of the transform is ", length, ", expected at least 1"));
  if (to_real) return cast_to(join_complex({real_signal(in, length)}, axis), x.dtype());
  const Dim count = how.onesided ? floor_div(length, 2) + Dim(1) : length;
  Complex y = transformed(in, length, count, how.inverse);
  return cast_to(join_complex({y.real, y.imaginary}, axis), x.dtype());
}

Values fourier(NodeContext& c) {
  const Value x = c.in(0);
  const int rank = x.rank();
  if (rank < 2)
    c.bad_input(0, "input", "at least two axes, the last of size 1 (real) or 2 (complex)");
  Transform how{{}, c.flag("inverse"), c.flag("onesided")};
  const Dim parts = how.inverse ? 2 : 1;
  if (how.onesided && x.shape()[-1] != parts)
    c.fail(cat("attribute 'onesided' is 1 and the input is ", x.type(),
               ", expected a last axis of size ", parts,
               how.inverse ? " (complex) for the inverse" : " (real)"));
  if (c.has(1))
    how.length = at_least(c, c.open_size(1, c.open_limit(2)), 1, "the length of the transform");
  const bool is_operand = c.opset() >= 20 && c.has(2);
  if (!is_operand || !c.decides(2)) {
    const std::int64_t given = c.opset() < 20 ? c.integer("axis", 1)
                               : is_operand   ? c.number(2)
                                              : -2;
    return {transformed_along(c, x, how, c.axis(given, rank))};
  }
  if (c.in(2).shape().count() != Dim(1)) c.bad_input(2, "axis", "one element");
  Value axis = cast_to(c.in(2), DType::i64);
  require_within(axis, -rank, rank - 1, "an axis");
  require_within(ops::mod(axis, integer_like(axis, rank)), 0, rank - 2,
                 "the axis of a transform, counted from the front,");
  return {over_axes(c, 2, rank,
                    [&](const Axes& axes) { return transformed_along(c, x, how, axes[0]); })};
}

// Frames of `length` elements every `step`, multiplied by the window, each transformed.
Values short_time_fourier(NodeContext& c) {
  Value x = c.in(0);
  const DType dtype = x.dtype();
  if (x.rank() == 2) x = unsqueeze(x, {2});
  if (x.rank() != 3) c.bad_input(0, "signal", "[batch, length] or [batch, length, 1 or 2]");
  const Dim size = x.shape()[1],
            step = at_least(c, c.open_size(1, c.open_limit()), 1, "frame_step");
  Value window = c.has(2) ? c.in(2) : Value();
  Dim length = window ? window.shape()[0] : Dim(0);
  // A transform is a product with a length by length matrix.
  if (c.has(3)) length = c.open_size(3, min(size, c.open_limit(2)));
  length = at_least(c, length, 1, "frame_length");
  const Dim frames =
      at_least(c, floor_div(size - length, step) + Dim(1), 0, "the number of frames");
  Shape shape{frames, length};
  Value first = iota_value(c.graph(), DType::i64, shape, 0);
  Value index = first * broadcast_to(size_value(c.graph(), step, DType::i64), shape) +
                iota_value(c.graph(), DType::i64, shape, 1);
  Complex in = split_complex(c, cast_to(x, sum_dtype(dtype)), 1);
  for (Value* part : {&in.real, &in.imaginary}) {
    if (!*part) continue;
    *part = ops::gather(Values{*part, index}, {{"axis", std::int64_t{1}}});  // [b, frames, length]
    if (window) *part = times(*part, fitted(cast_to(window, part->dtype()), length));
  }
  const Dim count = c.flag("onesided", true) ? floor_div(length, 2) + Dim(1) : length;
  Complex y = transformed(in, length, count, false);
  return {cast_to(join_complex({y.real, y.imaginary}, 2), dtype)};
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N).
Values cosine_window(NodeContext& c, double a0, double a1, double a2) {
  const DType dtype = c.has_attribute("output_datatype") ? c.dtype("output_datatype") : DType::f32;
  const Dim size = c.open_size(0, c.open_limit());
  const bool periodic = c.flag("periodic", true);
  Value n = counted(c.graph(), DType::f64, size);
  Value length =
      broadcast_to(size_value(c.graph(), periodic ? size : size - Dim(1), DType::f64), n.shape());
  Value angle = n * (2 * std::numbers::pi) / length;
  Value y = a0 - ops::cos(angle) * a1;
  if (a2 != 0) y = y + ops::cos(angle * 2.0) * a2;
  return {cast_to(y, dtype)};
}

Values hann(NodeContext& c) { return cosine_window(c, 0.5, 0.5, 0); }
Values hamming(NodeContext& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
Values blackman(NodeContext& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

// An operand's frequency on the mel scale, in f64.
Value mel_of(NodeContext& c, std::size_t input) {
  const Value hertz = cast_to(reshape_to(c.in(input), {}), DType::f64);
  return ops::log(hertz / 700.0 + 1.0) * (2595 / std::numbers::ln10);
}

// The same matrix when some parameters are data-dependent. Each element is computed from its bin
// and the corners of its filter.
Value open_mel_weights(NodeContext& c, DType dtype) {
  constexpr std::int64_t most_rate = std::int64_t{1} << 40;
  hone::Graph& g = c.graph();
  const Dim mels = at_least(c, c.open_size(0, c.open_limit(2)), 1, "num_mel_bins"),
            length = c.open_size(1, c.open_limit(2)), bins = floor_div(length, 2) + Dim(1);
  const Dim rate = at_least(c, c.open_size(2, most_rate), 1, "sample_rate");
  const Value low = mel_of(c, 3), high = mel_of(c, 4);
  const Value i = counted(g, DType::f64, mels + Dim(2));
  const auto all = [&](Value v) { return broadcast_to(v, i.shape()); };
  const auto all_of = [&](const Dim& d) { return all(size_value(g, d, DType::f64)); };
  const Value mel = i * all(high - low) / all_of(mels + Dim(2)) + all(low);
  const Value hertz = (ops::pow(number_like(mel, 10), mel / 2595.0) - 1.0) * 700.0;
  const Value corner = ops::floor(all_of(length + Dim(1)) * hertz / all_of(rate));
  const Shape shape{bins, mels};
  const auto corners = [&](std::int64_t first) {
    return broadcast_to(slice_axis(corner, 0, first, mels), shape);
  };
  const Value left = corners(0), middle = corners(1), right = corners(2),
              bin = iota_value(g, DType::f64, shape, 0), one = number_like(bin, 1);
  const Value rising = ops::select(ops::eq(left, middle), one, (bin - left) / (middle - left));
  const Value up = ops::bit_and(ops::le(left, bin), ops::le(bin, middle)),
              down = ops::bit_and(ops::le(middle, bin), ops::lt(bin, right));
  const Value y = where(down, (right - bin) / (right - middle), where_or(up, rising, 0));
  return cast_to(y, dtype);
}

// Triangles over spectrogram bins whose corners are equally spaced on the mel scale.
Values mel_weight_matrix(NodeContext& c) {
  const DType dtype = c.has_attribute("output_datatype") ? c.dtype("output_datatype") : DType::f32;
  for (std::size_t i = 0; i < 5; ++i)
    if (c.decides(i)) return {open_mel_weights(c, dtype)};
  const std::int64_t mels = c.number(0), length = c.number(1), rate = c.number(2);
  const double low_hertz = c.real_number(3), high_hertz = c.real_number(4);
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t bins = length / 2 + 1;
  if (mels < 1 || length < 0 || rate < 1 || mels > most || bins > most || mels * bins > 64 * most)
    c.fail(cat("num_mel_bins, dft_length and sample_rate are ", mels, ", ", length, " and ", rate,
               ", expected positive numbers of at most ", most, " bins"));
  const double low = 2595 * std::log10(1 + low_hertz / 700),
               high = 2595 * std::log10(1 + high_hertz / 700);
  std::vector<std::int64_t> corner;
  for (std::int64_t i = 0; i < mels + 2; ++i) {
    const double mel = static_cast<double>(i) * (high - low) / static_cast<double>(mels + 2) + low;
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    corner.push_back(static_cast<std::int64_t>(
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  Array out = Array::zeros(dtype, {bins, mels});
  auto set = [&](std::int64_t bin, std::int64_t mel, double value) {
    if (bin >= 0 && bin < bins) out.set_real(bin * mels + mel, value);
  };
  for (std::int64_t i = 0; i < mels; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t left = corner[at], middle = corner[at + 1], right = corner[at + 2];
    if (middle == left) set(middle, i, 1);
    for (std::int64_t j = left; middle > left && j <= middle; ++j)
      set(j, i, static_cast<double>(j - left) / static_cast<double>(middle - left));
    for (std::int64_t j = middle; j < right; ++j)
      set(j, i, static_cast<double>(right - j) / static_cast<double>(right - middle));
  }
  return {constant(c.graph(), out)};
}

constexpr ImportEntry signal_table[] = {
    {"DFT", fourier, 17},
    {"STFT", short_time_fourier, 17},
    {"HannWindow", hann, 17},
    {"HammingWindow", hamming, 17},
    {"BlackmanWindow", blackman, 17},
    {"MelWeightMatrix", mel_weight_matrix, 17},
};

}  // namespace

std::span<const ImportEntry> signal_imports() { return signal_table; }

}  // namespace hone::onnx
