// Losses, with the line of whoever asks for them.
#include "formulas/losses.h"
#include "import/common/build.h"
#include "ops/require.h"
#include "tensor/network.h"
#include "tensor/trace.h"

namespace hone {

namespace {

Value reduced_loss(const formulas::Weighed& w, Reduction r) {
  if (r == Reduction::none) return w.loss;
  return r == Reduction::sum ? formulas::sum_of(w.loss) : formulas::mean_of(w);
}

void expect_classes(const Value& x, const Value& target, const CrossEntropy& by) {
  bool fits = x.rank() >= 2 && target.rank() == x.rank() - 1 && is_integer(target.dtype());
  for (int i = 0; fits && i < target.rank(); ++i)
    fits = prove_equal(target.shape()[i], x.shape()[i == 0 ? 0 : i + 1]) != false;
  if (!fits)
    throw UserError("cross_entropy: the logits are ", x.type(), " and the target ", target.type(),
                    ", expected [n, classes, ...] and integers [n, ...]");
  if (!(by.label_smoothing >= 0 && by.label_smoothing <= 1))
    throw UserError("cross_entropy: label_smoothing is ", by.label_smoothing,
                    ", expected from 0 to 1");
}

using Error = Value(Value, Value);

Tensor error_loss(std::string_view who, Error* of, const Tensor& x, const Operand& target,
                  Loss how) {
  return recorded(target.at, [&](Trace& t) {
    const Value v = t.value(x);
    const Value to = value_of(t, target, v.dtype(), who);
    if (!is_float(v.dtype())) throw UserError(who, ": x is ", v.type(), ", expected a float dtype");
    // A target that broadcasts is a mistake more often than not.
    bool fits = to.rank() == 0 || to.rank() == v.rank();
    for (int i = 0; fits && i < to.rank(); ++i)
      fits = prove_equal(to.shape()[i], v.shape()[i]) != false;
    if (!fits)
      throw UserError(who, ": x is ", v.type(), " and the target ", to.type(),
                      ", expected equal sizes, or a scalar");
    const auto [a, b] = broadcast_pair(v, to, who);
    const Value loss = of(a, b);
    if (how.reduction == Reduction::none) return loss;
    return how.reduction == Reduction::sum ? formulas::sum_of(loss)
                                           : build::mean_over(loss, all_axes(loss.rank()), false);
  });
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropy& by, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value x = t.value(logits), to = t.value(target);
    expect_classes(x, to, by);
    formulas::Classes classes{.ignored = by.ignore_index, .smoothing = by.label_smoothing};
    if (!by.weight.is_empty()) classes.weight = t.value(by.weight);
    Value checked = to;
    if (by.ignore_index)
      checked = ops::select(
          Values{ops::ne(to, integer_like(to, *by.ignore_index)), to, integer_like(to, 0)});
    require_within(checked, 0, x.shape()[1] - Dim(1), "cross_entropy: a target", at);
    const Value log_p = ops::log_softmax(x, {{"axis", std::int64_t{1}}});
    return reduced_loss(formulas::negative_log_likelihood(log_p, to, classes), by.reduction);
  });
}

Tensor mse_loss(const Tensor& x, const Operand& target, Loss how) {
  return error_loss("mse_loss", formulas::squared_error, x, target, how);
}
Tensor l1_loss(const Tensor& x, const Operand& target, Loss how) {
  return error_loss("l1_loss", formulas::absolute_error, x, target, how);
}
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Operand& target, Loss how) {
  return error_loss("binary_cross_entropy_with_logits", formulas::binary_cross_entropy, x, target,
                    how);
}

}  // namespace hone
