// The cross-entropy of a linear map, some classes at a time. The loss keeps the logarithm of each
// row's sum, from which its derivative makes the probabilities again: four products with the
// weight instead of three, and no value of rows x classes.
#include <algorithm>
#include <limits>

#include "formulas/losses.h"
#include "import/common/build.h"
#include "ops/require.h"
#include "tensor/control.h"
#include "tensor/functions.h"
#include "tensor/grad.h"
#include "tensor/network.h"
#include "tensor/trace.h"

namespace hone {

namespace {

// Logits that are held at a time, unless that would be less than this many classes, with which a
// product is no longer fast.
constexpr std::int64_t most_logits = 1 << 19, least_classes = 256;

// The classes in chunks of equal size. The last one ends with the classes and may begin among those
// of the one before.
struct ClassChunks {
  Dim classes, size, count;

  ClassChunks(const Dim& rows, const Dim& all) : classes(all) {
    const std::int64_t known = std::max<std::int64_t>(1, rows.as_number().value_or(most_logits)),
                       most = std::max(least_classes, most_logits / known);
    size = min(classes, Dim(most));
    // Without overlap where a size not much smaller divides the classes.
    if (const auto n = classes.as_number(); n && *n > most)
      for (std::int64_t k = most; 4 * k >= 3 * most; --k)
        if (*n % k == 0) {
          size = k;
          break;
        }
    count = floor_div(classes + size - Dim(1), max(size, Dim(1)));
  }
  bool overlap() const { return !(count * size == classes); }
};

// x [rows, width] and what stands for [classes, width] weights, inside a step over the chunks.
struct ChunkedLogits {
  Value logits;   // [rows, size], wide
  Value column;   // the number of each class, i64 like the logits
  Value counts;   // bool like the logits: not in the chunk before; empty: all
  Tensor weight;  // [size, width]
  Tensor start;   // i64 scalar: the first class
};

ChunkedLogits logits_of(const ClassChunks& chunks, const Tensor& number, const Tensor& x,
                        const Tensor& w, const Tensor& bias) {
  Trace& t = Trace::current();
  Graph& g = t.graph();
  const Value nominal = t.value(number) * size_value(g, chunks.size, DType::i64);
  Value start = nominal;
  if (chunks.overlap())
    start = ops::minimum(nominal, size_value(g, chunks.classes - chunks.size, DType::i64));
  ChunkedLogits out;
  out.start = t.tensor(start);
  out.weight = dynamic_slice(w, 0, out.start, chunks.size);
  const Tensor b = bias.is_empty() ? bias : dynamic_slice(bias, 0, out.start, chunks.size);
  const Value y = t.value(linear(x, out.weight, b));
  out.logits = cast_to(y, sum_dtype(y.dtype()));
  out.column = iota_value(g, DType::i64, y.shape(), 1) + start;
  if (chunks.overlap()) out.counts = ops::le(broadcast_to(nominal, y.shape()), out.column);
  return out;
}

// What the loss and its derivative are computed from: x [rows, width], w, a bias or none, targets
// [rows] as i64. Classes that are ignored are nobody's business here.
struct LinearClasses {
  ClassChunks chunks;
  double smoothing;
  bool has_bias;

  static Value each(Value of_row, const Value& like) {
    return broadcast_back(of_row, {1}, like.shape());
  }
  Tensor bias_of(const Tensors& in) const { return has_bias ? in[2] : Tensor(); }

  // Of each row, wide: its loss, and the logarithm of the sum of exp(logit).
  Tensors losses(const Tensors& in, const Tensor& target) const {
    Trace& t = Trace::current();
    const DType wide = sum_dtype(in[0].dtype());
    const Value none = t.value(zeros(Type(wide, {in[0].size(0)})));
    // Lower than all finite logits of such a dtype, so that no difference is NaN.
    const Value lowest = constant_like(none, std::numeric_limits<float>::lowest());
    const Scanned all = scan(
        t.tensors({lowest, none, none}), {arange(chunks.count)},
        [&](const Tensors& carried, const Tensors& number) -> Stepped {
          Trace& inner = Trace::current();
          const Values was = inner.values(carried);
          const ChunkedLogits c = logits_of(chunks, number[0], in[0], in[1], bias_of(in));
          const auto counted = [&](double otherwise) {
            return c.counts
                       ? ops::select(Values{c.counts, c.logits, constant_like(c.logits, otherwise)})
                       : c.logits;
          };
          const Value logits = counted(-std::numeric_limits<double>::infinity());
          const Value most = ops::maximum(was[0], reduce_axes(ops::reduce_max, logits, {1}));
          const Value power = ops::exp(logits - each(most, logits));
          return {inner.tensors(
                      {most,
                       was[1] * ops::exp(was[0] - most) + reduce_axes(ops::reduce_sum, power, {1}),
                       was[2] + reduce_axes(ops::reduce_sum, counted(0), {1})}),
                  {}};
        });
    const Values sums = t.values(all.carried);
    const Value log_sum = ops::log(sums[1]) + sums[0];
    Value loss = log_sum - target_logits(in, t.value(target)) * (1 - smoothing);
    if (smoothing != 0)
      loss = loss - sums[2] / size_value(t.graph(), chunks.classes, wide) * smoothing;
    return t.tensors({loss, log_sum});
  }

  Value target_logits(const Tensors& in, Value target) const {
    Trace& t = Trace::current();
    const Value x = t.value(in[0]);
    const DType wide = sum_dtype(x.dtype());
    const auto at_target = [&](const Tensor& of_classes) {
      return cast_to(ops::gather(Values{t.value(of_classes), target}, {{"axis", std::int64_t{0}}}),
                     wide);
    };
    const Value y = reduce_axes(ops::reduce_sum, cast_to(x, wide) * at_target(in[1]), {1});
    return has_bias ? y + at_target(in[2]) : y;
  }

  // The derivatives of x, w and bias from those of what losses() gave. The results of the loop are
  // not marked, so that they need no copy.
  Tensors derivatives(const Tensors& in, const Tensor& target, const Tensor& log_sum,
                      const Tensors& d) const {
    Trace& t = Trace::current();
    const DType wide = sum_dtype(in[0].dtype());
    Tensors start = {t.tensor(constant(t.graph(), Array::scalar_int(0, DType::i64))),
                     zeros(Type(wide, in[0].type().shape)), zeros_like(in[1])};
    if (has_bias) start.push_back(zeros_like(in[2]));
    Tensors out = while_loop(
        start,
        [&](const Tensors& now) {
          Trace& inner = Trace::current();
          return inner.tensor(
              ops::lt(inner.value(now[0]), size_value(inner.graph(), chunks.count, DType::i64)));
        },
        [&](const Tensors& now) { return next_derivatives(now, in, target, log_sum, d); });
    OwnGradient own;
    for (const Tensor& x : {in[0], in[1], log_sum, d[0], d[1]}) own.inputs.push_back(t.value(x));
    own.results = t.values({out.begin() + 1, out.end()});
    own.rule = [](const Tensors&, const Tensors&, const Tensors&) -> Tensors {
      throw UserError(
          "linear_cross_entropy: its derivative has no derivative; use "
          "cross_entropy(linear()) where a second derivative is needed");
    };
    t.own_gradients().push_back(own);
    out.erase(out.begin());
    out[0] = cast(out[0], in[0].dtype());
    return out;
  }

  Tensors next_derivatives(const Tensors& now, const Tensors& in, const Tensor& target,
                           const Tensor& log_sum, const Tensors& d) const {
    Trace& t = Trace::current();
    const ChunkedLogits c = logits_of(chunks, now[0], in[0], in[1], bias_of(in));
    const Value dl =
        derivative_of_logits(c, t.value(target), t.value(log_sum), t.value(d[0]), t.value(d[1]));
    const Value narrow = cast_to(dl, in[0].dtype()), number = t.value(now[0]);
    Value added = narrow;
    if (c.counts) added = ops::select(c.counts, narrow, constant_like(narrow, 0));
    const Value dx = dot_general(added, t.value(c.weight), {}, {{1, 0}}, sum_dtype(narrow.dtype()));
    const Value dw = dot_general(narrow, t.value(in[0]), {}, {{0, 0}});
    Tensors next = {t.tensor(number + integer_like(number, 1)), t.tensor(t.value(now[1]) + dx),
                    dynamic_update(now[2], t.tensor(dw), 0, c.start)};
    if (has_bias) {
      const Value db = cast_to(reduce_axes(ops::reduce_sum, dl, {0}), in[2].dtype());
      next.push_back(dynamic_update(now[3], t.tensor(db), 0, c.start));
    }
    return next;
  }

  Value derivative_of_logits(const ChunkedLogits& c, Value target, Value log_sum, Value d_loss,
                             Value d_log_sum) const {
    const Value& like = c.logits;
    const Value p = ops::exp(like - each(log_sum, like));
    const Value is_target = ops::eq(c.column, each(target, c.column));
    const Value other =
        constant_like(like, 0) + smoothing / size_value(like.graph(), chunks.classes, like.dtype());
    const Value wanted = ops::select(is_target, other + (1 - smoothing), other);
    return p * each(d_loss + d_log_sum, like) - wanted * each(d_loss, like);
  }
};

void expect_linear_classes(const Value& x, const Value& w, const Value& target,
                           const LinearCrossEntropy& by) {
  bool fits = x.rank() >= 1 && w.rank() == 2 && target.rank() == x.rank() - 1 &&
              is_integer(target.dtype()) && is_float(x.dtype()) && x.dtype() == w.dtype() &&
              prove_equal(x.shape()[-1], w.shape()[1]) != false;
  for (int i = 0; fits && i < target.rank(); ++i)
    fits = prove_equal(target.shape()[i], x.shape()[i]) != false;
  if (!fits)
    throw UserError("linear_cross_entropy: x is ", x.type(), ", the weight ", w.type(),
                    " and the target ", target.type(),
                    ", expected floats [..., width] and [classes, width], and integers [...]");
  if (!(by.label_smoothing >= 0 && by.label_smoothing <= 1))
    throw UserError("linear_cross_entropy: label_smoothing is ", by.label_smoothing,
                    ", expected from 0 to 1");
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& target,
                            const LinearCrossEntropy& by, Where at) {
  return located(at, [&] {
    Trace& t = Trace::current();
    const Value v = t.value(x), weight = t.value(w), to = t.value(target);
    expect_linear_classes(v, weight, to, by);
    const Dim classes = weight.shape()[0], rows = product(to.shape().dims);
    Value checked = to, counts;
    if (by.ignore_index) {
      counts = ops::ne(to, integer_like(to, *by.ignore_index));
      checked = ops::select(Values{counts, to, integer_like(to, 0)});
    }
    require_within(checked, 0, classes - Dim(1), "linear_cross_entropy: a target", at);
    const Tensor flat = t.tensor(cast_to(reshape_to(checked, {rows}), DType::i64));
    Tensors inputs = {reshape(x, {rows, v.shape()[-1]}), w};
    if (!by.bias.is_empty()) inputs.push_back(by.bias);
    const LinearClasses c{ClassChunks(rows, classes), by.label_smoothing, inputs.size() > 2};
    const Tensors found =
        with_gradient([&](const Tensors& in) { return c.losses(in, flat); },
                      [c, flat](const Tensors& in, const Tensors& results, const Tensors& d) {
                        return c.derivatives(in, flat, results[1], d);
                      },
                      inputs);
    const Value each = reshape_to(t.value(found[0]), to.shape().dims);
    formulas::Weighed loss{each, build::filled(t.graph(), each.dtype(), each.shape(), 1)};
    if (counts) {
      loss.loss = build::where_or(counts, loss.loss, 0);
      loss.weight = build::where_or(counts, loss.weight, 0);
    }
    if (by.reduction == Reduction::sum) loss.loss = formulas::sum_of(loss.loss);
    if (by.reduction == Reduction::mean) loss.loss = formulas::mean_of(loss);
    return cast(t.tensor(loss.loss), v.dtype());
  });
}

}  // namespace hone
