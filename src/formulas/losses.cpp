#include "formulas/losses.h"

#include "import/common/build.h"

namespace hone::formulas {

namespace {

// [n, ...] repeated along a second axis.
Value over_classes(Value per_target, const Shape& shape) {
  return broadcast_to(unsqueeze(per_target, {1}), shape);
}

}  // namespace

Weighed negative_log_likelihood(Value log_p, Value target, const Classes& by) {
  const Shape& shape = log_p.shape();
  const Value zero = constant_like(log_p, 0);
  const Value class_weight = by.weight ? build::along_channels(by.weight, shape) : Value();
  const Value is_target =
      ops::eq(iota_value(log_p.graph(), target.dtype(), shape, 1), over_classes(target, shape));
  const auto of_target = [&](Value v) {
    return reduce_axes(ops::reduce_sum, ops::select(Values{is_target, v, zero}), {1});
  };
  Weighed out;
  out.weight = class_weight ? of_target(class_weight)
                            : build::filled(log_p.graph(), log_p.dtype(), target.shape(), 1);
  out.loss = -(class_weight ? of_target(log_p * class_weight) : of_target(log_p));
  if (by.smoothing != 0) {
    const Value all = class_weight ? log_p * class_weight : log_p;
    const Value count = size_value(log_p.graph(), shape[1], log_p.dtype());
    out.loss = out.loss * (1 - by.smoothing) -
               reduce_axes(ops::reduce_sum, all, {1}) / count * by.smoothing;
  }
  if (!by.ignored) return out;
  const Value counts = ops::ne(target, integer_like(target, *by.ignored));
  out.weight = build::where_or(counts, out.weight, 0);
  out.loss = build::where_or(counts, out.loss, 0);
  return out;
}

Value sum_of(Value loss) { return build::sum_over(loss, all_axes(loss.rank())); }
Value mean_of(const Weighed& w) { return sum_of(w.loss) / sum_of(w.weight); }

Value squared_error(Value x, Value target) {
  const Value d = x - target;
  return d * d;
}
Value absolute_error(Value x, Value target) { return ops::abs(x - target); }
Value binary_cross_entropy(Value x, Value target) {
  return ops::relu(x) - x * target + ops::softplus(-ops::abs(x));
}

}  // namespace hone::formulas
