// The judge of derivatives: right ones of many kinds of functions pass, and wrong ones are refused,
// whichever rule they come from.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "compile/program.h"
#include "grad/gradients.h"
#include "nn/layers.h"
#include "nn/optimizers.h"
#include "ops/common.h"
#include "ops/expand.h"
#include "tensor/control.h"
#include "tensor/grad.h"
#include "verify/model/derivatives.h"

namespace hone::test {
namespace {

JudgedDerivatives judged(const ProgramGraph& p) {
  const ProgramEntry& e = p.entries.at(0);
  std::vector<std::optional<Array>> starts;
  for (const std::int32_t s : e.states)
    starts.push_back(s < 0 ? std::nullopt : p.states[static_cast<std::size_t>(s)].start);
  return judge_derivatives(e.recorded, e.derivatives, {{"rows", 5}}, starts);
}

const Dim some_rows = dim("rows", 1, 64);
using Parameters = std::function<Tensor(const char* name, Dims sizes)>;
using Loss = std::function<Tensor(const Parameters&, const Tensor& x, const Tensor& label)>;

// The derivatives of a loss for each parameter that it asks for. x is f32[rows, 6], labels are
// 0..2.
Program training(const Loss& f) {
  Program p("network", {.seed = 11});
  p.entry(
      "train", {Arg{"x", f32({some_rows, 6})}, Arg{"label", i64({some_rows})}},
      [&](const Tensor& x, const Tensor& label) {
        Variables all;
        const Tensor loss = f(
            [&](const char* name, Dims sizes) -> Tensor {
              all.push_back(p.variable(name, f32(Shape(std::move(sizes))), Start::normal(0, 0.5)));
              return all.back();
            },
            x, label);
        Results out{{"loss", loss}};
        for (const Tensor& d : grad(loss, all)) out.add(cat("d", out.all().size()), d);
        return out;
      });
  return p;
}

Tensor mlp(const Parameters& w, const Tensor& x, const Tensor& label) {
  const Tensor h = tanh(linear(x, w("a", {8, 6}), w("bias", {8})));
  return cross_entropy(matmul(gelu(matmul(h, w("b", {8, 8}))), w("c", {8, 3})), label);
}
Tensor normed(const Parameters& w, const Tensor& x, const Tensor& label) {
  const Tensor h = layer_norm(matmul(x, w("a", {6, 6})), w("weight", {6}), w("bias", {6}));
  const Tensor y = h / sqrt(mean(square(h), -1, {.keepdims = true}) + 0.1) / (1.0 + exp(-h));
  return cross_entropy(matmul(y, w("c", {6, 3})), label) + 0.01 * sum(square(w("d", {3})));
}
Tensor attended(const Parameters& w, const Tensor& x, const Tensor& label) {
  const Tensor q = matmul(x, w("q", {6, 6})), k = matmul(x, w("k", {6, 6}));
  const Tensor y =
      scaled_dot_product_attention(q, k, matmul(x, w("v", {6, 6})), {.is_causal = true});
  return cross_entropy(matmul(y, w("c", {6, 3})), label);
}
Tensor convolved(const Parameters& w, const Tensor& x, const Tensor& label) {
  const Tensor image = reshape(x, {some_rows, 1, 2, 3});
  const Tensor y = conv2d(image, w("kernel", {4, 1, 2, 2}), {.padding = 1, .bias = w("bias", {4})});
  return cross_entropy(matmul(flatten(max_pool2d(relu(y), 2), 1), w("c", {8, 3})), label);
}

TEST(Judged, RightDerivativesPass) {
  const std::vector<std::pair<const char*, Loss>> all = {
      {"mlp", mlp},
      {"normed", normed},
      {"attended", attended},
      {"convolved", convolved},
      {"embedded",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         return cross_entropy(matmul(x, w("a", {6, 4})) + embedding(label, w("e", {3, 4})), label);
       }},
      {"stopped",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor h = matmul(x, w("a", {6, 3}));
         return cross_entropy(h * stop_gradient(sigmoid(h)), label);
       }},
      {"straight through",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor h = matmul(x, w("a", {6, 3}));
         const Tensor r = with_gradient(
             [](const Tensors& in) { return Tensors{round(in[0] * 4.0) / 4.0}; },
             [](const Tensors&, const Tensors&, const Tensors& d) { return d; }, {h})[0];
         return cross_entropy(r * w("b", {3}), label);
       }},
      {"dropped",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor h = matmul(x, w("a", {6, 3}));
         return cross_entropy(where(rand(f32({3})) < 0.5, h, 0.5 * h), label);
       }},
      {"scanned",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor a = w("a", {6, 4}), b = w("b", {4, 4});
         const Tensor h =
             scan({zeros(f32({4}))}, {x}, [&](const Tensors& c, const Tensors& in) -> Stepped {
               const Tensor next = tanh(matmul(in[0], a) + matmul(c[0], b));
               return {{next}, {next}};
             }).kept[0];
         return cross_entropy(matmul(h, w("c", {4, 3})), label);
       }},
      {"branched",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor h = matmul(x, w("a", {6, 3}));
         return cross_entropy(if_else(
                                  sum(x) > 100.0, [&] { return Tensors{h * 2.0}; },
                                  [&] { return Tensors{h * h}; })[0],
                              label);
       }},
      {"of second order",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor loss = mlp(w, x, label);
         return loss + 0.1 * sum(square(grad(loss, {x})[0]));
       }},
      {"quantized",  // steps almost everywhere
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         return cross_entropy(matmul(x, floor(w("a", {6, 3}) * 8.0) + w("b", {6, 3})), label);
       }},
      {"unmoved",  // a bias before a norm
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         const Tensor h = matmul(x, w("a", {6, 3})) + w("b", {3});
         return cross_entropy((h - mean(h, 0)) * rsqrt(var(h, 0, {.correction = 0}) + 1e-5), label);
       }},
      {"on a kink",
       [](const Parameters& w, const Tensor& x, const Tensor& label) {
         return cross_entropy(matmul(relu(0.0 * matmul(x, w("a", {6, 6}))) + x, w("c", {6, 3})),
                              label);
       }},
  };
  for (const auto& [name, loss] : all) {
    SCOPED_TRACE(name);
    const JudgedDerivatives j = judged(training(loss).graph());
    EXPECT_GT(j.agree, 0);
    const bool steps = std::string(name) == "quantized";
    for (const std::string& u : j.undecided) EXPECT_TRUE(steps) << u;
  }
}

// How a rule can be wrong.
enum class Fault : std::uint8_t { sign, factor, detached, transposed, no_sum, exchanged };

template <const Op& op, Fault fault>
Values wrong(const Call& c, std::span<const Value> results, std::span<const Value> dy) {
  Values d = op.grad(c, results, dy);
  if constexpr (fault == Fault::sign) d[0] = -d[0];
  if constexpr (fault == Fault::factor) d[0] = d[0] * 2.0;
  if constexpr (fault == Fault::detached) d[0] = Value();
  if constexpr (fault == Fault::exchanged) std::swap(d[0], d[1]);
  if constexpr (fault == Fault::transposed)
    for (Value& v : d)
      if (v && v.rank() == 2 && v.shape()[0] == v.shape()[1]) v = transpose_matrix(v);
  if constexpr (fault == Fault::no_sum) {
    // The first of what was repeated instead of the sum.
    const Shape &from = c.shape(0), &to = dy[0].shape();
    d[0] = dy[0];
    for (int axis = 1; axis <= to.rank(); ++axis)
      if (axis > from.rank() || !(from[-axis] == to[-axis]))
        d[0] = slice_axis(d[0], to.rank() - axis, Dim(0), Dim(1));
    d[0] = reshape_to(d[0], from.dims);
  }
  return d;
}
template <const Op& op, Fault fault>
const Op& faulty() {
  static const Op it = [] {
    Op copy = op;
    copy.grad = wrong<op, fault>;
    return copy;
  }();
  return it;
}

struct Planted {
  const char* what;
  const Loss loss;
  const Op &right, &wrong;
};

// The derivatives of the loss, with the wrong rule in place of the right one.
JudgedDerivatives judged_with(const Planted& p) {
  const ProgramGraph graph = training(p.loss).graph();
  const ProgramEntry& e = graph.entries.at(0);
  Function forward = clone_params(e.recorded);
  Copier copy(e.recorded, forward);
  const Values loss = e.derivatives.at(0).ys;
  for (const NodeId n : nodes_below(loss))
    if (!copy.has(n)) copy.copy(n);
  forward.add_result(copy(loss[0]), "loss");
  int replaced = 0;
  const Function expanded = expand_composites(forward);
  const Graph& of = expanded.graph();
  const Function f =
      transform(expanded, [&](NodeId n, Copier& in, Function& to) -> std::vector<Value> {
        if (&of.op(n) != &p.right) return {};
        Values operands, results;
        for (const Value& o : of.operands(n)) operands.push_back(in(o));
        const Value made =
            to.graph().intern_typed(p.wrong, operands, of.attrs(n), of.result_types(n));
        for (std::size_t i = 0; i < of.result_count(n); ++i) results.push_back(made.result(i));
        ++replaced;
        return results;
      });
  EXPECT_GT(replaced, 0) << p.what;
  Derivative d{{f.result(0)}, {constant_like(f.result(0), 1)}, {}, {}};
  std::vector<std::optional<Array>> starts;
  for (std::size_t i = 0; i < e.states.size(); ++i) {
    const std::int32_t s = e.states[i];
    starts.push_back(s < 0 ? std::nullopt : graph.states[static_cast<std::size_t>(s)].start);
    if (s >= 0) d.xs.push_back(f.param(i));
  }
  d.dxs = gradients(d.ys, d.dys, d.xs);
  return judge_derivatives(f, std::span(&d, 1), {{"rows", 5}}, starts);
}

TEST(Judged, WrongRulesAreRefused) {
  using enum Fault;
  const Planted all[] = {
      {"tanh: sign", mlp, ops::tanh, faulty<ops::tanh, sign>()},
      {"tanh: factor", mlp, ops::tanh, faulty<ops::tanh, factor>()},
      {"tanh: detached", mlp, ops::tanh, faulty<ops::tanh, detached>()},
      {"erf: factor", mlp, ops::erf, faulty<ops::erf, factor>()},
      {"exp: sign", mlp, ops::exp, faulty<ops::exp, sign>()},
      {"log: factor", mlp, ops::log, faulty<ops::log, factor>()},
      {"dot: sign", mlp, ops::dot, faulty<ops::dot, sign>()},
      {"dot: detached", mlp, ops::dot, faulty<ops::dot, detached>()},
      {"dot: transposed", mlp, ops::dot, faulty<ops::dot, transposed>()},
      {"broadcast: no sum", mlp, ops::broadcast, faulty<ops::broadcast, no_sum>()},
      {"reduce_sum: factor", mlp, ops::reduce_sum, faulty<ops::reduce_sum, factor>()},
      {"reduce_sum: factor, norm", normed, ops::reduce_sum, faulty<ops::reduce_sum, factor>()},
      {"mul: exchanged", normed, ops::mul, faulty<ops::mul, exchanged>()},
      {"mul: detached", normed, ops::mul, faulty<ops::mul, detached>()},
      {"div: factor", normed, ops::div, faulty<ops::div, factor>()},
      {"sqrt: sign", normed, ops::sqrt, faulty<ops::sqrt, sign>()},
      {"sub: sign", normed, ops::sub, faulty<ops::sub, sign>()},
      {"add: detached", normed, ops::add, faulty<ops::add, detached>()},
      {"exp: detached, attention", attended, ops::exp, faulty<ops::exp, detached>()},
      {"dot: transposed, attention", attended, ops::dot, faulty<ops::dot, transposed>()},
      {"select: detached, attention", attended, ops::select, faulty<ops::select, exchanged>()},
      {"broadcast: no sum, convolution", convolved, ops::broadcast,
       faulty<ops::broadcast, no_sum>()},
      {"reshape: factor, convolution", convolved, ops::reshape, faulty<ops::reshape, factor>()},
      {"transpose: sign", mlp, ops::transpose, faulty<ops::transpose, sign>()},
  };
  for (const Planted& p : all) {
    SCOPED_TRACE(p.what);
    EXPECT_THROW(judged_with(p), InternalError);
  }
}

// A path that was dropped, in a whole program: `compile` refuses it before anything else.
TEST(Judged, CompileRefusesAWrongDerivative) {
  ProgramGraph graph = training(mlp).graph();
  EXPECT_NO_THROW(compile(graph));
  Derivative& d = graph.entries[0].derivatives.at(0);
  d.dxs.at(0) = d.dxs.at(0) * 0.5;
  try {
    compile(graph);
    FAIL() << "it was accepted";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("the derivative with respect to '"), std::string::npos)
        << e.what();
  }
  CompileOptions unverified;
  unverified.verification = Verification::none;
  EXPECT_NO_THROW(compile(graph, unverified));
}

}  // namespace
}  // namespace hone::test
