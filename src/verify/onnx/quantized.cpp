// Products and convolutions of quantized numbers, and quantization by the actual range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/onnx/call.h"
#include "verify/onnx/meaning.h"

namespace hone::onnx {

namespace {

// The number for an index of one operand: one for all, or one for each place of an axis.
double of_axis(const Numbers& n, std::size_t axis, const Sizes& index) {
  if (n.dims.size() > 1) throw NotJudged();
  return n.values.at(n.count() == 1 ? 0 : static_cast<std::size_t>(index.at(axis)));
}

// As i32, without the zero point that operand `zero` holds.
Numbers centred(Call& c, std::size_t input, std::size_t zero, std::size_t axis) {
  const Numbers& x = c.in(input);
  Numbers out{DType::i32, x.dims, {}};
  std::size_t i = 0;
  for_index(x.dims, [&](const Sizes& index) {
    out.values.push_back(x.values[i++] - (c.has(zero) ? of_axis(c.in(zero), axis, index) : 0));
  });
  return out;
}

Numbers joined(Call& c, std::string_view op, const Numbers& a, const Numbers& b) {
  const Numbers* inputs[] = {&a, &b};
  const auto made = meaning_of(c.as(op), c.opset(), inputs);
  if (!made) throw NotJudged();
  return made->at(0);
}

std::size_t from_end(const Numbers& n, std::size_t axes) {
  return n.dims.size() < axes ? 0 : n.dims.size() - axes;
}

// Between two whole numbers the rounding of a scale decides: either is right, so it is NaN.
double rounded(double q) {
  constexpr double told_apart = 1e-4;
  const double off = std::fabs(q - std::floor(q) - 0.5);
  return off < told_apart ? std::numeric_limits<double>::quiet_NaN() : std::nearbyint(q);
}

double kept(DType t, double x) {
  if (t != DType::u8 && t != DType::i8) throw NotJudged();
  if (std::isnan(x)) return x;
  return t == DType::u8 ? std::clamp(x, 0.0, 255.0) : std::clamp(x, -128.0, 127.0);
}

Numbers integer_product(Call& c, std::size_t b, std::size_t zero_a, std::size_t zero_b) {
  return joined(c, "MatMul", centred(c, 0, zero_a, from_end(c.in(0), 2)),
                centred(c, b, zero_b, from_end(c.in(b), 1)));
}

Numbers integer_convolution(Call& c, std::size_t w, std::size_t zero_x, std::size_t zero_w) {
  return joined(c, "Conv", centred(c, 0, zero_x, 1), centred(c, w, zero_w, 0));
}

std::vector<Numbers> matmul_integer(Call& c) { return {integer_product(c, 1, 2, 3)}; }
std::vector<Numbers> conv_integer(Call& c) { return {integer_convolution(c, 1, 2, 3)}; }

// Sums times scales of operands 1 and 4 by that of operand 6, plus the zero point of operand 7.
std::vector<Numbers> requantized(Call& c, const Numbers& sums, std::size_t axis_a,
                                 std::size_t axis_b) {
  Numbers out{c.in(7).dtype, sums.dims, {}};
  std::size_t i = 0;
  for_index(sums.dims, [&](const Sizes& index) {
    const double scale = of_axis(c.in(1), axis_a, index) * of_axis(c.in(4), axis_b, index) /
                         of_axis(c.in(6), axis_a, index);
    const double y = rounded(sums.values[i++] * scale) + of_axis(c.in(7), axis_a, index);
    out.values.push_back(kept(out.dtype, y));
  });
  return {out};
}

std::vector<Numbers> qlinear_matmul(Call& c) {
  const Numbers sums = integer_product(c, 3, 2, 5);
  return requantized(c, sums, from_end(sums, 2), from_end(sums, 1));
}

std::vector<Numbers> qlinear_conv(Call& c) {
  Numbers sums = integer_convolution(c, 3, 2, 5);
  std::size_t i = 0;
  for_index(sums.dims, [&](const Sizes& index) {
    sums.values[i++] += c.has(8) ? of_axis(c.in(8), 1, index) : 0;
  });
  return requantized(c, sums, 1, 1);
}

std::vector<Numbers> dynamic_quantize(Call& c) {
  const Numbers& x = c.in(0);
  double low = 0, high = 0;
  for (double v : x.values) {
    if (!std::isfinite(v)) throw NotJudged();
    low = std::fmin(low, v);
    high = std::fmax(high, v);
  }
  if (low == high) throw NotJudged();
  const double scale = (high - low) / 255, zero = kept(DType::u8, rounded(-low / scale));
  if (std::isnan(zero)) throw NotJudged();
  Numbers y{DType::u8, x.dims, {}};
  for (double v : x.values) y.values.push_back(kept(DType::u8, rounded(v / scale) + zero));
  return {y, {x.dtype, {}, {scale}}, {DType::u8, {}, {zero}}};
}

constexpr MeaningRow quantized_rows[] = {{"MatMulInteger", matmul_integer},
                                         {"ConvInteger", conv_integer},
                                         {"QLinearMatMul", qlinear_matmul},
                                         {"QLinearConv", qlinear_conv},
                                         {"DynamicQuantizeLinear", dynamic_quantize}};

}  // namespace

std::span<const MeaningRow> quantized_meanings() { return quantized_rows; }

}  // namespace hone::onnx
