// Operators, and what else of tensor.h needs a trace.
#include <ostream>

#include "import/common/build.h"
#include "tensor/program.h"
#include "tensor/trace.h"

namespace hone {

const Type& Tensor::type() const { return Trace::type_of(*this); }

const Dim& Tensor::size(int axis, Where at) const {
  return located(at, [&]() -> const Dim& { return shape()[normal_axis(axis, rank(), "size")]; });
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  return t.is_empty() ? out << "empty" : out << t.type();
}

Dim dim(std::string name, std::int64_t low, std::int64_t high, Where at) {
  return located(at, [&] {
    if (low < 0 || high < low)
      throw UserError("dim '", name, "': the bounds are ", low, " and ", high,
                      ", expected 0 <= low <= high");
    return Dim::symbol(std::move(name), low, high);
  });
}

Operand::Operand(const Variable& v, Where at) : tensor(v.value(at)), at(at) {}

namespace {

// The dtype in which two operands meet: that of a tensor.
DType meeting_dtype(const Operand& a, const Operand& b, std::string_view who) {
  for (const Operand* x : {&a, &b})
    if (x->kind == Operand::Kind::tensor) return Trace::type_of(x->tensor).dtype;
  throw UserError(who, ": both operands are numbers, expected at least one tensor");
}

Tensor binary_of(const Op& op, std::string_view who, const Operand& a, const Operand& b) {
  return recorded(a.at, [&](Trace& trace) {
    const DType t = meeting_dtype(a, b, who);
    const auto [x, y] = broadcast_pair(value_of(trace, a, t, who), value_of(trace, b, t, who), who);
    return op(x, y);
  });
}

Tensor unary_of(const Op& op, const Operand& a) {
  return recorded(a.at, [&](Trace& trace) { return op(trace.value(a.tensor)); });
}

}  // namespace

Tensor operator+(const Operand& a, const Operand& b) { return binary_of(ops::add, "add", a, b); }
Tensor operator-(const Operand& a, const Operand& b) {
  return binary_of(ops::sub, "subtract", a, b);
}
Tensor operator*(const Operand& a, const Operand& b) {
  return binary_of(ops::mul, "multiply", a, b);
}
Tensor operator/(const Operand& a, const Operand& b) { return binary_of(ops::div, "divide", a, b); }
Tensor operator-(const Operand& a) { return unary_of(ops::neg, a); }
Tensor operator==(const Operand& a, const Operand& b) { return binary_of(ops::eq, "==", a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return binary_of(ops::ne, "!=", a, b); }
Tensor operator<(const Operand& a, const Operand& b) { return binary_of(ops::lt, "<", a, b); }
Tensor operator<=(const Operand& a, const Operand& b) { return binary_of(ops::le, "<=", a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return binary_of(ops::lt, ">", b, a); }
Tensor operator>=(const Operand& a, const Operand& b) { return binary_of(ops::le, ">=", b, a); }
Tensor operator&(const Operand& a, const Operand& b) { return binary_of(ops::bit_and, "&", a, b); }
Tensor operator|(const Operand& a, const Operand& b) { return binary_of(ops::bit_or, "|", a, b); }
Tensor operator^(const Operand& a, const Operand& b) { return binary_of(ops::bit_xor, "^", a, b); }
Tensor operator~(const Operand& a) { return unary_of(ops::bit_not, a); }
Tensor pow(const Operand& a, const Operand& b) { return binary_of(ops::pow, "pow", a, b); }
Tensor maximum(const Operand& a, const Operand& b) {
  return binary_of(ops::maximum, "maximum", a, b);
}
Tensor minimum(const Operand& a, const Operand& b) {
  return binary_of(ops::minimum, "minimum", a, b);
}
Tensor remainder(const Operand& a, const Operand& b) {
  return binary_of(ops::mod, "remainder", a, b);
}

}  // namespace hone
