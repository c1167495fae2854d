// Losses over classes.
#include "formulas/losses.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"

namespace hone::onnx {

namespace {

// -log_probability of the target class, weighted, for targets that are not ignored; then the
// weighted mean, the sum, or no reduction. x is [N, C, ...], targets are [N, ...].
Value negative_log_likelihood(NodeContext& c, Value x, Value target, Value weight) {
  if (x.rank() < 2 || target.rank() != x.rank() - 1)
    c.fail(cat("the scores are ", x.type(), " and the targets ", target.type(),
               ", expected [N, C, ...] and [N, ...]"));
  if (weight && (weight.rank() != 1 || prove_equal(weight.shape()[0], x.shape()[1]) == false))
    c.fail(cat("the weights are ", weight.type(), ", expected one for each of the ", x.shape()[1],
               " classes"));
  std::string_view how = c.text("reduction", "mean");
  formulas::Classes classes{.weight = weight};
  Value checked = target;
  if (c.has_attribute("ignore_index")) {
    classes.ignored = c.integer("ignore_index", 0);
    const Value used = ops::ne(target, integer_like(target, *classes.ignored));
    checked = ops::select(Values{used, target, integer_like(target, 0)});
  }
  require_within(checked, 0, x.shape()[1] - 1, "a class");
  const formulas::Weighed w = formulas::negative_log_likelihood(x, target, classes);
  if (how == "none") return w.loss;
  if (how == "sum") return formulas::sum_of(w.loss);
  if (how != "mean") c.bad_attribute("reduction", how, "none, sum or mean");
  return formulas::mean_of(w);
}

Values negative_log_likelihood_import(NodeContext& c) {
  return {negative_log_likelihood(c, c.in(0), c.in(1), c.has(2) ? c.in(2) : Value())};
}

Values softmax_cross_entropy(NodeContext& c) {
  Value x = c.in(0);
  if (x.rank() < 2) c.bad_input(0, "scores", "at least two axes");
  Value log_probability = ops::log_softmax(x, {{"axis", std::int64_t{1}}});
  return {negative_log_likelihood(c, log_probability, c.in(1), c.has(2) ? c.in(2) : Value()),
          log_probability};
}

constexpr ImportEntry loss_table[] = {
    {"NegativeLogLikelihoodLoss", negative_log_likelihood_import, 12},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy, 12},
};

}  // namespace

std::span<const ImportEntry> loss_imports() { return loss_table; }

}  // namespace hone::onnx
