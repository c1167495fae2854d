#include "tensor/network.h"

#include <cmath>

#include "import/common/build.h"
#include "ops/require.h"
#include "tensor/trace.h"

namespace hone {

namespace {

Dims each_axis(const PerAxis& p, int axes, std::string_view who, std::string_view what,
               std::int64_t least) {
  if (!p.is_one() && std::ssize(p.each()) != axes)
    throw UserError(who, ": ", what, " has ", p.each().size(), " numbers, expected one or ", axes);
  Dims out;
  for (int i = 0; i < axes; ++i) {
    const std::int64_t n = p.is_one() ? p.one() : p.each()[static_cast<std::size_t>(i)];
    if (n < least) throw UserError(who, ": ", what, " is ", n, ", expected at least ", least);
    out.emplace_back(n);
  }
  return out;
}

void expect_axes(const Value& v, int rank, std::string_view who, std::string_view what,
                 std::string_view layout) {
  if (v.rank() != rank)
    throw UserError(who, ": ", what, " is ", v.type(), ", expected rank ", rank, ": ", layout);
}

void expect_same(const Value& a, const Value& b, std::string_view who) {
  if (a.dtype() != b.dtype())
    throw UserError(who, ": the tensors are ", a.type(), " and ", b.type(),
                    ", expected equal dtypes; use cast(x, dtype)");
}

// Of rank 1, as long as an axis.
void expect_vector(const Value& v, const Dim& size, std::string_view who, std::string_view what) {
  if (v.rank() != 1 || prove_equal(v.shape()[0], size) == false)
    throw UserError(who, ": ", what, " is ", v.type(), ", expected [", size, "]");
}

Tensor convolved(const Tensor& x, const Tensor& w, const ConvolutionOptions& by, int space,
                 std::string_view who, Where at) {
  static constexpr const char* layouts[] = {"", "[n, channels, l]", "[n, channels, h, w]",
                                            "[n, channels, d, h, w]"};
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), weight = t.value(w);
    expect_axes(v, space + 2, who, "x", layouts[space]);
    expect_axes(weight, space + 2, who, "the weight", "[out, in / groups, ...]");
    expect_same(v, weight, who);
    if (prove_equal(weight.shape()[1] * Dim(by.groups), v.shape()[1]) == false)
      throw UserError(who, ": x is ", v.type(), " and the weight ", weight.type(), " with ",
                      by.groups, " groups, expected ", weight.shape()[1] * Dim(by.groups),
                      " channels in x");
    const Dims pads = each_axis(by.padding, space, who, "padding", 0);
    const Value y = ops::conv(Values{v, weight},
                              {{"strides", each_axis(by.stride, space, who, "stride", 1)},
                               {"dilations", each_axis(by.dilation, space, who, "dilation", 1)},
                               {"pads_low", pads},
                               {"pads_high", pads},
                               {"groups", by.groups},
                               {"channels_last", std::int64_t{0}}});
    if (by.bias.is_empty()) return y;
    const Value bias = t.value(by.bias);
    expect_vector(bias, y.shape()[1], who, "the bias");
    return y + build::along_channels(bias, y.shape());
  });
}

Window window_of(const PerAxis& size, const Pooling& by, std::string_view who) {
  const Dims pads = each_axis(by.padding, 2, who, "padding", 0);
  return {.size = each_axis(size, 2, who, "the window", 1),
          .strides = each_axis(by.stride.is_given() ? by.stride : size, 2, who, "stride", 1),
          .dilations = {1, 1},
          .pads_low = pads,
          .pads_high = pads};
}

// The axis from which on a norm is taken.
std::int64_t first_normed(const Value& x, const Value& weight, std::string_view who) {
  const int first = x.rank() - weight.rank();
  bool fits = weight.rank() > 0 && first >= 0;
  for (int i = 0; fits && i < weight.rank(); ++i)
    fits = prove_equal(x.shape()[first + i], weight.shape()[i]) != false;
  if (!fits)
    throw UserError(who, ": x is ", x.type(), " and the weight ", weight.type(),
                    ", expected the last sizes of x");
  return first;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), weight = t.value(w);
    expect_axes(weight, 2, "linear", "the weight", "[out, in]");
    expect_same(v, weight, "linear");
    if (v.rank() == 0 || prove_equal(v.shape()[-1], weight.shape()[1]) == false)
      throw UserError("linear: x is ", v.type(), " and the weight ", weight.type(), ", expected ",
                      weight.shape()[1], " as the last size of x");
    Dims sizes = v.shape().dims;
    const Dim in = sizes.back();
    sizes.back() = weight.shape()[0];
    const Dim rows = product(std::span(v.shape().dims).first(sizes.size() - 1));
    Value y = ops::matmul(reshape_to(v, {rows, in}), transpose_matrix(weight));
    if (!bias.is_empty()) {
      const Value b = t.value(bias);
      expect_vector(b, weight.shape()[0], "linear", "the bias");
      y = y + broadcast_to(b, y.shape());
    }
    return reshape_to(y, sizes);
  });
}

Tensor conv1d(const Tensor& x, const Tensor& w, const ConvolutionOptions& by, Where at) {
  return convolved(x, w, by, 1, "conv1d", at);
}
Tensor conv2d(const Tensor& x, const Tensor& w, const ConvolutionOptions& by, Where at) {
  return convolved(x, w, by, 2, "conv2d", at);
}
Tensor conv3d(const Tensor& x, const Tensor& w, const ConvolutionOptions& by, Where at) {
  return convolved(x, w, by, 3, "conv3d", at);
}

Tensor max_pool2d(const Tensor& x, const PerAxis& window, const Pooling& by, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    expect_axes(v, 4, "max_pool2d", "x", "[n, channels, h, w]");
    return max_pool(v, window_of(window, by, "max_pool2d"));
  });
}
Tensor avg_pool2d(const Tensor& x, const PerAxis& window, const Pooling& by, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    expect_axes(v, 4, "avg_pool2d", "x", "[n, channels, h, w]");
    return average_pool(v, window_of(window, by, "avg_pool2d"), by.count_include_pad);
  });
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
                  Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), w = t.value(weight);
    const std::int64_t axis = first_normed(v, w, "layer_norm");
    Values operands = {v, w};
    if (!bias.is_empty()) operands.push_back(t.value(bias));
    return ops::layer_norm(operands, {{"axis", axis}, {"epsilon", epsilon}});
  });
}
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), w = t.value(weight);
    return ops::rms_norm(Values{v, w},
                         {{"axis", first_normed(v, w, "rms_norm")}, {"epsilon", epsilon}});
  });
}
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, double epsilon, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    if (v.rank() < 2)
      throw UserError("batch_norm: x is ", v.type(), ", expected [n, channels, ...]");
    Values operands = {v};
    for (const Tensor* p : {&weight, &bias, &mean, &variance}) {
      operands.push_back(t.value(*p));
      expect_vector(operands.back(), v.shape()[1], "batch_norm", "a parameter");
    }
    return ops::batch_norm(operands, {{"axis", std::int64_t{1}}, {"epsilon", epsilon}});
  });
}

Tensor embedding(const Tensor& index, const Tensor& weight, Where at) {
  return located(at, [&] {
    if (weight.rank() != 2)
      throw UserError("embedding: the weight is ", weight, ", expected [count, width]");
    return take(weight, index, 0, at);
  });
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Attention& by, Where at) {
  return recorded(at, [&](Trace& t) {
    Values operands = {t.value(q), t.value(k), t.value(v)};
    if (!by.mask.is_empty()) operands.push_back(t.value(by.mask));
    if (operands[0].rank() < 2)
      throw UserError("attention: q is ", operands[0].type(), ", expected [..., l, d]");
    const Dim width = operands[0].shape()[-1];
    if (!by.scale && !width.is_number())
      throw UserError("attention: the last size of q is ", width, ", expected a number, or .scale");
    Attrs attrs = {
        {"scale", by.scale ? *by.scale : 1 / std::sqrt(static_cast<double>(width.number()))}};
    if (by.is_causal) attrs.set("causal", Dims{0});
    return ops::attention(operands, attrs);
  });
}

}  // namespace hone
