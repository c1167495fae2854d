// Functions that networks are made of: convolution, pooling, norms, attention, losses. Layouts are
// PyTorch's: channels come second, weights of a linear map are [out, in].
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tensor/functions.h"

namespace hone {

// One number for every spatial axis, or one for each.
class PerAxis {
 public:
  PerAxis() = default;                                                                 // none
  PerAxis(std::int64_t n) : all_(n), is_given_(true) {}                                // NOLINT
  PerAxis(std::initializer_list<std::int64_t> each) : each_(each), is_given_(true) {}  // NOLINT
  bool is_given() const { return is_given_; }
  bool is_one() const { return each_.empty(); }
  std::int64_t one() const { return all_; }
  const std::vector<std::int64_t>& each() const { return each_; }

 private:
  std::int64_t all_ = 0;
  std::vector<std::int64_t> each_;
  bool is_given_ = false;
};

// x w^T + bias for w [out, in] and bias [out], over the last axis of x. An empty bias is none.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {}, Where = Where::current());

struct ConvolutionOptions {
  PerAxis stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  Tensor bias = {};  // [out]
};
// x [n, in, ...], w [out, in / groups, ...], with one, two or three spatial axes.
Tensor conv1d(const Tensor& x, const Tensor& w, const ConvolutionOptions& = {},
              Where = Where::current());
Tensor conv2d(const Tensor& x, const Tensor& w, const ConvolutionOptions& = {},
              Where = Where::current());
Tensor conv3d(const Tensor& x, const Tensor& w, const ConvolutionOptions& = {},
              Where = Where::current());

struct Pooling {
  PerAxis stride = {};  // the window's size unless given
  PerAxis padding = 0;
  bool count_include_pad = true;  // whether an average counts the padding
};
// Of windows over the last two axes of [n, channels, h, w].
Tensor max_pool2d(const Tensor&, const PerAxis& window, const Pooling& = {},
                  Where = Where::current());
Tensor avg_pool2d(const Tensor&, const PerAxis& window, const Pooling& = {},
                  Where = Where::current());

// (x - mean) / sqrt(variance + epsilon) over the last axes, as many as `weight` has; bias may be
// empty.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                  double epsilon = 1e-5, Where = Where::current());
// x / sqrt(mean(x^2) + epsilon) * weight over the last axes, as many as `weight` has.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon = 1e-6,
                Where = Where::current());
// (x - mean) / sqrt(variance + epsilon) * weight + bias along axis 1, all of them [channels].
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, double epsilon = 1e-5, Where = Where::current());

// Rows of `weight` [count, width] at integers of any shape. An index outside is an error of the
// run.
Tensor embedding(const Tensor& index, const Tensor& weight, Where = Where::current());

// In an entry with .training: each element is 0 with probability p, else divided by 1 - p.
// Elsewhere x.
Tensor dropout(const Tensor& x, double p, Where = Where::current());

struct Attention {
  Tensor mask = {};                  // bool: where true may be looked at; or a float that is added
  bool is_causal = false;            // query i sees keys up to i
  std::optional<double> scale = {};  // 1 / sqrt(d) unless given
};
// softmax(scale q k^T + mask) v for q [..., heads, l, d], k [..., heads, s, d], v [..., heads, s,
// e]; k and v may have fewer heads, each of which serves several of q.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Attention& = {}, Where = Where::current());

// ---- Losses. Scalars unless another reduction is asked for.

enum class Reduction : std::uint8_t { mean, sum, none };
struct CrossEntropy {
  Tensor weight = {};                             // [classes]
  std::optional<std::int64_t> ignore_index = {};  // such targets count for nothing
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;  // the mean is weighted; over the targets that count
};
// -log softmax(logits)[target] for logits [n, classes, ...] and targets (integers) [n, ...]. A
// target that is no class is an error of the run.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropy& = {},
                     Where = Where::current());
struct LinearCrossEntropy {
  Tensor bias = {};                               // [classes]
  std::optional<std::int64_t> ignore_index = {};  // such targets count for nothing
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;  // over the targets that count
};
// cross_entropy(linear(x, w, bias), target) for x [..., width], w [classes, width] and targets
// (integers) [...], without holding all logits: some classes at a time, once for the loss and once
// more for its derivative (Wijmans et al., Cut Your Losses, arXiv 2411.09009), which has no
// derivative itself.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& target,
                            const LinearCrossEntropy& = {}, Where = Where::current());
struct Loss {
  Reduction reduction = Reduction::mean;
};
Tensor mse_loss(const Tensor& x, const Operand& target, Loss = {});
Tensor l1_loss(const Tensor& x, const Operand& target, Loss = {});
// -(t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))), for targets from 0 to 1.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Operand& target, Loss = {});

}  // namespace hone
