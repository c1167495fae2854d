#include "nn/layers.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/trace.h"

namespace hone::nn {

namespace {

// kaiming_uniform_ with a = sqrt(5), which PyTorch gives linear maps: uniform in 1 / sqrt(fan in).
Start by_fan(std::int64_t fan) {
  const double bound = fan > 0 ? 1 / std::sqrt(static_cast<double>(fan)) : 0;
  return Start::uniform(-bound, bound);
}

void expect_positive(Where at, const std::string& module, const char* what, std::int64_t n) {
  located(at, [&] {
    if (n < 1)
      throw UserError("module '", module, "': .", what, " is ", n, ", expected at least 1");
  });
}

Dims kernel_sizes(const ConvOptions& o, int space, const std::string& module, Where at) {
  Dims sizes = {o.out, o.in / std::max<std::int64_t>(o.groups, 1)};
  for (int i = 0; i < space; ++i) {
    if (!o.kernel.is_one() && std::ssize(o.kernel.each()) != space)
      throw LocatedError(text_of(at), ": module '", module, "': .kernel has ",
                         o.kernel.each().size(), " numbers, expected one or ", space);
    const std::int64_t n =
        o.kernel.is_one() ? o.kernel.one() : o.kernel.each()[static_cast<std::size_t>(i)];
    expect_positive(at, module, "kernel", n);
    sizes.emplace_back(n);
  }
  return sizes;
}

Tensor or_none(const Variable& v, bool is_there) { return is_there ? v.value() : Tensor(); }

}  // namespace

Linear::Linear(Module& parent, std::string name, LinearOptions o, Where at)
    : Module(parent, std::move(name), at), has_bias_(o.bias) {
  expect_positive(at, this->name(), "in", o.in);
  expect_positive(at, this->name(), "out", o.out);
  weight = parameter("weight", f32({o.out, o.in}), by_fan(o.in), at);
  if (o.bias) bias = parameter("bias", f32({o.out}), by_fan(o.in), at);
}
Tensor Linear::operator()(const Tensor& x, Where at) const {
  return located(at, [&] { return linear(x, weight, or_none(bias, has_bias_), at); });
}

Conv::Conv(Module& parent, std::string name, const ConvOptions& o, int space, Where at)
    : Module(parent, std::move(name), at), options_(o), space_(space) {
  expect_positive(at, this->name(), "in", o.in);
  expect_positive(at, this->name(), "out", o.out);
  expect_positive(at, this->name(), "groups", o.groups);
  if (o.in % o.groups != 0 || o.out % o.groups != 0)
    throw LocatedError(text_of(at), ": module '", this->name(), "': ", o.groups, " groups of ",
                       o.in, " channels in and ", o.out,
                       " out, expected a number that divides both");
  const Dims sizes = kernel_sizes(o, space, this->name(), at);
  const std::int64_t fan = product(std::span(sizes).subspan(1)).number();
  weight = parameter("weight", f32(Shape(sizes)), by_fan(fan), at);
  if (o.bias) bias = parameter("bias", f32({o.out}), by_fan(fan), at);
}
Tensor Conv::operator()(const Tensor& x, Where at) const {
  return located(at, [&] {
    const ConvolutionOptions by{.stride = options_.stride,
                                .padding = options_.padding,
                                .dilation = options_.dilation,
                                .groups = options_.groups,
                                .bias = or_none(bias, options_.bias)};
    return space_ == 1 ? conv1d(x, weight, by, at) : conv2d(x, weight, by, at);
  });
}

Embedding::Embedding(Module& parent, std::string name, EmbeddingOptions o, Where at)
    : Module(parent, std::move(name), at) {
  expect_positive(at, this->name(), "count", o.count);
  expect_positive(at, this->name(), "width", o.width);
  weight = parameter("weight", f32({o.count, o.width}), Start::normal(0, 1), at);
}
Tensor Embedding::operator()(const Tensor& index, Where at) const {
  return located(at, [&] { return embedding(index, weight, at); });
}

BatchNorm::BatchNorm(Module& parent, std::string name, std::int64_t channels, BatchNormOptions o,
                     Where at)
    : Module(parent, std::move(name), at), options_(o) {
  expect_positive(at, this->name(), "channels", channels);
  const Type type = f32({channels});
  weight = parameter("weight", type, 1, at);
  bias = parameter("bias", type, 0, at);
  running_mean = buffer("running_mean", type, 0, at);
  running_var = buffer("running_var", type, 1, at);
}

void BatchNorm::expect_rank(const Tensor& x, std::initializer_list<int> ranks, Where at) const {
  located(at, [&] {
    if (std::ranges::find(ranks, x.rank()) == ranks.end())
      throw UserError("module '", name(), "': x is ", x, ", expected rank ", *ranks.begin(),
                      ranks.size() > 1 ? " or 3" : "", ": [n, channels, ...]");
  });
}

Tensor BatchNorm::operator()(const Tensor& x, Where at) const {
  return located(at, [&] {
    if (!is_training())
      return batch_norm(x, running_mean, running_var, weight, bias, options_.epsilon, at);
    Axes others = {0};
    Tensor count = size_of(x, 0, x.dtype());
    for (int i = 2; i < x.rank(); ++i) {
      others.push_back(i);
      count = count * size_of(x, i, x.dtype());
    }
    const Tensor m = mean(x, others), v = var(x, others, {.correction = 0});
    const Tensor unbiased = v * (count / maximum(count - 1, 1));
    const double share = options_.momentum;
    running_mean.set(running_mean.value() * (1 - share) + m * share);
    running_var.set(running_var.value() * (1 - share) + unbiased * share);
    return batch_norm(x, m, v, weight, bias, options_.epsilon, at);
  });
}
Tensor BatchNorm1d::operator()(const Tensor& x, Where at) const {
  expect_rank(x, {2, 3}, at);
  return BatchNorm::operator()(x, at);
}
Tensor BatchNorm2d::operator()(const Tensor& x, Where at) const {
  expect_rank(x, {4}, at);
  return BatchNorm::operator()(x, at);
}

LayerNorm::LayerNorm(Module& parent, std::string name, std::int64_t width, double epsilon, Where at)
    : Module(parent, std::move(name), at), epsilon_(epsilon) {
  expect_positive(at, this->name(), "width", width);
  weight = parameter("weight", f32({width}), 1, at);
  bias = parameter("bias", f32({width}), 0, at);
}
Tensor LayerNorm::operator()(const Tensor& x, Where at) const {
  return located(at, [&] { return layer_norm(x, weight, bias, epsilon_, at); });
}

RMSNorm::RMSNorm(Module& parent, std::string name, std::int64_t width, double epsilon, Where at)
    : Module(parent, std::move(name), at), epsilon_(epsilon) {
  expect_positive(at, this->name(), "width", width);
  weight = parameter("weight", f32({width}), 1, at);
}
Tensor RMSNorm::operator()(const Tensor& x, Where at) const {
  return located(at, [&] { return rms_norm(x, weight, epsilon_, at); });
}

namespace {

void expect_heads(const AttentionOptions& o, const std::string& module, Where at) {
  expect_positive(at, module, "heads", o.heads);
  if (o.width % o.heads != 0)
    throw LocatedError(text_of(at), ": module '", module, "': .width is ", o.width, " for ",
                       o.heads, " heads, expected a multiple");
}

}  // namespace

MultiheadAttention::MultiheadAttention(Module& parent, std::string name, AttentionOptions o,
                                       Where at)
    : Module(parent, std::move(name), at),
      // Xavier's, over all three maps as one (Glorot and Bengio, 2010), as PyTorch does.
      in_proj_weight(
          parameter("in_proj_weight", f32({3 * o.width, o.width}),
                    Start::uniform(-std::sqrt(6.0 / (4.0 * static_cast<double>(o.width))),
                                   std::sqrt(6.0 / (4.0 * static_cast<double>(o.width)))),
                    at)),
      in_proj_bias(parameter("in_proj_bias", f32({3 * o.width}), 0, at)),
      out_proj(*this, "out_proj", {.in = o.width, .out = o.width}, at),
      options_(o) {
  expect_heads(o, this->name(), at);
}

// [n, l, width] to [n, heads, l, width / heads].
Tensor MultiheadAttention::heads_of(const Tensor& x) const {
  const Dim each = options_.width / options_.heads;
  return transpose(reshape(x, {x.size(0), x.size(1), options_.heads, each}), 1, 2);
}

Tensor MultiheadAttention::joined(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const Attention& by) const {
  const Tensor y = scaled_dot_product_attention(heads_of(q), heads_of(k), heads_of(v), by);
  return dropout(out_proj(flatten(transpose(y, 1, 2), 2)), options_.dropout);
}

Tensor MultiheadAttention::operator()(const Tensor& x, const Attention& by, Where at) const {
  return located(at, [&] {
    const Tensors parts = chunk(linear(x, in_proj_weight, in_proj_bias), 3, -1);
    return joined(parts[0], parts[1], parts[2], by);
  });
}

Tensor MultiheadAttention::operator()(const Tensor& x, const Tensor& memory, const Attention& by,
                                      Where at) const {
  return located(at, [&] {
    const Tensors w = chunk(in_proj_weight, 3, 0), b = chunk(in_proj_bias, 3, 0);
    return joined(linear(x, w[0], b[0]), linear(memory, w[1], b[1]), linear(memory, w[2], b[2]),
                  by);
  });
}

KvCache::KvCache(Module& parent, std::string name, CacheOptions o, Where at)
    : Module(parent, std::move(name), at) {
  expect_positive(at, this->name(), "length", o.length);
  expect_heads({.width = o.width, .heads = o.heads}, this->name(), at);
  const Type type = f32({o.batch, o.heads, o.length, o.width / o.heads});
  keys = buffer("keys", type, 0, at, "cache");
  values = buffer("values", type, 0, at, "cache");
}

Tensor MultiheadAttention::decode(const Tensor& x, const KvCache& cache, const Tensor& place,
                                  Where at) const {
  return located(at, [&] {
    if (x.rank() != 3 || x.size(1) != Dim(1))
      throw UserError("module '", name(), "': decode of ", x, ", expected one position: [n, 1, ",
                      options_.width, "]");
    const Tensors parts = chunk(linear(x, in_proj_weight, in_proj_bias), 3, -1);
    cache.keys.set(dynamic_update(cache.keys, heads_of(parts[1]), 2, place));
    cache.values.set(dynamic_update(cache.values, heads_of(parts[2]), 2, place));
    const Tensor k = cache.keys, v = cache.values;
    const Tensor y = scaled_dot_product_attention(heads_of(parts[0]), k, v,
                                                  {.mask = arange(k.size(2)) <= place});
    return out_proj(flatten(transpose(y, 1, 2), 2));
  });
}

Mlp::Mlp(Module& parent, std::string name, MlpOptions o, Where at)
    : Module(parent, std::move(name), at),
      linear1(*this, "linear1", {.in = o.width, .out = o.hidden}, at),
      linear2(*this, "linear2", {.in = o.hidden, .out = o.width}, at),
      dropout_(o.dropout) {}
Tensor Mlp::operator()(const Tensor& x, Where at) const {
  return located(at, [&] { return dropout(linear2(gelu(linear1(x))), dropout_); });
}

TransformerBlock::TransformerBlock(Module& parent, std::string name, BlockOptions o, Where at)
    : Module(parent, std::move(name), at),
      norm1(*this, "norm1", o.width, 1e-5, at),
      norm2(*this, "norm2", o.width, 1e-5, at),
      self_attn(*this, "self_attn", {.width = o.width, .heads = o.heads, .dropout = o.dropout}, at),
      mlp(*this, "mlp",
          {.width = o.width, .hidden = o.hidden ? o.hidden : 4 * o.width, .dropout = o.dropout},
          at),
      is_causal_(o.is_causal) {}
Tensor TransformerBlock::operator()(const Tensor& x, Where at) const {
  return located(at, [&] {
    const Tensor y = x + self_attn(norm1(x), {.is_causal = is_causal_});
    return y + mlp(norm2(y));
  });
}
Tensor TransformerBlock::decode(const Tensor& x, const KvCache& cache, const Tensor& place,
                                Where at) const {
  return located(at, [&] {
    const Tensor y = x + self_attn.decode(norm1(x), cache, place);
    return y + mlp(norm2(y));
  });
}

}  // namespace hone::nn
