#include "codegen/llvm/expression.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/llvm/math.h"
#include "kernel/positions.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

using UnaryEmitter = Value (*)(Value);
using BinaryEmitter = Value (*)(Value, Value);

struct Unary {
  const Op* op;
  UnaryEmitter emit;
};
struct Binary {
  const Op* op;
  BinaryEmitter emit;
};

Value integer_sign(Value x) {
  Value zero = like(x, 0);
  Value up = select(greater(x, zero), like(x, 1), zero);
  return is_signed(x.dtype()) ? select(less(x, zero), like(x, -1), up) : up;
}

constexpr Unary unaries[] = {
    {&ops::neg, [](Value x) { return -x; }},
    {&ops::abs, [](Value x) { return abs(x); }},
    {&ops::sign, [](Value x) { return is_float(x.dtype()) ? sign(x) : integer_sign(x); }},
    {&ops::sqrt, [](Value x) { return sqrt(x); }},
    {&ops::floor, [](Value x) { return floor(x); }},
    {&ops::ceil, [](Value x) { return ceil(x); }},
    {&ops::round, [](Value x) { return round_even(x); }},
    {&ops::trunc, [](Value x) { return trunc(x); }},
    {&ops::bit_not, [](Value x) { return ~x; }},
};

constexpr Binary binaries[] = {
    {&ops::add, [](Value a, Value b) { return a + b; }},
    {&ops::sub, [](Value a, Value b) { return a - b; }},
    {&ops::mul, [](Value a, Value b) { return a * b; }},
    {&ops::div, [](Value a, Value b) { return a / b; }},
    {&ops::rem, [](Value a, Value b) { return is_float(a.dtype()) ? fmod(a, b) : a % b; }},
    {&ops::maximum, [](Value a, Value b) { return maximum(a, b); }},
    {&ops::minimum, [](Value a, Value b) { return minimum(a, b); }},
    {&ops::bit_and, [](Value a, Value b) { return a & b; }},
    {&ops::bit_or, [](Value a, Value b) { return a | b; }},
    {&ops::bit_xor, [](Value a, Value b) { return a ^ b; }},
    {&ops::shift_left, [](Value a, Value b) { return a << b; }},
    {&ops::shift_right, [](Value a, Value b) { return a >> b; }},
    {&ops::eq, [](Value a, Value b) { return equal(a, b); }},
    {&ops::ne, [](Value a, Value b) { return not_equal(a, b); }},
    {&ops::lt, [](Value a, Value b) { return less(a, b); }},
    {&ops::le, [](Value a, Value b) { return less_equal(a, b); }},
};

// Whether the value is rounded by one arithmetic operation.
bool is_computed(const hone::Value& v) {
  return v.is(ops::add) || v.is(ops::sub) || v.is(ops::mul) || v.is(ops::div);
}

bool is_narrow(DType t) { return t == DType::f16 || t == DType::bf16; }

// Arithmetic on narrow floats keeps wider intermediates; these hold exactly what memory would.
bool is_rounded(const hone::Value& v) {
  return v.is(ops::load) || v.is(ops::cast) || v.is(ops::constant);
}

Value narrow_to_bits(DType from, const Value& v) {
  return v.module->wrap(detail::to_memory(from, v), {DType::u16, v.lanes()});
}
Value narrow_from_bits(DType to, const Value& bits) {
  return detail::from_memory(*bits.module, to, bits.ref, bits.lanes());
}

// By repeated squaring. A negative power is 1 / x^-n, truncated.
Value integer_power(Module& m, Value x, Value n) {
  const int lanes = std::max(x.lanes(), n.lanes());
  auto wide = [&](Value v) { return v.lanes() == lanes ? v : broadcast(v, lanes); };
  x = wide(x);
  n = wide(n);
  Value one = m.integer(1, x.type), zero = m.zero(x.type);
  const std::int64_t bits = std::int64_t{8} * byte_size(x.dtype());
  Values end = m.loop(m.index(0), m.index(bits), 1, {one, x, n}, [&](Value, const Values& now) {
    Value is_odd = not_equal(now[2] & 1, zero);
    return Values{select(is_odd, now[0] * now[1], now[0]), now[1] * now[1], now[2] >> 1};
  });
  if (!is_signed(x.dtype())) return end[0];
  Value sign = select(equal(n & 1, zero), one, -one);
  Value inverse = select(equal(x, one), one, select(equal(x, -one), sign, zero));
  inverse = select(equal(x, zero), -one, inverse);
  return select(less(n, zero), inverse, end[0]);
}

[[noreturn]] void refuse(const hone::Value& v) {
  throw UserError(v.op().name, ": is not compiled through LLVM with ", v.type(),
                  " yet; use the strategy ref for this model");
}

}  // namespace

namespace {

bool compares_positions(const hone::Value& e) {
  const bool compares = e.is(ops::lt) || e.is(ops::le) || e.is(ops::eq) || e.is(ops::ne);
  return compares && e.operand(0).is(ops::dims) && e.operand(1).is(ops::dims);
}

}  // namespace

Value combine(const Op& op, Value a, Value b) {
  for (const Binary& entry : binaries)
    if (entry.op == &op) return entry.emit(a, b);
  throw InternalError("accumulate with ", op.name);
}

Value neutral(Module& m, const Op& op, ValueType type) {
  const bool real = is_float(type.dtype);
  if (&op == &ops::add || &op == &ops::bit_or || &op == &ops::bit_xor) return m.zero(type);
  if (&op == &ops::mul) return real ? m.real(1, type) : m.integer(1, type);
  if (&op == &ops::bit_and)
    return type.dtype == DType::b1 ? m.boolean(true, type.lanes) : m.integer(-1, type);
  const bool largest = &op == &ops::maximum;
  HONE_ASSERT(largest || &op == &ops::minimum, "accumulate with ", op.name);
  if (real) return m.real(largest ? -INFINITY : INFINITY, type);
  const int bits = 8 * byte_size(type.dtype);
  if (!is_signed(type.dtype)) return m.integer(largest ? 0 : -1, type);
  const auto lowest = static_cast<std::int64_t>(~std::uint64_t{0} << (bits - 1));
  return m.integer(largest ? lowest : ~lowest, type);
}

Renderer::Renderer(Module& m, const Kernel& kernel, const KernelArguments& in)
    : m_(m), kernel_(kernel), in_(in), reads_(kernel) {}

void Renderer::set_variable(VarId var, Value at) { variables_[var] = at; }

Value Renderer::value(const Expression& e) {
  if (auto it = cache_.find(e.node()); it != cache_.end()) return it->second;
  Value v = emit(e);
  reads_(e);  // determines when it is forgotten
  cache_.insert_or_assign(e.node(), v);
  return v;
}

Value Renderer::emit(const Expression& e) {
  if (e.is(ops::load)) return emit_load(e);
  if (e.is(ops::tile_element)) return tile_element(e);
  if (e.is(ops::reg)) {
    auto it = registers_.find(static_cast<RegId>(e.attrs().integer("index")));
    HONE_ASSERT(it != registers_.end(), "register ", e.attrs().integer("index"), " has no value");
    return it->second;
  }
  const DType dtype = register_dtype(e.dtype());
  if (e.is(ops::constant)) {
    const Array a = in_registers(e.attrs().get<Array>("value"));
    if (dtype == DType::b1) return m_.boolean(a.integer(0) != 0);
    return is_float(dtype) ? m_.real(a.real(0), {dtype, 1}) : m_.integer(a.integer(0), {dtype, 1});
  }
  if (e.is(ops::dims)) {
    const Dim& d = e.attrs().dims("dims").at(0);
    return cast(mentions_lane(d) ? position_vector(d) : position(d), dtype);
  }
  Values operands;
  if (compares_positions(e)) {
    // Compare in 32 bits if both fit.
    for (const Expression& operand : {e.operand(0), e.operand(1)}) {
      const Dim& d = operand.attrs().dims("dims").at(0);
      operands.push_back(mentions_lane(d) ? position_vector(d) : position(d));
    }
    if (operands[0].dtype() != operands[1].dtype())
      for (Value& v : operands) v = cast(v, DType::i64);
    return emit_operation(e, operands);
  }
  for (std::size_t i = 0; i < e.operand_count(); ++i) operands.push_back(value(e.operand(i)));
  return emit_operation(e, operands);
}

Value Renderer::emit_operation(const Expression& e, const Values& in) {
  if (e.is(ops::cast)) return emit_cast(e, in[0]);
  if (e.is(ops::bitcast)) {
    const DType from = e.operand(0).dtype(), to = e.dtype();
    if (is_narrow(to) && is_narrow(from))
      return from == to ? in[0] : narrow_from_bits(to, narrow_to_bits(from, in[0]));
    if (is_narrow(to)) return narrow_from_bits(to, in[0]);
    if (is_narrow(from)) return m_.wrap(narrow_to_bits(from, in[0]).ref, {to, in[0].lanes()});
    return bitcast(in[0], register_dtype(to));
  }
  if (e.is(ops::select)) {
    const bool vector = in[0].lanes() > 1 || in[1].lanes() > 1 || in[2].lanes() > 1;
    auto wide = [&](Value v) { return vector ? widened(v) : v; };
    return select(wide(in[0]), wide(in[1]), wide(in[2]));
  }
  if (e.is(ops::pow)) {
    if (!is_float(e.dtype())) return integer_power(m_, in[0], in[1]);
    return pow(in[0], in[1].lanes() < in[0].lanes() ? widened(in[1]) : in[1]);
  }
  if (e.is(ops::exp) && is_computed(e.operand(0))) return exp_of_rounded(in[0]);
  if (RealFunction f = real_function(e.op())) return f(in[0]);
  for (const Unary& u : unaries)
    if (u.op == &e.op()) return u.emit(in[0]);
  // A product minus its own maximum is 0; fused, it would be the rounding error.
  const bool could_fuse = m_.set_contract(!e.is(ops::sub));
  for (const Binary& b : binaries) {
    if (b.op != &e.op()) continue;
    Value made = b.emit(in[0], in[1]);
    m_.set_contract(could_fuse);
    return made;
  }
  refuse(e);
}

Value Renderer::emit_cast(const Expression& e, Value x) {
  const Expression from = e.operand(0);
  HONE_ASSERT(!is_coded(e.dtype()) && !is_coded(from.dtype()), "cast of ", from.dtype(), " to ",
              e.dtype(), " in a kernel; pass 'codes' replaces it");
  // A value held wider than its dtype is rounded before the cast.
  if (is_narrow(from.dtype()) && !is_rounded(from)) x = cast(x, from.dtype());
  return cast(x, e.dtype());
}

Value Renderer::widened(Value v) const {
  return v.lanes() == lanes_.count ? v : broadcast(v, lanes_.count);
}

// ---- memory

DType Renderer::buffer_dtype(int param) const {
  auto p = static_cast<std::size_t>(param);
  return p < kernel_.params.size() ? kernel_.params[p].dtype
                                   : kernel_.memory[p - kernel_.params.size()].dtype;
}

Pointer Renderer::buffer(int param) {
  auto p = static_cast<std::size_t>(param);
  if (p < kernel_.params.size()) return in_.buffers[p];
  return offset_bytes(in_.scratch, position(kernel_.memory[p - kernel_.params.size()].offset));
}

Pointer Renderer::address(const Expression& load) {
  const int param = static_cast<int>(load.attrs().integer("param"));
  return offset(buffer(param), buffer_dtype(param), position(load.attrs().dims("offset")[0]));
}

std::optional<Value> Renderer::combined_mask(const Expression& load) {
  std::optional<Value> mask = lanes_.mask;
  if (load.operand_count() == 0) return mask;
  Value condition = widened(value(load.operand(0)));
  return mask ? *mask & condition : condition;
}

Value Renderer::emit_load(const Expression& e) {
  const int param = static_cast<int>(e.attrs().integer("param"));
  const DType dtype = buffer_dtype(param);
  const Dim& at = e.attrs().dims("offset").at(0);
  const bool varies =
      mentions_lane(at) || (e.operand_count() > 0 && value(e.operand(0)).lanes() > 1);
  if (lanes_.count > 1 && varies) return load_vector(e, combined_mask(e));
  if (e.operand_count() == 0) return load(dtype, address(e));
  Value condition = value(e.operand(0));
  return m_.if_values(
      condition, [&] { return Values{load(dtype, address(e))}; },
      [&] { return Values{m_.zero({register_dtype(dtype), 1})}; })[0];
}

Value Renderer::load_vector(const Expression& e, const std::optional<Value>& mask) {
  const int param = static_cast<int>(e.attrs().integer("param"));
  const DType dtype = buffer_dtype(param);
  const Dim& at = e.attrs().dims("offset").at(0);
  const std::optional<Dim> stride = lane_stride(at);
  if (stride == Dim(1)) {
    Pointer p = offset(buffer(param), dtype, position(at));
    return mask ? load_masked(dtype, p, *mask) : load(dtype, p, lanes_.count);
  }
  Value indices = position_vector(at);
  return mask ? gather_masked(dtype, buffer(param), indices, *mask)
              : gather(dtype, buffer(param), indices);
}

void Renderer::store(const Stmt& s) {
  DType dtype = buffer_dtype(s.param);
  // A value cast for memory is rounded only once, by the store.
  const hone::Value& rounded = s.value;
  const bool is_cast_for_memory = dtype == DType::f16 && rounded.is(ops::cast) &&
                                  rounded.dtype() == dtype &&
                                  rounded.operand(0).dtype() == DType::f32;
  Value v = value(is_cast_for_memory ? rounded.operand(0) : rounded);
  if (dtype == DType::bf16 && s.value.dtype() == dtype && is_rounded(s.value)) {
    // Memory holds its upper half; rounding again would not change it.
    v = cast(bitcast(v, DType::u32) >> 16, DType::u16);
    dtype = DType::u16;
  }
  std::optional<Value> condition;
  if (s.condition) condition = value(s.condition);
  if (lanes_.count == 1 || (!mentions_lane(s.offset) && v.lanes() == 1)) {
    auto write = [&] {
      hone::llvm::store(dtype, offset(buffer(s.param), dtype, position(s.offset)), v);
    };
    condition ? m_.if_(*condition, write) : write();
    return forget_memory();
  }
  std::optional<Value> mask = lanes_.mask;
  if (condition) mask = mask ? *mask & widened(*condition) : widened(*condition);
  v = widened(v);
  if (!mentions_lane(s.offset)) {  // the variable has one value: the first lane's
    auto write = [&] {
      hone::llvm::store(dtype, offset(buffer(s.param), dtype, position(s.offset)), extract(v, 0));
    };
    mask ? m_.if_(extract(*mask, 0), write) : write();
    return forget_memory();
  }
  if (lane_stride(s.offset) == Dim(1)) {
    Pointer p = offset(buffer(s.param), dtype, position(s.offset));
    Access access;
    if (streaming_.contains(&s))
      access = {.align = streamed_bytes(s.param, lanes_.count), .nontemporal = true};
    mask ? store_masked(dtype, p, v, *mask) : hone::llvm::store(dtype, p, v, access);
  } else {
    Value indices = position_vector(s.offset);
    mask ? scatter_masked(dtype, buffer(s.param), indices, v, *mask)
         : scatter(dtype, buffer(s.param), indices, v);
  }
  forget_memory();
}

// ---- positions

bool Renderer::mentions_lane(const Dim& d) const {
  if (lanes_.count == 1) return false;
  for (const Dim& s : d.symbols()) {
    if (loop_of(s) == lanes_.var) return true;
    if (auto reg = register_of(s))
      if (auto it = registers_.find(*reg); it != registers_.end() && it->second.lanes() > 1)
        return true;
  }
  return false;
}

std::optional<Dim> Renderer::lane_stride(const Dim& d) const {
  for (const Dim& s : d.symbols()) {
    if (auto reg = register_of(s))
      if (auto it = registers_.find(*reg); it != registers_.end() && it->second.lanes() > 1)
        return std::nullopt;
  }
  for (const Dim& s : d.symbols())
    if (loop_of(s) == lanes_.var) return stride_of(d, s);
  return Dim(0);
}

Value Renderer::symbol(const Dim& s) {
  if (std::optional<VarId> var = loop_of(s)) {
    auto it = variables_.find(*var);
    HONE_ASSERT(it != variables_.end(), "loop variable ", s, " is not in scope");
    return it->second;
  }
  if (std::optional<RegId> reg = register_of(s)) return registers_.at(*reg);
  for (std::size_t i = 0; i < kernel_.sizes.size(); ++i)
    if (kernel_.sizes[i] == s) return in_.size(static_cast<int>(i));
  throw InternalError("size ", s, " is not handed to the kernel");
}

Value Renderer::position(const Dim& d) {
  return position_with(d, DType::i64, [&](const Dim& s) { return symbol(s); });
}

Value Renderer::position_vector(const Dim& d) {
  const DType t = fits_32_bits(d) ? DType::i32 : DType::i64;
  return widened(position_with(d, t, [&](const Dim& s) -> Value {
    Value at = cast(symbol(s), t);
    if (loop_of(s) != lanes_.var) return at;
    return broadcast(at, lanes_.count) + m_.iota({t, lanes_.count});
  }));
}

Value Renderer::position_with(const Dim& d, DType dtype,
                              const std::function<Value(const Dim&)>& symbol) {
  if (d.is_number()) return m_.integer(d.number(), {dtype, 1});
  const DimExpr& e = *d.expr();
  if (e.kind == DimExpr::Kind::symbol) return symbol(d);
  if (e.kind == DimExpr::Kind::sum) {
    std::optional<Value> total;
    for (const DimExpr::Term& t : e.terms) {
      std::optional<Value> product;
      for (const Dim& atom : t.atoms) {
        Value v = position_with(atom, dtype, symbol);
        product = product ? *product * v : v;
      }
      Value term = !product        ? m_.integer(t.factor, {dtype, 1})
                   : t.factor == 1 ? *product
                                   : *product * t.factor;
      total = total ? *total + term : term;
    }
    return *total;
  }
  Value a = position_with(e.a, dtype, symbol), b = position_with(e.b, dtype, symbol);
  // floor_div and mod round down, also below zero.
  const bool is_index = e.a.low() >= 0 && e.b.low() > 0;
  auto floored = [&] {
    Value quotient = a / b, rest = a - quotient * b;
    return select(not_equal(rest, 0) & less(rest ^ b, 0), quotient - 1, quotient);
  };
  switch (e.kind) {
    case DimExpr::Kind::floor_div:
      return is_index ? divide_index(a, b) : floored();
    case DimExpr::Kind::mod:
      return is_index ? modulo_index(a, b) : a - floored() * b;
    case DimExpr::Kind::min:
      return minimum(a, b);
    case DimExpr::Kind::max:
      return maximum(a, b);
    default:
      return cast(equal(a, b), dtype);
  }
}

}  // namespace hone::llvm
