// Functions along axes: reductions, scans, sorting, softmax, products.
#include <algorithm>

#include "import/common/build.h"
#include "tensor/functions.h"
#include "tensor/trace.h"

namespace hone {

namespace {

Axes reduced_axes(const AxisList& list, const Value& x, std::string_view who) {
  if (list.is_all()) return all_axes(x.rank());
  Axes out;
  for (int a : list.axes()) {
    out.push_back(normal_axis(a, x.rank(), who));
    for (std::size_t i = 0; i + 1 < out.size(); ++i)
      if (out[i] == out.back())
        throw UserError(who, ": axis ", a, " of ", x.type(), " is given twice");
  }
  std::ranges::sort(out);
  return out;
}

Tensor reduced(const Op& op, std::string_view who, const Tensor& x, const AxisList& axes,
               Reduce how, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    return reduce_axes(op, v, reduced_axes(axes, v, who), how.keepdims);
  });
}

// An operation that has attribute axis.
Tensor along_axis(const Op& op, const Tensor& x, int axis, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    return op(v, {{"axis", std::int64_t{normal_axis(axis, v.rank(), op.name)}}});
  });
}

Tensor place_of(const Op& op, const Tensor& x, int axis, Reduce how, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    const int k = normal_axis(axis, v.rank(), op.name);
    const Value y = op(v, {{"axis", std::int64_t{k}}, {"dtype", DType::i64}});
    return how.keepdims ? unsqueeze(y, {k}) : y;
  });
}

Sorted sorted_by(const Tensor& x, int axis, Attrs attrs, Where at) {
  return located(at, [&]() -> Sorted {
    Trace& t = Trace::current();
    const Value v = t.value(x);
    attrs.set("axis", std::int64_t{normal_axis(axis, v.rank(), "sort")});
    const Value y = ops::sort(v, attrs);
    return {t.tensor(y), t.tensor(y.result(1))};
  });
}

void expect_float(const Value& x, std::string_view who) {
  if (!is_float(x.dtype()))
    throw UserError(who, ": x is ", x.type(), ", expected a float dtype; use cast(x, dtype)");
}

}  // namespace

Tensor sum(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return reduced(ops::reduce_sum, "sum", x, axes, how, at);
}
Tensor prod(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return reduced(ops::reduce_prod, "prod", x, axes, how, at);
}
Tensor max(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return reduced(ops::reduce_max, "max", x, axes, how, at);
}
Tensor min(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return reduced(ops::reduce_min, "min", x, axes, how, at);
}
Tensor any(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return reduced(ops::reduce_or, "any", x, axes, how, at);
}
Tensor all(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return reduced(ops::reduce_and, "all", x, axes, how, at);
}
Tensor mean(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    expect_float(v, "mean");
    return build::mean_over(v, reduced_axes(axes, v, "mean"), how.keepdims);
  });
}

Tensor var(const Tensor& x, const AxisList& list, Variance how, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    expect_float(v, "var");
    const Axes axes = reduced_axes(list, v, "var");
    Dim count = 1;
    for (int a : axes) count = count * v.shape()[a];
    Value y = ops::variance(v, {{"axes", dims_of_axes(axes)}});
    if (how.correction != 0) {
      const Value n = size_value(t.graph(), count, v.dtype());
      y = y * (n / (n - static_cast<double>(how.correction)));
    }
    return how.keepdims ? unsqueeze(y, axes) : y;
  });
}

Tensor norm(const Tensor& x, const AxisList& axes, Reduce how, Where at) {
  const Tensor squares = sum(square(x, at), axes, how, at);
  return recorded(at, [&](Trace& t) {
    // The derivative of sqrt is infinite at 0, and that of the square 0: that of the norm is 0.
    const Value s = t.value(squares), zero = constant_like(s, 0), is_zero = ops::eq(s, zero);
    return ops::select(
        Values{is_zero, zero, ops::sqrt(ops::select(Values{is_zero, constant_like(s, 1), s}))});
  });
}

Tensor argmax(const Tensor& x, int axis, Reduce how, Where at) {
  return place_of(ops::argmax, x, axis, how, at);
}
Tensor argmin(const Tensor& x, int axis, Reduce how, Where at) {
  return place_of(ops::argmin, x, axis, how, at);
}

Tensor cumsum(const Tensor& x, int axis, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    return ops::cumulative(v, {{"axis", std::int64_t{normal_axis(axis, v.rank(), "cumsum")}},
                               {"kind", std::string("sum")},
                               {"exclusive", std::int64_t{0}},
                               {"reverse", std::int64_t{0}}});
  });
}

Sorted sort(const Tensor& x, int axis, bool descending, Where at) {
  return sorted_by(x, axis, {{"descending", std::int64_t{descending}}}, at);
}
Sorted topk(const Tensor& x, std::int64_t k, int axis, Where at) {
  return sorted_by(x, axis, {{"descending", std::int64_t{1}}, {"count", Dims{k}}}, at);
}

Tensor softmax(const Tensor& x, int axis, Where at) {
  return along_axis(ops::softmax, x, axis, at);
}
Tensor log_softmax(const Tensor& x, int axis, Where at) {
  return along_axis(ops::log_softmax, x, axis, at);
}
// The largest is subtracted first, and counts as constant: its derivatives cancel.
Tensor logsumexp(const Tensor& x, int axis, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x);
    const int k = normal_axis(axis, v.rank(), "logsumexp");
    const Value most = reduce_axes(ops::reduce_max, v, {k});
    const Value rest = ops::exp(v - broadcast_back(most, {k}, v.shape()));
    return ops::log(reduce_axes(ops::reduce_sum, rest, {k})) + most;
  });
}

Tensor matmul(const Tensor& a, const Tensor& b, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value x = t.value(a), y = t.value(b);
    if (x.dtype() != y.dtype())
      throw UserError("matmul: the tensors are ", x.type(), " and ", y.type(),
                      ", expected equal dtypes; use cast(x, dtype)");
    const auto [p, q] = build::of_one_depth(x, y);
    return ops::matmul(p, q);
  });
}

}  // namespace hone
