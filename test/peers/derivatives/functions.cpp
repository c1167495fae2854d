// Cases of functions of tensors. derivatives.py has the same names.
#include <limits>

#include "case.h"

namespace hone::peer {

namespace {

using T = const Tensors&;

std::vector<Case> elementwise() {
  const Input x = real({3, 5, 4}), positive = real({3, 5, 4}, 0.25, 3), ties = whole({6, 7});
  return {
      {"abs", {x}, [](T t) { return abs(t[0]); }},
      {"square", {x}, [](T t) { return square(t[0]); }},
      {"exp", {x}, [](T t) { return exp(t[0]); }},
      {"log", {positive}, [](T t) { return log(t[0]); }},
      {"sqrt", {positive}, [](T t) { return sqrt(t[0]); }},
      {"rsqrt", {positive}, [](T t) { return rsqrt(t[0]); }},
      {"reciprocal", {positive}, [](T t) { return reciprocal(t[0]); }},
      {"sin", {x}, [](T t) { return sin(t[0]); }},
      {"cos", {x}, [](T t) { return cos(t[0]); }},
      {"erf", {x}, [](T t) { return erf(t[0]); }},
      {"tanh", {x}, [](T t) { return tanh(t[0]); }},
      {"sigmoid", {x}, [](T t) { return sigmoid(t[0]); }},
      {"sigmoid.far", {real({50}, -120, 120)}, [](T t) { return sigmoid(t[0]); }},
      {"softplus", {x}, [](T t) { return softplus(t[0]); }},
      {"softplus.far", {real({50}, -90, 90)}, [](T t) { return softplus(t[0]); }},
      {"relu", {x}, [](T t) { return relu(t[0]); }},
      {"relu.open", {open({5, 7}, 0)}, [](T t) { return relu(t[0]); }},
      {"silu", {x}, [](T t) { return silu(t[0]); }},
      {"silu.far", {real({50}, -120, 120)}, [](T t) { return silu(t[0]); }},
      {"gelu.erf", {x}, [](T t) { return gelu(t[0]); }},
      {"gelu.tanh", {x}, [](T t) { return gelu(t[0], Gelu::tanh); }},
      {"gelu.erf.far", {real({50}, -30, 30)}, [](T t) { return gelu(t[0]); }},
      {"gelu.tanh.far", {real({50}, -30, 30)}, [](T t) { return gelu(t[0], Gelu::tanh); }},
      {"leaky_relu", {x}, [](T t) { return leaky_relu(t[0], 0.2); }},
      {"elu", {x}, [](T t) { return elu(t[0], 1.5); }},
      {"elu.far", {real({50}, -90, 90)}, [](T t) { return elu(t[0]); }},
      {"pow.number", {x}, [](T t) { return pow(t[0], 3); }},
      {"pow.tensors", {positive, real({5, 1})}, [](T t) { return pow(t[0], t[1]); }},
      {"pow.zeros", {ties}, [](T t) { return pow(t[0], 2); }},
      {"add.broadcast", {real({3, 1, 4}), real({5, 1})}, [](T t) { return t[0] + t[1]; }},
      {"sub.broadcast", {real({4}), real({2, 3, 4})}, [](T t) { return t[0] - t[1]; }},
      {"mul.broadcast", {real({2, 3, 1}), real({4})}, [](T t) { return t[0] * t[1]; }},
      {"mul.scalar", {real({2, 3}), real({})}, [](T t) { return t[0] * t[1]; }},
      {"div.broadcast", {real({5, 1}), positive}, [](T t) { return t[0] / t[1]; }},
      {"remainder", {x, real({4}, 0.5, 1.5)}, [](T t) { return remainder(t[0], t[1]); }},
      {"maximum", {x, real({5, 4})}, [](T t) { return maximum(t[0], t[1]); }},
      {"minimum", {x, real({4})}, [](T t) { return minimum(t[0], t[1]); }},
      {"clip", {x}, [](T t) { return clip(t[0], -1, 0.5); }},
      {"clip.tensors",
       {x, real({4}, -1, 0), real({5, 1}, 0, 1)},
       [](T t) { return clip(t[0], t[1], t[2]); }},
      {"where", {boolean({3, 5, 1}), x, real({4})}, [](T t) { return where(t[0], t[1], t[2]); }},
      {"abs.ties", {ties}, [](T t) { return abs(t[0]); }},
      {"relu.ties", {ties}, [](T t) { return relu(t[0]); }},
      {"leaky_relu.ties", {ties}, [](T t) { return leaky_relu(t[0]); }},
      {"elu.ties", {ties}, [](T t) { return elu(t[0], 0.5); }},
      {"clip.ties", {ties}, [](T t) { return clip(t[0], -1, 1); }},
      {"maximum.ties", {ties, ties}, [](T t) { return maximum(t[0], t[1]); }},
      {"minimum.ties", {ties, ties}, [](T t) { return minimum(t[0], t[1]); }},
      {"sqrt.zeros", {whole({5, 4}, 0, 2)}, [](T t) { return sqrt(t[0]); }},
      {"pow.negative", {ties, whole({6, 7}, 1, 3)}, [](T t) { return pow(t[0], t[1]); }},
      {"pow.cube.zeros", {ties}, [](T t) { return pow(t[0], 3); }},
      {"pow.root.zeros", {whole({5, 4}, 0, 2)}, [](T t) { return pow(t[0], 0.5); }},
      {"tanh.far", {real({50}, -120, 120)}, [](T t) { return tanh(t[0]); }},
      {"exp.far", {real({50}, -200, 80)}, [](T t) { return exp(t[0]) / (exp(t[0]) + 1); }},
      {"erf.far", {real({50}, -20, 20)}, [](T t) { return erf(t[0]); }},
      {"trunc", {x}, [](T t) { return (floor(t[0]) + sign(t[0])) * t[0] + trunc(t[0]); }},
      {"stop_gradient", {x}, [](T t) { return stop_gradient(exp(t[0])) * t[0]; }},
  };
}

std::vector<Case> reductions() {
  const Input x = real({3, 5, 4}), ties = whole({6, 7});
  return {
      {"sum", {x}, [](T t) { return sum(t[0]); }},
      {"sum.axes", {x}, [](T t) { return sum(t[0], {0, -1}); }},
      {"sum.open", {open({5, 7}, 0)}, [](T t) { return square(sum(t[0], 0)); }},
      {"mean", {x}, [](T t) { return mean(t[0]); }},
      {"mean.axes", {x}, [](T t) { return mean(t[0], {0, 1}, {.keepdims = true}) * t[0]; }},
      {"mean.open", {open({5, 7}, 0)}, [](T t) { return square(mean(t[0], 0)); }},
      {"max", {x}, [](T t) { return max(t[0]); }},
      {"max.axis", {x}, [](T t) { return max(t[0], 1); }},
      {"max.ties", {ties}, [](T t) { return max(t[0], 1); }},
      {"max.all.ties", {ties}, [](T t) { return max(t[0]); }},
      {"min.ties", {ties}, [](T t) { return min(t[0], 0); }},
      {"min.axes", {x}, [](T t) { return min(t[0], {0, 2}); }},
      {"prod", {real({2, 6}, 0.5, 1.5)}, [](T t) { return prod(t[0]); }},
      {"prod.axis", {x}, [](T t) { return prod(t[0], 1); }},
      {"prod.zeros", {whole({8, 4})}, [](T t) { return prod(t[0], 1); }},
      {"var", {x}, [](T t) { return var(t[0]); }},
      {"var.axes", {x}, [](T t) { return var(t[0], {0, 2}, {.correction = 0}); }},
      {"var.open", {open({5, 7}, 0)}, [](T t) { return var(t[0], 0); }},
      {"norm", {x}, [](T t) { return norm(t[0]); }},
      {"norm.axis", {x}, [](T t) { return norm(t[0], -1); }},
      {"norm.zero", {whole({3, 4}, 0, 0)}, [](T t) { return norm(t[0], 1); }},
      {"prod.open", {open({5, 7}, 0)}, [](T t) { return prod(t[0], 0); }},
      {"prod.long", {real({2, 70}, 0.9, 1.1)}, [](T t) { return prod(t[0], 1); }},
      {"max.open", {open({5, 7}, 0)}, [](T t) { return max(t[0], 0); }},
      {"sum.none", {real({0, 4})}, [](T t) { return sum(square(t[0]), 0); }},
      {"cumsum.open", {open({5, 7}, 0)}, [](T t) { return square(cumsum(t[0], 0)); }},
      {"cumsum", {x}, [](T t) { return square(cumsum(t[0], 1)); }},
      {"sort", {x}, [](T t) { return sort(t[0], 1, true).values; }},
      {"topk", {x}, [](T t) { return topk(t[0], 2, 1).values; }},
      {"sort.ties", {ties}, [](T t) { return sort(t[0], 1).values; }},
      {"topk.ties", {ties}, [](T t) { return topk(t[0], 3, 0).values; }},
      {"sort.open", {open({5, 7}, 0)}, [](T t) { return sort(t[0], 0).values; }},
      {"softmax.hidden",
       {x, boolean({3, 5, 3})},
       [](T t) {
         const Tensor seen = pad(cast(t[1], DType::f32), {0, 0, 1}, {0, 0, 0}, 1.0) > 0.5;
         return softmax(where(seen, t[0], -std::numeric_limits<float>::infinity()), -1);
       }},
      {"log_softmax.hidden",
       {x, boolean({3, 5, 3})},
       [](T t) {
         const Tensor seen = pad(cast(t[1], DType::f32), {0, 0, 1}, {0, 0, 0}, 1.0) > 0.5;
         const Tensor hidden = where(seen, t[0], -std::numeric_limits<float>::infinity());
         return where(seen, log_softmax(hidden, -1), 0) + unsqueeze(logsumexp(hidden, -1), -1);
       }},
      {"softmax", {x}, [](T t) { return softmax(t[0], 1); }},
      // Farther apart, f32 has too few digits of p (1 - p), PyTorch's as well.
      {"softmax.far", {real({4, 9}, -30, 30)}, [](T t) { return softmax(t[0], -1); }},
      {"softmax.open", {open({5, 7}, 1)}, [](T t) { return softmax(t[0], 1); }},
      {"log_softmax", {x}, [](T t) { return log_softmax(t[0], 0); }},
      {"log_softmax.far", {real({4, 9}, -200, 200)}, [](T t) { return log_softmax(t[0], -1); }},
      {"logsumexp", {x}, [](T t) { return logsumexp(t[0], -1); }},
  };
}

std::vector<Case> shapes() {
  const Input x = real({3, 5, 4}), y = real({3, 2, 4});
  return {
      {"concat", {x, y}, [](T t) { return square(concat({t[0], t[1], t[0]}, 1)); }},
      {"stack", {x, x}, [](T t) { return square(stack({t[0], t[1], t[0]}, -1)); }},
      {"split",
       {x},
       [](T t) {
         const Tensors parts = split(t[0], {2, 3}, 1);
         return weighed(square(parts[0])) + weighed(exp(parts[1]));
       }},
      {"chunk", {x}, [](T t) { return chunk(t[0], 2, 2)[0] * chunk(t[0], 2, 2)[1]; }},
      {"slice", {x}, [](T t) { return square(slice(t[0], 1, {.start = 1, .step = 2})); }},
      {"narrow", {x}, [](T t) { return exp(narrow(t[0], 1, 1, 3)); }},
      {"select", {x}, [](T t) { return select(t[0], 1, -2) * select(t[0], 1, 0); }},
      {"dynamic_slice",
       {x, index({}, 4)},
       [](T t) { return square(dynamic_slice(t[0], 1, t[1], 2)); }},
      {"dynamic_update",
       {x, y, index({}, 4)},
       [](T t) { return square(dynamic_update(t[0], t[1], 1, t[2])); }},
      {"pad", {x}, [](T t) { return square(pad(t[0], {0, 2, 1}, {1, 0, 3}, 0.5)); }},
      {"flip", {x}, [](T t) { return flip(t[0], {0, 2}) * t[0]; }},
      {"transpose", {x}, [](T t) { return square(transpose(t[0])); }},
      {"permute", {x}, [](T t) { return square(permute(t[0], {2, 0, 1})); }},
      {"reshape", {x}, [](T t) { return square(reshape(t[0], {6, -1})); }},
      {"flatten", {x}, [](T t) { return softmax(flatten(t[0], 1), 1); }},
      {"squeeze",
       {real({3, 1, 4})},
       [](T t) { return square(unsqueeze(squeeze(t[0], 1), {0, 2})); }},
      {"broadcast_to", {real({5, 1})}, [](T t) { return square(broadcast_to(t[0], {3, 5, 4})); }},
      {"take", {x, index({2, 6}, 5)}, [](T t) { return square(take(t[0], t[1], 1)); }},
      {"gather", {x, index({3, 2, 4}, 5)}, [](T t) { return square(gather(t[0], 1, t[1])); }},
      {"scatter.add",
       {x, index({2}, 5), y},
       [](T t) { return square(scatter(t[0], 1, t[1], t[2])); }},
      {"scatter.set",
       {x, y},
       [](T t) { return square(scatter(t[0], 1, constant({3, 0}), t[1], Scatter::set)); }},
      {"scatter.max",
       {x, y},
       [](T t) { return scatter(t[0], 1, constant({3, 0}), t[1], Scatter::max); }},
      {"scatter.min",
       {x, y},
       [](T t) { return scatter(t[0], 1, constant({3, 0}), t[1], Scatter::min); }},
      {"scatter.mul",
       {x, y},
       [](T t) { return scatter(t[0], 1, constant({3, 0}), t[1], Scatter::mul); }},
      {"concat.open",
       {open({5, 7}, 0), real({2, 7})},
       [](T t) { return square(concat({t[0], t[1], t[0]}, 0)); }},
      {"pad.open", {open({5, 7}, 0)}, [](T t) { return square(pad(t[0], {2, 1}, {1, 0})); }},
      {"flip.open", {open({5, 7}, 0)}, [](T t) { return t[0] * flip(t[0], 0); }},
      {"slice.open",
       {open({6, 7}, 0)},
       [](T t) { return square(slice(t[0], 0, {.start = -4, .step = 2})); }},
      {"take.open",
       {open({5, 7}, 0), index({9}, 5)},
       [](T t) { return square(take(t[0], t[1], 0)); }},
      {"embedding.wide",
       {index({200}, 7), real({7, 64})},
       [](T t) { return square(embedding(t[0], t[1])); }},
      {"embedding",
       {index({4, 6}, 7), real({7, 5})},
       [](T t) { return square(embedding(t[0], t[1])); }},
  };
}

std::vector<Case> products() {
  const auto product = [](T t) { return matmul(t[0], t[1]); };
  return {
      {"matmul", {real({5, 7}), real({7, 3})}, product},
      {"matmul.batch", {real({2, 3, 5, 7}), real({2, 3, 7, 4})}, product},
      {"matmul.broadcast", {real({2, 1, 5, 7}), real({3, 7, 4})}, product},
      {"matmul.right", {real({2, 3, 5, 7}), real({7, 4})}, product},
      {"matmul.left", {real({5, 7}), real({3, 7, 4})}, product},
      {"matmul.vectors", {real({7}), real({7})}, product},
      {"matmul.row", {real({7}), real({3, 7, 4})}, product},
      {"matmul.column", {real({3, 5, 7}), real({7})}, product},
      {"matmul.open", {open({5, 7}, 0), real({7, 3})}, product},
      {"matmul.wide", {real({100, 130}), real({130, 70})}, product},
      {"matmul.deep", {real({3, 1000}), real({1000, 2})}, product},
      {"matmul.none", {real({3, 0}), real({0, 2})}, product},
      {"matmul.open.depth", {open({3, 7}, 1), open({7, 2}, 0)}, product},
      {"matmul.one", {real({4, 1, 1}), real({1, 5})}, product},
      {"linear",
       {real({2, 5, 6}), real({3, 6}), real({3})},
       [](T t) { return linear(t[0], t[1], t[2]); }},
      {"linear.plain", {real({5, 6}), real({3, 6})}, [](T t) { return linear(t[0], t[1]); }},
      {"conv1d",
       {real({2, 4, 11}), real({6, 4, 3}), real({6})},
       [](T t) { return conv1d(t[0], t[1], {.bias = t[2]}); }},
      {"conv1d.all",
       {real({2, 4, 13}), real({6, 2, 3})},
       [](T t) {
         return conv1d(t[0], t[1], {.stride = 2, .padding = 3, .dilation = 2, .groups = 2});
       }},
      {"conv2d",
       {real({2, 3, 7, 6}), real({4, 3, 3, 3}), real({4})},
       [](T t) { return conv2d(t[0], t[1], {.padding = 1, .bias = t[2]}); }},
      {"conv2d.stride",
       {real({2, 3, 8, 9}), real({4, 3, 3, 2})},
       [](T t) { return conv2d(t[0], t[1], {.stride = {2, 3}}); }},
      {"conv2d.dilation",
       {real({1, 3, 9, 8}), real({4, 3, 2, 3})},
       [](T t) { return conv2d(t[0], t[1], {.padding = {0, 2}, .dilation = {3, 2}}); }},
      {"conv2d.groups",
       {real({2, 6, 6, 5}), real({4, 3, 3, 3})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 2, .padding = 1, .groups = 2}); }},
      {"conv2d.depthwise",
       {real({2, 5, 7, 7}), real({5, 1, 3, 3})},
       [](T t) { return conv2d(t[0], t[1], {.padding = 1, .groups = 5}); }},
      {"conv2d.open",
       {open({2, 3, 6, 6}, 0), real({4, 3, 3, 3})},
       [](T t) { return conv2d(t[0], t[1], {.padding = 1}); }},
      {"conv2d.one",
       {real({2, 6, 5, 5}), real({4, 6, 1, 1})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 2}); }},
      {"conv2d.whole",
       {real({2, 3, 5, 5}), real({4, 3, 5, 5})},
       [](T t) { return conv2d(t[0], t[1]); }},
      {"conv2d.padded",
       {real({2, 3, 4, 4}), real({4, 3, 3, 3})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 3, .padding = 4}); }},
      {"conv2d.multiplier",
       {real({2, 4, 6, 6}), real({8, 1, 3, 3})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 2, .padding = 1, .groups = 4}); }},
      {"conv1d.open",
       {open({2, 3, 12}, 2), real({4, 3, 3})},
       [](T t) { return conv1d(t[0], t[1], {.stride = 2, .padding = 1}); }},
      {"conv2d.wide",
       {real({2, 16, 12, 12}), real({32, 16, 3, 3})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 2, .padding = 1}); }},
      {"conv3d",
       {real({1, 2, 4, 5, 4}), real({3, 2, 2, 3, 2})},
       [](T t) { return conv3d(t[0], t[1], {.padding = 1}); }},
      {"conv3d.all",
       {real({2, 4, 6, 5, 7}), real({6, 2, 2, 3, 3})},
       [](T t) {
         return conv3d(
             t[0], t[1],
             {.stride = {2, 1, 3}, .padding = {1, 0, 2}, .dilation = {1, 2, 1}, .groups = 2});
       }},
      {"conv2d.patches",
       {real({2, 3, 9, 8}), real({5, 3, 4, 4})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 4}); }},
      {"conv2d.open.all",
       {open({3, 4, 9, 8}, 0), real({4, 2, 3, 2})},
       [](T t) { return conv2d(t[0], t[1], {.stride = 2, .padding = 1, .groups = 2}); }},
      {"second.conv2d.all",
       {real({2, 4, 7, 6}), real({4, 2, 3, 3})},
       [](T t) {
         const Tensor y = tanh(conv2d(t[0], t[1], {.stride = 2, .padding = 1, .groups = 2}));
         const Tensors d = grad(sum(square(y)), t);
         return sum(square(d[0])) + sum(square(d[1]));
       }},
      {"max_pool2d", {real({2, 3, 6, 8})}, [](T t) { return max_pool2d(t[0], 2); }},
      {"max_pool2d.all",
       {real({2, 3, 7, 8})},
       [](T t) { return max_pool2d(t[0], {3, 2}, {.stride = {2, 1}, .padding = {1, 0}}); }},
      {"max_pool2d.ties",
       {whole({2, 3, 7, 8}, 0, 1)},
       [](T t) { return max_pool2d(t[0], 3, {.stride = 2, .padding = 1}); }},
      {"max_pool2d.open", {open({3, 2, 6, 8}, 0)}, [](T t) { return max_pool2d(t[0], 2); }},
      {"max_pool2d.far",
       {real({2, 2, 11, 10})},
       [](T t) { return max_pool2d(t[0], {5, 2}, {.stride = {2, 3}, .padding = {2, 0}}); }},
      {"avg_pool2d", {real({2, 3, 6, 8})}, [](T t) { return avg_pool2d(t[0], 2); }},
      {"avg_pool2d.counted",
       {real({2, 3, 7, 8})},
       [](T t) { return avg_pool2d(t[0], 3, {.stride = 2, .padding = 1}); }},
      {"avg_pool2d.uncounted",
       {real({2, 3, 7, 8})},
       [](T t) {
         return avg_pool2d(t[0], 3, {.stride = 2, .padding = 1, .count_include_pad = false});
       }},
  };
}

}  // namespace

std::vector<Case> function_cases() {
  std::vector<Case> all;
  for (const std::vector<Case>& part : {elementwise(), reductions(), shapes(), products()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace hone::peer
