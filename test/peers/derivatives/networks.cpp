// Cases of what networks are made of: norms, attention, losses, loops, whole modules, optimisers.
// derivatives.py has the same names.
#include <memory>

#include "case.h"

namespace hone::peer {

namespace {

using T = const Tensors&;

std::vector<Case> norms() {
  const Input image = real({4, 3, 5, 5}), weight = real({3}, 0.5, 1.5), bias = real({3}),
              variance = real({3}, 0.25, 2);
  return {
      {"layer_norm",
       {real({4, 3, 8}), real({8}), real({8})},
       [](T t) { return layer_norm(t[0], t[1], t[2]); }},
      {"layer_norm.axes",
       {real({4, 3, 8}), real({3, 8})},
       [](T t) { return layer_norm(t[0], t[1], {}, 0.1); }},
      {"layer_norm.open",
       {open({4, 8}, 0), real({8}), real({8})},
       [](T t) { return layer_norm(t[0], t[1], t[2]); }},
      {"layer_norm.equal",
       {whole({4, 8}, 1, 1), real({8}), real({8})},
       [](T t) { return layer_norm(t[0], t[1], t[2]); }},
      {"layer_norm.wide",
       {real({6, 768}), real({768}), real({768})},
       [](T t) { return layer_norm(t[0], t[1], t[2]); }},
      {"rms_norm.zero", {whole({4, 8}, 0, 0), real({8})}, [](T t) { return rms_norm(t[0], t[1]); }},
      {"rms_norm", {real({4, 3, 8}), real({8})}, [](T t) { return rms_norm(t[0], t[1]); }},
      {"rms_norm.axes", {real({4, 3, 8}), real({3, 8})}, [](T t) { return rms_norm(t[0], t[1]); }},
      {"batch_norm",
       {image, bias, variance, weight, bias},
       [](T t) { return batch_norm(t[0], t[1], t[2], t[3], t[4]); }},
  };
}

// A mask under which the first key is always seen.
Tensor seen(const Tensor& others) {
  return pad(cast(others, DType::f32), {0, 1}, {0, 0}, 1.0) > 0.5;
}

std::vector<Case> attention() {
  std::vector<Case> out;
  for (const std::int64_t n : {1, 7, 64, 65, 300}) {
    const Input x = real({2, 2, n, 8});
    const std::string length = std::to_string(n);
    out.push_back({"attention." + length, {x, x, x}, [](T t) {
                     return scaled_dot_product_attention(t[0], t[1], t[2]);
                   }});
    out.push_back({"attention.causal." + length, {x, x, x}, [](T t) {
                     return scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true});
                   }});
    out.push_back({"attention.mask." + length, {x, x, x, real({n, n})}, [](T t) {
                     return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = t[3]});
                   }});
    out.push_back({"attention.bool." + length, {x, x, x, boolean({n, n - 1})}, [](T t) {
                     return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = seen(t[3])});
                   }});
  }
  out.push_back(
      {"attention.mask.rows",
       {real({2, 2, 90, 8}), real({2, 2, 70, 8}), real({2, 2, 70, 6}), real({2, 1, 70})},
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = t[3]}); }});
  out.push_back(
      {"attention.bool",
       {real({2, 2, 7, 8}), real({2, 2, 5, 8}), real({2, 2, 5, 6}), boolean({7, 4})},
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = seen(t[3])}); }});
  out.push_back(
      {"attention.causal.longer",
       {real({2, 2, 4, 8}), real({2, 2, 9, 8}), real({2, 2, 9, 8})},
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true}); }});
  out.push_back({"attention.far",
                 {real({2, 2, 7, 8}, -30, 30), real({2, 2, 7, 8}, -30, 30), real({2, 2, 7, 8})},
                 [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2]); }});
  out.push_back(
      {"attention.grouped", {real({2, 4, 7, 8}), real({2, 2, 7, 8}), real({2, 2, 7, 8})}, [](T t) {
         return scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true, .scale = 0.5});
       }});
  out.push_back(
      {"attention.open",
       {open({2, 2, 9, 8}, 2), open({2, 2, 9, 8}, 2), open({2, 2, 9, 8}, 2)},
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true}); }});
  const Input long_one = open({2, 2, 90, 8}, 2);
  out.push_back({"attention.open.long", {long_one, long_one, long_one}, [](T t) {
                   return scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true});
                 }});
  return out;
}

std::vector<Case> losses() {
  const Input logits = real({6, 5}), target = index({6}, 5), x = real({4, 5}), y = real({4, 5});
  return {
      {"cross_entropy", {logits, target}, [](T t) { return cross_entropy(t[0], t[1]); }},
      {"cross_entropy.ignored",
       {logits, target},
       [](T t) { return cross_entropy(t[0], t[1], {.ignore_index = 2}); }},
      {"cross_entropy.smoothed",
       {logits, target},
       [](T t) { return cross_entropy(t[0], t[1], {.label_smoothing = 0.1}); }},
      {"cross_entropy.all",
       {logits, target, real({5}, 0.5, 2)},
       [](T t) {
         return cross_entropy(
             t[0], t[1],
             {.weight = stop_gradient(t[2]), .ignore_index = 2, .label_smoothing = 0.2});
       }},
      {"cross_entropy.sum",
       {logits, target},
       [](T t) { return cross_entropy(t[0], t[1], {.reduction = Reduction::sum}); }},
      {"cross_entropy.image",
       {real({2, 5, 3, 4}), index({2, 3, 4}, 5)},
       [](T t) { return cross_entropy(t[0], t[1], {.reduction = Reduction::none}); }},
      {"cross_entropy.open",
       {open({6, 5}, 0), Input{{6}, 0, 4, Input::Kind::index, 0}},
       [](T t) { return cross_entropy(t[0], t[1], {.label_smoothing = 0.1}); }},
      {"cross_entropy.none",
       {logits, index({6}, 1)},
       [](T t) { return cross_entropy(t[0], t[1], {.ignore_index = 0}); }},
      {"cross_entropy.wide",
       {real({9, 1000}), index({9}, 1000)},
       [](T t) { return cross_entropy(t[0], t[1]); }},
      {"linear_cross_entropy",
       {real({6, 3}), real({5, 3}), target},
       [](T t) { return linear_cross_entropy(t[0], t[1], t[2]); }},
      {"linear_cross_entropy.all",
       {real({6, 3}), real({5, 3}), target, real({5})},
       [](T t) {
         return linear_cross_entropy(t[0], t[1], t[2],
                                     {.bias = t[3], .ignore_index = 2, .label_smoothing = 0.2});
       }},
      {"linear_cross_entropy.sum",
       {real({6, 3}), real({5, 3}), target, real({5})},
       [](T t) {
         return linear_cross_entropy(t[0], t[1], t[2], {.bias = t[3], .reduction = Reduction::sum});
       }},
      {"linear_cross_entropy.open",
       {open({6, 3}, 0), real({5, 3}), Input{{6}, 0, 4, Input::Kind::index, 0}},
       [](T t) { return linear_cross_entropy(t[0], t[1], t[2], {.label_smoothing = 0.1}); }},
      {"linear_cross_entropy.wide",  // three chunks
       {real({90, 8}), real({30000, 8}), index({90}, 30000)},
       [](T t) { return linear_cross_entropy(t[0], t[1], t[2]); }},
      {"l1_loss.ties", {whole({4, 5}), whole({4, 5})}, [](T t) { return l1_loss(t[0], t[1]); }},
      {"cross_entropy.far",
       {real({6, 5}, -300, 300), target},
       [](T t) { return cross_entropy(t[0], t[1]); }},
      {"mse_loss", {x, y}, [](T t) { return mse_loss(t[0], t[1]); }},
      {"l1_loss", {x, y}, [](T t) { return l1_loss(t[0], t[1], {.reduction = Reduction::sum}); }},
      {"binary_cross_entropy",
       {real({4, 5}, -120, 120), real({4, 5}, 0, 1)},
       [](T t) { return binary_cross_entropy_with_logits(t[0], t[1]); }},
  };
}

// w is [inputs + width, 4 width]: the gates in, forget, cell, out.
Stepped lstm(const Tensors& carried, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Tensors gates = chunk(matmul(concat({x, carried[0]}, 1), w) + bias, 4, 1);
  const Tensor c = sigmoid(gates[1]) * carried[1] + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor h = sigmoid(gates[3]) * tanh(c);
  return {{h, c}, {h}};
}

Tensor second_of_attention(T t) {
  return square(grad(weighed(scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true})),
                     Tensors{t[0]})[0]);
}

std::vector<Case> control() {
  const std::vector<Input> cells = {real({6, 2, 3}), real({2, 4}), real({2, 4}),
                                    real({7, 16}, -1, 1), real({16})};
  const auto lstm_with = [](bool unroll) {
    return [unroll](T t) {
      const Scanned s =
          scan({t[1], t[2]}, {t[0]},
               [&](T carried, T x) { return lstm(carried, x[0], t[3], t[4]); }, {.unroll = unroll});
      return weighed(s.kept[0]) + weighed(s.carried[1]);
    };
  };
  const auto branch = [](T t) {
    return if_else(
        sum(t[0]) > sum(t[1]), [&] { return Tensors{t[0] * exp(t[1])}; },
        [&] { return Tensors{sin(t[0]) + square(t[1])}; })[0];
  };
  return {
      {"if_else.yes", {real({3, 4}, 0, 2), real({4}, -2, 0)}, branch},
      {"if_else.no", {real({3, 4}, -2, 0), real({4}, 0, 2)}, branch},
      {"scan.lstm", cells, lstm_with(false)},
      {"scan.lstm.unrolled", cells, lstm_with(true)},
      {"scan.product",
       {real({5, 3}), real({3})},
       [](T t) {
         return scan({t[1]}, {t[0]},
                     [](T c, T x) { return Stepped{{c[0] * x[0] + 0.5}, {sin(c[0])}}; })
             .kept[0];
       }},
      {"scan.open",
       {open({5, 3}, 0), real({3}), real({3})},
       [](T t) {  // with a captured tensor, and a choice in each step
         return scan({t[1]}, {t[0]},
                     [&](T c, T x) {
                       const Tensor next = where(sum(x[0]) > 0, c[0] * t[2], sin(c[0] + x[0]));
                       return Stepped{{next}, {next * x[0]}};
                     })
             .kept[0];
       }},
      {"scan.branch",
       {real({5, 3}), real({3}), real({3})},
       [](T t) {
         return scan({t[1]}, {t[0]},
                     [&](T c, T x) {
                       const Tensor next = if_else(
                           sum(x[0]) > 0, [&] { return Tensors{c[0] * t[2]}; },
                           [&] { return Tensors{sin(c[0] + x[0])}; })[0];
                       return Stepped{{next}, {next * x[0]}};
                     })
             .kept[0];
       }},
      {"scan.last",
       {real({6, 3}), real({3, 3}), real({3})},
       [](T t) {
         return scan({t[2]}, {t[0]},
                     [&](T c, T x) { return Stepped{{tanh(matmul(t[1], c[0]) + x[0])}, {}}; })
             .carried[0];
       }},
      {"vjp",
       {real({3, 4}), real({3, 4})},
       [](T t) { return vjp({sin(t[0]), exp(t[0])}, {t[1], square(t[1])}, {t[0]})[0]; }},
      {"with_gradient",
       {real({3, 4})},
       [](T t) {
         return with_gradient([](T x) { return Tensors{round(x[0])}; },
                              [](T x, T, T d) { return Tensors{d[0] * cos(x[0])}; }, {t[0]})[0];
       }},
  };
}

// Derivatives of derivatives.
std::vector<Case> higher() {
  return {
      {"second.scan",
       {real({4, 3}), real({3})},
       [](T t) {
         const auto f = [](T c, T x) { return Stepped{{sin(c[0]) * x[0] + c[0]}, {}}; };
         return square(grad(sum(scan({t[1]}, {t[0]}, f).carried[0]), Tensors{t[0]})[0]);
       }},
      {"scan.reverse",
       {real({5, 3}), real({3})},
       [](T t) {
         const auto f = [](T c, T x) { return Stepped{{c[0] * x[0] + 0.5}, {sin(c[0])}}; };
         return scan({t[1]}, {t[0]}, f, {.reverse = true}).kept[0];
       }},
      {"scan.whole",  // a tensor of integers is carried, and one kept
       {real({5, 3}), real({3})},
       [](T t) {
         const Scanned s = scan({t[1], constant({2})}, {t[0]}, [](T c, T x) {
           const Tensor n = c[1] + 1;
           return Stepped{{c[0] * x[0] + sin(cast(n, DType::f32)), n}, {exp(x[0]) * c[0], n}};
         });
         return weighed(s.kept[0]) + weighed(s.carried[0]);
       }},
      {"second.scan.kept",
       {real({4, 3}), real({3})},
       [](T t) {
         const auto f = [](T c, T x) { return Stepped{{tanh(c[0]) * x[0]}, {exp(c[0]) * x[0]}}; };
         const Scanned s = scan({t[1]}, {t[0]}, f);
         const Tensor loss = weighed(s.kept[0]) + sum(square(s.carried[0]));
         const Tensors d = grad(loss, Tensors{t[0], t[1]});
         return weighed(square(d[0])) + weighed(square(d[1]));
       }},
      {"second.if_else",
       {real({3, 4}), real({4})},
       [](T t) {
         const Tensor y = if_else(
             sum(t[0]) > 0, [&] { return Tensors{exp(t[0]) * t[1]}; },
             [&] { return Tensors{sin(t[0] * t[1])}; })[0];
         return square(grad(sum(y), Tensors{t[0]})[0]);
       }},
      {"second.max_pool2d",
       {real({1, 2, 6, 6})},
       [](T t) { return square(grad(weighed(square(max_pool2d(t[0], 2))), Tensors{t[0]})[0]); }},
      {"second.batch_norm",
       {real({6, 3})},
       [](T t) {
         const Tensor m = mean(t[0], 0), v = var(t[0], 0, {.correction = 0});
         const Tensor one = ones(f32({3})), y = batch_norm(t[0], m, v, one, one);
         return square(grad(weighed(square(y)), Tensors{t[0]})[0]);
       }},
      {"second.tanh",
       {real({3, 4})},
       [](T t) { return square(grad(sum(tanh(t[0]) * t[0]), Tensors{t[0]})[0]); }},
      {"second.softmax",
       {real({3, 4})},
       [](T t) { return grad(weighed(softmax(t[0], 1)), Tensors{t[0]})[0]; }},
      {"second.penalty",
       {real({5, 3}), real({6, 3}), real({6}), real({1, 6})},
       [](T t) {
         const Tensor y = linear(gelu(linear(t[0], t[1], t[2])), t[3]);
         const Tensor g = grad(sum(y), Tensors{t[0]})[0];
         return mean(square(norm(g, 1) - 1));
       }},
      {"second.conv2d",
       {real({1, 2, 5, 5}), real({3, 2, 3, 3})},
       [](T t) {
         const Tensor y = tanh(conv2d(t[0], t[1], {.padding = 1}));
         return square(grad(sum(y), Tensors{t[0]})[0]);
       }},
      {"second.layer_norm",
       {real({3, 6}), real({6}), real({6})},
       [](T t) {
         return square(grad(weighed(square(layer_norm(t[0], t[1], t[2]))), Tensors{t[0]})[0]);
       }},
      {"second.attention",
       {real({1, 2, 5, 4}), real({1, 2, 5, 4}), real({1, 2, 5, 4})},
       second_of_attention},
      {"second.attention.long",
       {real({1, 2, 70, 4}), real({1, 2, 70, 4}), real({1, 2, 70, 4})},
       second_of_attention},
      {"third.pow",
       {real({6}, 0.5, 2)},
       [](T t) {
         const Tensor once = grad(sum(pow(t[0], 2.5) * log(t[0])), Tensors{t[0]})[0];
         return grad(sum(once * sin(t[0])), Tensors{t[0]})[0];
       }},
  };
}

// A module of a type that is called with the first argument.
template <class M, class... Options>
Make calls(const Options&... options) {
  return [=](nn::Module& root) -> Function {
    return [m = std::make_shared<M>(root, "m", options...)](T t) { return (*m)(t[0]); };
  };
}

struct ConvNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{*this, "conv1", {.in = 2, .out = 6, .kernel = 3, .padding = 1, .bias = false}},
      conv2{*this, "conv2", {.in = 6, .out = 8, .kernel = 3, .stride = 2, .bias = false}};
  nn::BatchNorm2d bn1{*this, "bn1", 6}, bn2{*this, "bn2", 8};
  nn::Linear head{*this, "head", {.in = 8, .out = 5}};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = max_pool2d(relu(bn1(conv1(x))), 2);
    return head(mean(silu(bn2(conv2(y))), {2, 3}));
  }
};

// The loss is of all results, from given states.
template <class M>
Make runs(const nn::RecurrentOptions& options) {
  return [=](nn::Module& root) -> Function {
    return [m = std::make_shared<M>(root, "m", options)](T t) {
      if constexpr (std::is_same_v<M, nn::LSTM>) {
        const auto [y, h, c] = (*m)(t[0], t[1], t[2]);
        return weighed(y) + weighed(h) + weighed(c);
      } else {
        const auto [y, h] = (*m)(t[0], t[1]);
        return weighed(y) + weighed(h);
      }
    };
  };
}

std::vector<Case> recurrent() {
  const nn::RecurrentOptions one = {.in = 3, .hidden = 4},
                             plain = {.in = 3, .hidden = 4, .bias = false},
                             all = {.in = 3,
                                    .hidden = 4,
                                    .layers = 2,
                                    .batch_first = true,
                                    .bidirectional = true};
  const Input x = real({6, 2, 3}), h = real({1, 2, 4}), of_all = real({2, 6, 3}),
              h_of_all = real({4, 2, 4});
  return {
      {"nn.lstm", {x, h, h}, {}, runs<nn::LSTM>(one)},
      {"nn.lstm.plain", {x, h, h}, {}, runs<nn::LSTM>(plain)},
      {"nn.lstm.all", {of_all, h_of_all, h_of_all}, {}, runs<nn::LSTM>(all), true},
      {"nn.lstm.open", {open({6, 2, 3}, 0), h, h}, {}, runs<nn::LSTM>(one)},
      {"nn.lstm.one", {real({1, 2, 3}), h, h}, {}, runs<nn::LSTM>(one)},
      {"nn.lstm.long", {real({70, 2, 3}), h, h}, {}, runs<nn::LSTM>(one)},
      {"nn.gru", {x, h}, {}, runs<nn::GRU>(one)},
      {"nn.gru.plain", {x, h}, {}, runs<nn::GRU>(plain)},
      {"nn.gru.all", {of_all, h_of_all}, {}, runs<nn::GRU>(all), true},
      {"nn.gru.open", {open({6, 2, 3}, 0), h}, {}, runs<nn::GRU>(one)},
      {"nn.lstm.zeros",
       {x},
       {},
       [one](nn::Module& root) -> Function {
         return [m = std::make_shared<nn::LSTM>(root, "m", one)](T t) { return (*m)(t[0]).output; };
       }},
  };
}

std::vector<Case> modules() {
  const nn::BlockOptions block = {.width = 8, .heads = 2},
                         causal = {.width = 8, .heads = 2, .hidden = 12, .is_causal = true};
  const Make conv_net = [](nn::Module& root) -> Function {
    return
        [m = std::make_shared<ConvNet>(root, "m")](T t) { return cross_entropy((*m)(t[0]), t[1]); };
  };
  const Make token_model = [](nn::Module& root) -> Function {
    const nn::Embedding tokens(root, "tokens", {.count = 11, .width = 8});
    const nn::TransformerBlock one(root, "one", {.width = 8, .heads = 2, .is_causal = true});
    return [=](T t) {  // the head is the table of the tokens
      return cross_entropy(transpose(linear(one(tokens(t[0])), tokens.weight)), t[1]);
    };
  };
  return {
      {"nn.batch_norm1d.training", {real({6, 3})}, {}, calls<nn::BatchNorm1d>(3), true},
      {"nn.batch_norm1d.eval", {real({6, 3})}, {}, calls<nn::BatchNorm1d>(3)},
      {"nn.batch_norm2d.training", {real({3, 4, 3, 5})}, {}, calls<nn::BatchNorm2d>(4), true},
      {"nn.batch_norm2d.eval", {real({3, 4, 3, 5})}, {}, calls<nn::BatchNorm2d>(4)},
      {"nn.attention",
       {real({2, 5, 8})},
       {},
       calls<nn::MultiheadAttention>(nn::AttentionOptions{.width = 8, .heads = 2})},
      {"nn.mlp",
       {real({4, 6})},
       {},
       calls<nn::Mlp>(nn::MlpOptions{.width = 6, .hidden = 10}),
       true},
      {"nn.block", {real({2, 5, 8})}, {}, calls<nn::TransformerBlock>(block), true},
      {"nn.block.causal", {real({2, 5, 8})}, {}, calls<nn::TransformerBlock>(causal)},
      {"nn.conv_net.training", {real({4, 2, 9, 9}), index({4}, 5)}, {}, conv_net, true},
      {"nn.conv_net.eval", {real({4, 2, 9, 9}), index({4}, 5)}, {}, conv_net},
      {"nn.tokens", {index({2, 6}, 11), index({2, 6}, 11)}, {}, token_model, true},
  };
}

}  // namespace

std::vector<Case> network_cases() {
  std::vector<Case> all;
  for (const std::vector<Case>& part :
       {norms(), attention(), losses(), control(), higher(), modules(), recurrent()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

namespace {

template <class O, class Options>
OptimizerCase steps_of(std::string name, Options options) {
  return {std::move(name), [options](Program& p, const Variables& parameters) -> Step {
            return [by = O(p, "by", parameters, options)](T gradients) { by.step(gradients); };
          }};
}

}  // namespace

std::vector<OptimizerCase> optimizer_cases() {
  return {
      steps_of<nn::SGD>("sgd", nn::SgdOptions{.rate = 0.1}),
      steps_of<nn::SGD>("sgd.momentum", nn::SgdOptions{.rate = 0.05, .momentum = 0.9}),
      steps_of<nn::SGD>("sgd.nesterov",
                        nn::SgdOptions{.rate = 0.05, .momentum = 0.9, .nesterov = true}),
      steps_of<nn::SGD>("sgd.decay", nn::SgdOptions{.rate = 0.1, .weight_decay = 0.02}),
      steps_of<nn::SGD>(
          "sgd.all",
          nn::SgdOptions{.rate = 0.05, .momentum = 0.8, .weight_decay = 0.02, .nesterov = true}),
      steps_of<nn::Adam>("adam", nn::AdamOptions{.rate = 0.02}),
      steps_of<nn::Adam>(
          "adam.all",
          nn::AdamOptions{
              .rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-4, .weight_decay = 0.02}),
      steps_of<nn::AdamW>("adamw", nn::AdamWOptions{.rate = 0.02}),
      steps_of<nn::AdamW>("adamw.decay", nn::AdamWOptions{.rate = 0.02, .weight_decay = 0.3}),
      {"ema",
       [](Program& p, const Variables& parameters) -> Step {
         return [by = nn::SGD(p, "by", parameters, {.rate = 0.1}),
                 mean = nn::Ema(p, "mean", parameters, 0.9)](T gradients) {
           by.step(gradients);
           mean.update();
         };
       }},
      {"clip_grad_norm",
       [](Program& p, const Variables& parameters) -> Step {
         return [by = nn::SGD(p, "by", parameters, {.rate = 0.1})](T gradients) {
           Tensors clipped = gradients;
           nn::clip_grad_norm(clipped, 0.3);
           by.step(clipped);
         };
       }},
  };
}

}  // namespace hone::peer
