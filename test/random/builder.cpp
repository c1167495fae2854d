#include "test/random/builder.h"

#include <algorithm>
#include <cmath>

namespace hone::fuzz {

Value Builder::param(const Type& t, std::optional<Wide> value) {
  HONE_ASSERT(!is_body_ || value, "a body takes no more parameters");
  Value v = function_.add_param(t, cat("x", function_.params().size()));
  values_.resize(graph().node_count());
  if (!value) value = widen(input_array(t, style.sample, random.next(), CaseNumbers::ordinary));
  values_[v.node()] = {std::move(*value)};
  pool_.push_back(v);
  return v;
}

// Evaluates a node alone, with its operands as parameters.
void Builder::evaluate(NodeId n) {
  Function one;
  Values operands;
  std::vector<Wide> inputs;
  for (const Value& v : graph().operands(n)) {
    operands.push_back(one.add_param(v.type(), cat("x", operands.size())));
    inputs.push_back(values_[v.node()][v.index()]);
  }
  Value made =
      one.graph().intern_typed(graph().op(n), operands, graph().attrs(n), graph().result_types(n));
  for (std::size_t i = 0; i < made.result_count(); ++i) one.add_result(made.result(i));
  values_[n] = evaluate_in(one, std::move(inputs), style.sample, Mode::strict);
}

const std::vector<Wide>& Builder::results(NodeId asked) {
  values_.resize(graph().node_count());
  std::vector<NodeId> open = {asked};
  while (!open.empty()) {
    NodeId n = open.back();
    std::size_t before = open.size();
    for (const Value& v : graph().operands(n))
      if (values_[v.node()].empty()) open.push_back(v.node());
    if (open.size() != before) continue;
    if (values_[n].empty()) evaluate(n);
    open.pop_back();
  }
  return values_[asked];
}

const Wide& Builder::value(Value v) { return results(v.node())[v.index()]; }

Range Builder::range(Value v) {
  const Wide& w = value(v);
  Range r{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          w.count(), 0};
  for (std::int64_t i = 0; i < r.count; ++i) {
    auto k = static_cast<std::size_t>(i);
    double x = w.is_real() ? w.reals[k] : static_cast<double>(w.integers[k]);
    if (!std::isfinite(x)) {
      ++r.special;
      continue;
    }
    r.low = std::min(r.low, x);
    r.high = std::max(r.high, x);
  }
  if (r.low > r.high) r.low = r.high = 0;
  return r;
}

bool Builder::keep(Value v) {
  if (!v || !v.type().is_tensor() || !fits(v.shape())) return false;
  bool needs_check = graph().checks().size() != checks_;
  checks_ = graph().checks().size();
  if (needs_check && !style.checks) return false;
  Range r = range(v);
  const double most = byte_size(v.dtype()) == 2 ? 1e3 : 1e5;
  bool poor = is_float(v.dtype()) &&
              (4 * r.special > r.count || std::max(std::fabs(r.low), std::fabs(r.high)) > most);
  if (poor && !random.chance(5)) return false;
  pool_.push_back(v);
  return true;
}

Value Builder::recent() {
  auto n = static_cast<int>(pool_.size());
  if (n == 0) return {};
  int back = random.chance(70) ? random.below(std::min(n, 3)) : random.below(n);
  return pool_[static_cast<std::size_t>(n - 1 - back)];
}

Value Builder::real() {
  Value v = find([](Value x) { return is_float(x.dtype()); });
  if (v) return v;
  v = recent();
  return v ? cast_to(v, style.real) : operand({style.real, shape()});
}

Value Builder::numeric() {
  Value v = recent();
  if (!v || v.dtype() == DType::b1 || random.chance(30)) return real();
  return v;
}

Value Builder::whole() {
  Value v = find([](Value x) { return is_integer(x.dtype()); });
  if (v && random.chance(80)) return v;
  v = recent();
  if (v && random.chance(60)) return cast_to(v, style.whole);
  return operand({style.whole, v ? v.shape() : shape()});
}

Value Builder::boolean() {
  Value v = find([](Value x) { return x.dtype() == DType::b1; });
  if (v && random.chance(70)) return v;
  v = numeric();
  const Op& op = *random.of({&ops::lt, &ops::le, &ops::eq, &ops::ne});
  return op(v, operand(v.type()));
}

Value Builder::ranked(int rank, bool (*accept)(DType)) {
  Value v = find([&](Value x) { return x.rank() >= rank && accept(x.dtype()); });
  if (v) return v;
  DType t = accept(style.real) ? style.real : accept(style.whole) ? style.whole : DType::b1;
  return operand({t, shape(random.between(rank, std::min(rank + 1, 5)))});
}

namespace {

// Whether x broadcasts to `to`: trailing axes align, and those of x are equal or 1.
bool repeats_to(const Shape& x, const Shape& to) {
  if (x.rank() > to.rank()) return false;
  for (int i = 1; i <= x.rank(); ++i)
    if (x[-i] != to[-i] && x[-i] != Dim(1)) return false;
  return true;
}

}  // namespace

// Made by a cast from a value of the same shape, or from a value that can be broadcast.
Value Builder::derived(const Type& t) {
  Value v = find([&](Value x) { return x.shape() == t.shape; });
  if (!v || random.chance(40)) {
    Value small = find([&](Value x) {
      return x.shape() != t.shape && repeats_to(x.shape(), t.shape) && x.dtype() == t.dtype;
    });
    if (small) v = small;
  }
  return v ? cast_to(broadcast_to(v, t.shape), t.dtype) : Value();
}

Value Builder::constant_of(const Type& t) {
  return constant(graph(), input_array(t, {}, random.next(), CaseNumbers::ordinary));
}

Value Builder::scalar_operand(DType t) {
  Value v =
      random.chance(30) ? find([&](Value x) { return x.type() == Type(t, Shape{}); }) : Value();
  return v ? v : constant_of({t, Shape{}});
}

Value Builder::weight(const Type& t) {
  if (t.shape.is_static() && t.shape.count().number() <= 20000 && random.chance(60))
    return constant_of(t);
  if (!is_body_ && function_.params().size() < 12) return param(t);
  if (Value v = derived(t)) return v;
  if (t.shape.is_static()) return constant_of(t);
  return broadcast_to(constant_of({t.dtype, Shape{}}), t.shape);
}

Value Builder::operand(const Type& t) {
  if (random.chance(60))
    if (Value v = find([&](Value x) { return x.type() == t; })) return v;
  if (random.chance(50))
    if (Value v = derived(t)) return v;
  if (random.chance(15)) return broadcast_to(scalar_operand(t.dtype), t.shape);
  return weight(t);
}

Value Builder::indices(const Shape& shape, const Dim& size) {
  DType t = random.of({style.whole, DType::i64, DType::i64, DType::i32});
  if (random.chance(40)) {
    Value v = find([&](Value x) { return is_integer(x.dtype()) && x.shape() == shape; });
    if (v) return v;
  }
  Value v = operand({t, shape});
  // Parameters and constants are below 9; other values are reduced to about the size of the axis.
  if (is_signed(t) && random.chance(50) && size.low() > 0) {
    Value n = size_value(graph(), size, t);
    v = ops::rem(v, broadcast_to(n, shape));
  }
  return v;
}

Dim Builder::size() { return random.of(style.sizes); }

Shape Builder::shape(int rank) {
  for (int tries = 0; tries < 20; ++tries) {
    Shape s;
    for (int i = 0; i < rank; ++i)
      s.dims.push_back(tries < 10 ? size() : Dim(random.between(1, 3)));
    if (fits(s)) return s;
  }
  return Shape(Dims(static_cast<std::size_t>(rank), 1));
}

DType Builder::dtype() {
  if (random.chance(50)) return style.real;
  if (random.chance(30)) return style.whole;
  return static_cast<DType>(random.below(computed_dtype_count));
}

}  // namespace hone::fuzz
