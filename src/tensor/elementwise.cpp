// Values from nothing, and functions of each element.
#include <algorithm>
#include <iterator>

#include "import/common/build.h"
#include "tensor/functions.h"
#include "tensor/program.h"
#include "tensor/trace.h"

namespace hone {

namespace {

Tensor mapped(const Op& op, const Tensor& x, Where at) {
  return recorded(at, [&](Trace& t) { return op(t.value(x)); });
}

Value filled_with(Trace& t, const Type& type, const Operand& number) {
  return broadcast_to(value_of(t, number, type.dtype, "full"), type.shape);
}

}  // namespace

Tensor full(const Type& type, const Operand& number) {
  return recorded(number.at, [&](Trace& t) { return filled_with(t, type, number); });
}
Tensor zeros(const Type& type, Where at) {
  return type.dtype == DType::b1 ? full(type, {false, at}) : full(type, {0, at});
}
Tensor ones(const Type& type, Where at) {
  return type.dtype == DType::b1 ? full(type, {true, at}) : full(type, {1, at});
}
Tensor zeros_like(const Tensor& x, Where at) {
  return located(at, [&] { return zeros(x.type(), at); });
}
Tensor ones_like(const Tensor& x, Where at) {
  return located(at, [&] { return ones(x.type(), at); });
}
Tensor arange(const Dim& count, DType dtype, Where at) {
  return recorded(at, [&](Trace& t) { return build::counted(t.graph(), dtype, count); });
}
Tensor constant(const Array& a, Where at) {
  return recorded(at, [&](Trace& t) { return constant(t.graph(), a); });
}
Tensor constant(const std::vector<float>& numbers, std::vector<std::int64_t> dims, Where at) {
  return located(
      at, [&] { return constant(Array::of<float>(DType::f32, std::move(dims), numbers), at); });
}
Tensor constant(const std::vector<std::int64_t>& numbers, Where at) {
  return constant(Array::from_ints(numbers), at);
}
Tensor size_of(const Tensor& x, int axis, DType dtype, Where at) {
  return recorded(at, [&](Trace& t) { return size_value(t.graph(), x.size(axis), dtype); });
}

Tensor cast(const Tensor& x, DType dtype, Where at) {
  return recorded(at, [&](Trace& t) { return cast_to(t.value(x), dtype); });
}
Tensor abs(const Tensor& x, Where at) { return mapped(ops::abs, x, at); }
Tensor sign(const Tensor& x, Where at) { return mapped(ops::sign, x, at); }
Tensor square(const Tensor& x, Where at) { return mapped(ops::square, x, at); }
Tensor floor(const Tensor& x, Where at) { return mapped(ops::floor, x, at); }
Tensor ceil(const Tensor& x, Where at) { return mapped(ops::ceil, x, at); }
Tensor round(const Tensor& x, Where at) { return mapped(ops::round, x, at); }
Tensor trunc(const Tensor& x, Where at) { return mapped(ops::trunc, x, at); }
Tensor exp(const Tensor& x, Where at) { return mapped(ops::exp, x, at); }
Tensor log(const Tensor& x, Where at) { return mapped(ops::log, x, at); }
Tensor sqrt(const Tensor& x, Where at) { return mapped(ops::sqrt, x, at); }
Tensor rsqrt(const Tensor& x, Where at) { return mapped(ops::rsqrt, x, at); }
Tensor reciprocal(const Tensor& x, Where at) { return mapped(ops::recip, x, at); }
Tensor sin(const Tensor& x, Where at) { return mapped(ops::sin, x, at); }
Tensor cos(const Tensor& x, Where at) { return mapped(ops::cos, x, at); }
Tensor erf(const Tensor& x, Where at) { return mapped(ops::erf, x, at); }
Tensor tanh(const Tensor& x, Where at) { return mapped(ops::tanh, x, at); }
Tensor sigmoid(const Tensor& x, Where at) { return mapped(ops::sigmoid, x, at); }
Tensor softplus(const Tensor& x, Where at) { return mapped(ops::softplus, x, at); }
Tensor relu(const Tensor& x, Where at) { return mapped(ops::relu, x, at); }
Tensor silu(const Tensor& x, Where at) { return mapped(ops::silu, x, at); }
Tensor gelu(const Tensor& x, Gelu kind, Where at) {
  return mapped(kind == Gelu::erf ? ops::gelu : ops::gelu_tanh, x, at);
}
Tensor leaky_relu(const Tensor& x, double slope, Where at) {
  return recorded(at, [&](Trace& t) { return ops::leaky_relu(t.value(x), {{"alpha", slope}}); });
}
// exp of a large x would be infinite, and its derivative 0 times infinity.
Tensor elu(const Tensor& x, double alpha, Where at) {
  return recorded(at, [&](Trace& t) {
    const Value v = t.value(x), zero = constant_like(v, 0), is_above = ops::lt(zero, v);
    const Value below = (ops::exp(ops::select(Values{is_above, zero, v})) - 1.0) * alpha;
    return ops::select(Values{is_above, v, below});
  });
}
Tensor clip(const Operand& x, const Operand& low, const Operand& high) {
  return recorded(x.at, [&](Trace& t) {
    const Operand* all[] = {&x, &low, &high};
    const auto is_tensor = [](const Operand* o) { return o->kind == Operand::Kind::tensor; };
    const auto typed = std::ranges::find_if(all, is_tensor);
    if (typed == std::end(all))
      throw UserError("clip: all operands are numbers, expected at least one tensor");
    const DType dtype = Trace::type_of((*typed)->tensor).dtype;
    Values values;
    for (const Operand* o : all) values.push_back(value_of(t, *o, dtype, "clip"));
    return ops::clip(broadcast_all(values, "clip"));
  });
}

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  return recorded(a.at, [&](Trace& t) {
    const Value c = t.value(condition);
    const Operand& typed = a.kind == Operand::Kind::tensor ? a : b;
    if (typed.kind != Operand::Kind::tensor)
      throw UserError("where: both choices are numbers, expected at least one tensor");
    const DType dtype = Trace::type_of(typed.tensor).dtype;
    return where(c, value_of(t, a, dtype, "where"), value_of(t, b, dtype, "where"));
  });
}

}  // namespace hone
