// Layers, with PyTorch's names, shapes and first values of their states. f32. A layer is called on
// a tensor while an entry is recorded; what is different in training follows the entry's .training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/module.h"
#include "tensor/network.h"

namespace hone::nn {

// x w^T + b over the last axis: weight [out, in], bias [out].
struct LinearOptions {
  std::int64_t in = 0, out = 0;
  bool bias = true;
};
class Linear : public Module {
 public:
  Linear(Module& parent, std::string name, LinearOptions, Where = Where::current());
  Tensor operator()(const Tensor&, Where = Where::current()) const;

  Variable weight, bias;  // the bias is empty without one
 private:
  bool has_bias_;
};

// weight [out, in / groups, kernel...], bias [out].
struct ConvOptions {
  std::int64_t in = 0, out = 0;
  PerAxis kernel = 1, stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
class Conv : public Module {
 public:
  Tensor operator()(const Tensor&, Where = Where::current()) const;
  Variable weight, bias;

 protected:
  Conv(Module& parent, std::string name, const ConvOptions&, int space, Where);

 private:
  ConvOptions options_;
  int space_;
};
struct Conv1d : Conv {  // of [n, in, l]
  Conv1d(Module& parent, std::string name, const ConvOptions& o, Where at = Where::current())
      : Conv(parent, std::move(name), o, 1, at) {}
};
struct Conv2d : Conv {  // of [n, in, h, w]
  Conv2d(Module& parent, std::string name, const ConvOptions& o, Where at = Where::current())
      : Conv(parent, std::move(name), o, 2, at) {}
};

// Rows of weight [count, width] at integers.
struct EmbeddingOptions {
  std::int64_t count = 0, width = 0;
};
class Embedding : public Module {
 public:
  Embedding(Module& parent, std::string name, EmbeddingOptions, Where = Where::current());
  Tensor operator()(const Tensor& index, Where = Where::current()) const;
  Variable weight;
};

// weight, bias, running_mean, running_var [channels]. In training x is normed by its own mean and
// variance, and the running ones go a share of `momentum` towards them (the variance divided by the
// count less one); elsewhere by the running ones. PyTorch's num_batches_tracked is left out.
struct BatchNormOptions {
  double epsilon = 1e-5, momentum = 0.1;
};
class BatchNorm : public Module {
 public:
  Tensor operator()(const Tensor&, Where = Where::current()) const;
  Variable weight, bias, running_mean, running_var;

 protected:
  BatchNorm(Module& parent, std::string name, std::int64_t channels, BatchNormOptions, Where);
  void expect_rank(const Tensor& x, std::initializer_list<int> ranks, Where) const;

 private:
  BatchNormOptions options_;
};
struct BatchNorm1d : BatchNorm {  // of [n, channels] or [n, channels, l]
  BatchNorm1d(Module& parent, std::string name, std::int64_t channels, BatchNormOptions o = {},
              Where at = Where::current())
      : BatchNorm(parent, std::move(name), channels, o, at) {}
  Tensor operator()(const Tensor&, Where = Where::current()) const;
};
struct BatchNorm2d : BatchNorm {  // of [n, channels, h, w]
  BatchNorm2d(Module& parent, std::string name, std::int64_t channels, BatchNormOptions o = {},
              Where at = Where::current())
      : BatchNorm(parent, std::move(name), channels, o, at) {}
  Tensor operator()(const Tensor&, Where = Where::current()) const;
};

// Over the last axis: weight [width] and, for LayerNorm, bias [width].
class LayerNorm : public Module {
 public:
  LayerNorm(Module& parent, std::string name, std::int64_t width, double epsilon = 1e-5,
            Where = Where::current());
  Tensor operator()(const Tensor&, Where = Where::current()) const;
  Variable weight, bias;

 private:
  double epsilon_;
};
class RMSNorm : public Module {
 public:
  RMSNorm(Module& parent, std::string name, std::int64_t width, double epsilon = 1e-6,
          Where = Where::current());
  Tensor operator()(const Tensor&, Where = Where::current()) const;
  Variable weight;

 private:
  double epsilon_;
};

// No module: it has no state, and draws from the program's random numbers.
struct Dropout {
  double p = 0.5;
  Tensor operator()(const Tensor& x, Where at = Where::current()) const {
    return dropout(x, p, at);
  }
};

// Keys and values of the positions so far, for decoding one after the other: states `keys` and
// `values` [n, heads, length, width / heads] of group "cache", so that each user has a State of
// that group.
struct CacheOptions {
  std::int64_t batch = 1, heads = 1, length = 0, width = 0;
};
struct KvCache : Module {
  KvCache(Module& parent, std::string name, CacheOptions, Where = Where::current());
  Variable keys, values;
};

// Of [n, l, width]: in_proj_weight [3 width, width], in_proj_bias [3 width], out_proj.weight and
// bias.
struct AttentionOptions {
  std::int64_t width = 0, heads = 1;
  double dropout = 0;  // of the result
};
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(Module& parent, std::string name, AttentionOptions, Where = Where::current());
  // Self-attention; the mask is as for scaled_dot_product_attention().
  Tensor operator()(const Tensor& x, const Attention& = {}, Where = Where::current()) const;
  // Queries from x, keys and values from another sequence [n, s, width].
  Tensor operator()(const Tensor& x, const Tensor& memory, const Attention& = {},
                    Where = Where::current()) const;
  // Causal self-attention of one position, x [n, 1, width], at place `at` (an i64 scalar, which
  // must be inside the cache): its key and value are written to the cache, which must hold those
  // before it.
  Tensor decode(const Tensor& x, const KvCache&, const Tensor& at, Where = Where::current()) const;
  Variable in_proj_weight, in_proj_bias;
  Linear out_proj;

 private:
  Tensor heads_of(const Tensor&) const;
  Tensor joined(const Tensor& q, const Tensor& k, const Tensor& v, const Attention&) const;
  AttentionOptions options_;
};

// linear2(activation(linear1(x))).
struct MlpOptions {
  std::int64_t width = 0, hidden = 0;
  double dropout = 0;  // of the result
};
class Mlp : public Module {
 public:
  Mlp(Module& parent, std::string name, MlpOptions, Where = Where::current());
  Tensor operator()(const Tensor&, Where = Where::current()) const;
  Linear linear1, linear2;

 private:
  double dropout_;
};

// Norms come first: x + attention(norm1(x)), then + mlp(norm2(x)) (Xiong et al., "On layer
// normalization in the transformer architecture", 2020).
struct BlockOptions {
  std::int64_t width = 0, heads = 1, hidden = 0;  // hidden: 4 widths unless given
  double dropout = 0;
  bool is_causal = false;
};
class TransformerBlock : public Module {
 public:
  TransformerBlock(Module& parent, std::string name, BlockOptions, Where = Where::current());
  Tensor operator()(const Tensor&, Where = Where::current()) const;
  // One position, as MultiheadAttention::decode().
  Tensor decode(const Tensor& x, const KvCache&, const Tensor& at, Where = Where::current()) const;
  LayerNorm norm1, norm2;
  MultiheadAttention self_attn;
  Mlp mlp;

 private:
  bool is_causal_;
};

// One after the other: modules, by copies of their handles, and functions such as relu.
class Sequential {
 public:
  using Layer = std::function<Tensor(const Tensor&)>;
  Sequential(std::initializer_list<Layer> layers) : layers_(layers) {}
  void add(Layer layer) { layers_.push_back(std::move(layer)); }
  Tensor operator()(Tensor x) const {
    for (const Layer& f : layers_) x = f(x);
    return x;
  }

 private:
  std::vector<Layer> layers_;
};

}  // namespace hone::nn
