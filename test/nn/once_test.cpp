// What the forward pass computed is not computed again for a derivative: operations are counted
// after the passes, where equal ones are one node.
#include <gtest/gtest.h>

#include "compile/pipeline.h"
#include "nn/recurrent.h"
#include "ops/expand.h"
#include "ops/ops.h"
#include "tensor/control.h"
#include "tensor/network.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

std::size_t count_in(const Function& f, const Op& op) {
  std::size_t n = 0;
  for (NodeId node : live_nodes(f)) {
    n += &f.graph().op(node) == &op;
    for (const Attrs::Entry& e : f.graph().attrs(node).entries())
      if (const FunctionRef* body = std::get_if<FunctionRef>(&e.second)) n += count_in(**body, op);
  }
  return n;
}

// The only entry after the passes, as kernels compute it: what they take whole is expanded.
Function lowered(const Program& p) {
  Function f = run_passes(p.graph().entries.at(0).function);
  return for_bodies_too(f, [](const Function& g) { return expand_composites(g); });
}

using Call = std::function<Tensor(const Tensors&)>;

Function lowered(const std::vector<Type>& types, const Call& call, bool with_derivatives) {
  Program p("p");
  p.entry("f", {{"a", types.at(0)}, {"b", types.at(1)}, {"c", types.at(2)}},
          [&](Tensor a, Tensor b, Tensor c) {
            const Tensors x = {a, b, c};
            const Tensor y = call(x);
            Results out{{"y", y}};
            if (!with_derivatives) return out;
            for (const Tensor& d : grad(weighed(y), x, {.unused = true}))
              out.add(cat("d", out.all().size()), d);
            return out;
          });
  return lowered(p);
}

// How often `op` is computed forward, and forward and backward.
std::pair<std::size_t, std::size_t> counts(const std::vector<Type>& types, const Call& call,
                                           const Op& op) {
  return {count_in(lowered(types, call, false), op), count_in(lowered(types, call, true), op)};
}

using Pair = std::pair<std::size_t, std::size_t>;
const std::vector<Type> row_types = {f32({6, 40}), f32({40}), f32({40})};

TEST(ComputedOnce, ExpOfSoftmax) {
  const Call f = [](const Tensors& x) { return softmax(x[0], 1); };
  EXPECT_EQ(counts(row_types, f, ops::exp), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::reduce_max), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::reduce_sum), (Pair{1, 2}));
}

// The derivative takes exp of the result.
TEST(ComputedOnce, LogarithmOfSoftmax) {
  const Call f = [](const Tensors& x) { return log_softmax(x[0], 1); };
  EXPECT_EQ(counts(row_types, f, ops::log), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::reduce_max), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::exp), (Pair{1, 2}));
}

// Backward: two means over the rows, and the sums over the rows for weight and bias.
TEST(ComputedOnce, StatisticsOfLayerNorm) {
  const Call f = [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); };
  EXPECT_EQ(counts(row_types, f, ops::sqrt), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::reduce_sum), (Pair{2, 6}));
  const std::vector<Type> half = {f16({6, 40}), f16({40}), f16({40})};
  EXPECT_EQ(counts(half, f, ops::sqrt), (Pair{1, 1}));
  EXPECT_EQ(counts(half, f, ops::reduce_sum), (Pair{2, 6}));
}

TEST(ComputedOnce, StatisticsOfRmsNorm) {
  const Call f = [](const Tensors& x) { return rms_norm(x[0], x[1]); };
  EXPECT_EQ(counts(row_types, f, ops::sqrt), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::reduce_sum), (Pair{1, 3}));
}

// In training, by its own mean and variance: the derivative is that of the formulas.
TEST(ComputedOnce, StatisticsOfBatchNorm) {
  const Call f = [](const Tensors& x) {
    return batch_norm(x[0], mean(x[0], 0), var(x[0], 0, {.correction = 0}), x[1], x[2]);
  };
  EXPECT_EQ(counts(row_types, f, ops::sqrt), (Pair{1, 1}));
  EXPECT_EQ(counts(row_types, f, ops::reduce_sum), (Pair{2, 6}));
}

TEST(ComputedOnce, StepsOfScan) {
  const std::vector<Type> types = {f32({20, 2, 4}), f32({2, 4}), f32({4, 4})};
  const Call f = [](const Tensors& x) {
    return scan({x[1]}, {x[0]},
                [&](const Tensors& c, const Tensors& over) -> Stepped {
                  const Tensor next = tanh(matmul(c[0], x[2]) + exp(over[0]));
                  return {{next}, {next}};
                })
        .kept[0];
  };
  EXPECT_EQ(counts(types, f, ops::while_loop), (Pair{1, 2}));
  EXPECT_EQ(counts(types, f, ops::tanh), (Pair{1, 1}));
  EXPECT_EQ(counts(types, f, ops::exp), (Pair{1, 1}));
  EXPECT_EQ(counts(types, f, ops::dot), (Pair{1, 3}));  // by c and by the matrix
}

// Three sigmoids and two hyperbolic tangents a step. Backward, the products are those by the state
// and by the recurrent matrix, by x and by the matrix of x.
TEST(ComputedOnce, StepsOfLstm) {
  const auto lstm = [](bool with_derivatives) {
    Program p("p");
    nn::Module root(p, "m");
    const nn::LSTM m(root, "lstm", {.in = 3, .hidden = 4});
    p.entry("f", {{"x", f32({20, 2, 3})}}, [&](Tensor x) {
      const Tensor y = m(x).output;
      Results out{{"y", y}};
      if (!with_derivatives) return out;
      out.add("dx", grad(weighed(y), Tensors{x})[0]);
      for (const Tensor& d : grad(weighed(y), root.parameters()))
        out.add(cat("d", out.all().size()), d);
      return out;
    });
    return lowered(p);
  };
  const Function forward = lstm(false), both = lstm(true);
  EXPECT_EQ(count_in(forward, ops::exp), 3u);
  EXPECT_EQ(count_in(both, ops::exp), 3u);
  EXPECT_EQ(count_in(forward, ops::tanh), 2u);
  EXPECT_EQ(count_in(both, ops::tanh), 2u);
  EXPECT_EQ(count_in(forward, ops::dot), 2u);
  EXPECT_EQ(count_in(both, ops::dot), 6u);
  // The derivative of the recurrent matrix is one product of all steps, beside the loop.
  std::size_t beside = 0;
  for (NodeId n : live_nodes(both)) beside += &both.graph().op(n) == &ops::dot;
  EXPECT_EQ(beside, 4u);
  // Without derivatives the loop carries the count, h, c and the output.
  for (NodeId n : live_nodes(forward))
    if (&forward.graph().op(n) == &ops::while_loop) EXPECT_EQ(forward.graph().result_count(n), 4u);
}

}  // namespace
}  // namespace hone::test
