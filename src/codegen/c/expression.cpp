#include "codegen/c/expression.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/positions.h"
#include "kernel/walk.h"
#include "ops/ops.h"
#include "plan/binary.h"

namespace hone::c {

namespace {

using Words = std::vector<std::string>;

bool is_narrow(DType t) { return t == DType::f16 || t == DType::bf16; }

// "exp" for f64, "expf" for f32.
std::string library(std::string_view name, DType t) {
  return cat(name, t == DType::f32 ? "f" : "");
}

std::string call(const std::string& f, const std::string& a) { return cat(f, "(", a, ")"); }
std::string call(const std::string& f, const std::string& a, const std::string& b) {
  return cat(f, "(", a, ", ", b, ")");
}

// One of & | ^ on two bools.
std::string logical(const Helpers& h, std::string_view op, const std::string& a,
                    const std::string& b) {
  if (h.dialect().promotes_integers) return cat(a, " ", op, " ", b);
  return cat(a, op == "^" ? " != " : op == "&" ? " && " : " || ", b);
}

// Wrapping arithmetic; C computes integers narrower than int in int.
std::string wrapping(std::string_view op, DType t, const std::string& a, const std::string& b) {
  const std::string_view u = wrapping_type(t);
  return cat("(", memory_type(t), ")((", u, ")", a, " ", op, " (", u, ")", b, ")");
}

// Functions of real numbers: our own, named after the operation, else the C library's of that name.
// Empty if there is neither.
std::string real_function(Helpers& h, const Op& op, DType t, const std::string& x) {
  const std::string own = cat(op.name, "_", t);
  if (h.has(own)) return call(h.use(own), x);
  const bool is_known = h.dialect().has_math && helper_number(library(op.name, t));
  return is_known ? call(library(op.name, t), x) : "";
}

struct RoundingName {
  const Op* op;
  std::string_view name;  // in the C library
};
constexpr RoundingName roundings[] = {{&ops::floor, "floor"},
                                      {&ops::ceil, "ceil"},
                                      {&ops::round, "rint"},
                                      {&ops::trunc, "trunc"},
                                      {&ops::sqrt, "sqrt"}};

struct Infix {
  const Op* op;
  std::string_view text;
};
constexpr Infix arithmetic[] = {{&ops::add, "+"}, {&ops::sub, "-"}, {&ops::mul, "*"}};
constexpr Infix bitwise[] = {{&ops::bit_and, "&"}, {&ops::bit_or, "|"}, {&ops::bit_xor, "^"}};
constexpr Infix comparisons[] = {
    {&ops::eq, "=="}, {&ops::ne, "!="}, {&ops::lt, "<"}, {&ops::le, "<="}};

template <class List>
auto find(const List& list, const Op& op) {
  auto it = std::find_if(std::begin(list), std::end(list),
                         [&](const auto& entry) { return entry.op == &op; });
  return it == std::end(list) ? nullptr : it;
}

// A constant that is neither NaN nor, where it matters, a zero.
bool is_plain_bound(const Value& v) {
  return v.is(ops::constant) && is_float(v.dtype()) &&
         !std::isnan(v.attrs().get<Array>("value").real(0));
}

std::string extremum(Helpers& h, const Op& op, DType t, const std::string& a,
                     const std::string& b) {
  const bool is_max = &op == &ops::maximum;
  if (is_float(t)) return call(h.use(cat(is_max ? "max_" : "min_", t)), a, b);
  if (t == DType::b1) return logical(h, is_max ? "|" : "&", a, b);
  return cat("(", memory_type(t), ")(", a, is_max ? " > " : " < ", b, " ? ", a, " : ", b, ")");
}

std::string unary(Helpers& h, const Op& op, DType t, const std::string& x) {
  const bool real = is_float(t);
  if (auto* r = find(roundings, op)) return real ? call(library(r->name, t), x) : x;
  if (&op == &ops::neg) return real ? "-" + x : wrapping("-", t, "0", x);
  if (&op == &ops::abs) return real ? call(library("fabs", t), x) : call(h.integer("abs", t), x);
  if (&op == &ops::sign && !real) return call(h.integer("sign", t), x);
  if (&op == &ops::bit_not)
    return t == DType::b1 ? "!" + x : cat("(", memory_type(t), ")~(", wrapping_type(t), ")", x);
  if (&op == &ops::square) return real ? cat(x, " * ", x) : wrapping("*", t, x, x);
  if (&op == &ops::recip && real) return cat(literal(1.0, t), " / ", x);
  if (&op == &ops::rsqrt && real) return cat(literal(1.0, t), " / ", call(library("sqrt", t), x));
  if (&op == &ops::relu) {
    const std::string zero = real ? literal(0.0, t) : literal(std::int64_t{0}, t);
    return cat(x, " < ", zero, " ? ", zero, " : ", x);
  }
  return real ? real_function(h, op, t, x) : "";
}

std::string binary(Helpers& h, const Op& op, DType t, const std::string& a, const std::string& b) {
  const bool real = is_float(t);
  if (auto* i = find(arithmetic, op))
    return real ? cat(a, " ", i->text, " ", b) : wrapping(i->text, t, a, b);
  if (auto* i = find(bitwise, op)) {
    const std::string both =
        t == DType::b1 ? logical(h, i->text, a, b) : cat(a, " ", i->text, " ", b);
    return cat("(", register_type(t), ")(", both, ")");
  }
  if (auto* i = find(comparisons, op)) {
    if (t == DType::b1) return cat("(int)", a, " ", i->text, " (int)", b);
    return cat(a, " ", i->text, " ", b);
  }
  if (&op == &ops::maximum || &op == &ops::minimum) return extremum(h, op, t, a, b);
  if (&op == &ops::div) return real ? cat(a, " / ", b) : call(h.integer("div", t), a, b);
  if (&op == &ops::rem || &op == &ops::pow) {
    if (!real) return call(h.integer(op.name, t), a, b);
    const std::string own = cat(op.name, "_", t);
    if (h.has(own)) return call(h.use(own), a, b);
    return call(&op == &ops::rem ? library("fmod", t) : "pow", a, b);
  }
  if (&op == &ops::shift_left) return call(h.integer("shift_left", t), a, b);
  if (&op == &ops::shift_right) return call(h.integer("shift_right", t), a, b);
  return "";
}

}  // namespace

std::string combined(Helpers& h, const Op& op, DType t, const std::string& a,
                     const std::string& b) {
  std::string text = binary(h, op, register_dtype(t), a, b);
  HONE_ASSERT(!text.empty(), "accumulate with ", op.name);
  return text;
}

std::string neutral(const Op& op, DType t) {
  t = register_dtype(t);
  const bool real = is_float(t);
  auto number = [&](std::int64_t n) {
    return real ? literal(static_cast<double>(n), t) : literal(n, t);
  };
  if (&op == &ops::add || &op == &ops::bit_or || &op == &ops::bit_xor) return number(0);
  if (&op == &ops::mul) return number(1);
  if (&op == &ops::bit_and) return t == DType::b1 ? "true" : cat("(", memory_type(t), ")-1");
  const bool largest = &op == &ops::maximum;
  HONE_ASSERT(largest || &op == &ops::minimum, "accumulate with ", op.name);
  if (real) return literal(largest ? -INFINITY : INFINITY, t);
  if (t == DType::b1) return largest ? "false" : "true";
  const std::string name = cat(is_signed(t) ? "INT" : "UINT", 8 * byte_size(t));
  if (!largest) return name + "_MAX";
  return is_signed(t) ? name + "_MIN" : number(0);
}

namespace {

bool has_conditional_load(const Kernel& kernel) {
  const std::vector<Value> roots = values_of(kernel.body);
  return std::ranges::any_of(nodes_below(roots), [&](NodeId n) {
    return &kernel.graph->op(n) == &ops::load && !kernel.graph->operands(n).empty();
  });
}

Dim elements_spanned(const KernelParam& p) {
  Dim out = 1;
  for (std::size_t i = 0; i < p.dims.size(); ++i) out = out + p.dims[i] * p.strides[i];
  return out;
}

bool is_near(const Kernel& kernel) {
  bool fits = fits_32_bits(kernel.chunks);
  for (const KernelMemory& m : kernel.memory) fits = fits && fits_32_bits(m.offset);
  // Tiles add steps to offsets.
  for (const KernelParam& p : kernel.params) fits = fits && fits_32_bits(elements_spanned(p));
  return fits && for_each_dim(kernel.body, [](const Dim& d) { return fits_32_bits(d); });
}

// Registers that the generated text reads.
std::unordered_set<RegId> registers_read(const Kernel& kernel, const Dialect& dialect) {
  Dependences found;
  for_each_statement(kernel.body, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::fetch && dialect.fetch.empty()) return;  // not generated
    for (const Dim& d :
         {s.extent, s.offset, s.columns, s.a.offset, s.a.stride, s.b.offset, s.b.stride})
      add_dependences(d, found);
    for (const Value& v : values_of(s)) found.registers.merge(dependences(v).registers);
  });
  return found.registers;
}

// For registers that are never assigned again and hold a narrow float: the load that they hold.
std::unordered_map<RegId, Value> held_loads(const Kernel& kernel) {
  std::unordered_map<RegId, Value> out;
  std::unordered_set<RegId> others;
  for_each_statement(kernel.body, [&](const Stmt& s) {
    if (s.reg < 0) return;
    const bool is_load =
        s.kind == Stmt::Kind::declare && s.value.is(ops::load) && is_narrow(s.value.dtype());
    if (!is_load || !out.emplace(s.reg, s.value).second) others.insert(s.reg);
  });
  for (RegId r : others) out.erase(r);
  return out;
}

}  // namespace

Renderer::Renderer(Text& out, Helpers& helpers, const Kernel& kernel, int vector_bytes)
    : out_(out),
      helpers_(helpers),
      kernel_(kernel),
      read_registers_(registers_read(kernel, helpers.dialect())),
      held_loads_(held_loads(kernel)),
      reads_(kernel),
      dialect_(helpers.dialect()),
      hides_conditions_(!dialect_.has_groups && has_conditional_load(kernel)),
      is_near_(dialect_.has_groups && is_near(kernel)),
      vector_bytes_(vector_bytes) {
  find_matrices();
}

std::string Renderer::value(const Value& e) {
  if (e.is(ops::constant)) {
    const Array a = in_registers(e.attrs().get<Array>("value"));
    if (is_float(a.dtype())) return literal(a.real(0), a.dtype());
    return narrowed(a.dtype(), literal(a.integer(0), a.dtype()));
  }
  if (e.is(ops::reg)) {
    auto it = registers_.find(static_cast<RegId>(e.attrs().integer("index")));
    HONE_ASSERT(it != registers_.end(), "register ", e.attrs().integer("index"), " has no value");
    return it->second;
  }
  if (auto it = cache_.find(e.node()); it != cache_.end()) return it->second;
  std::string name = emit(e);
  reads_(e);  // determines when it is forgotten
  cache_.insert_or_assign(e.node(), name);
  return name;
}

std::string Renderer::name_value(const Value& e, const std::string& expression) {
  std::string name = fresh("v");
  out_.line("const ", register_type(e.dtype()), " ", name, " = ", narrowed(e.dtype(), expression),
            ";");
  return name;
}

// Converts explicitly what C converts implicitly at the store and other languages do not.
std::string Renderer::narrowed(DType t, const std::string& expression) const {
  t = register_dtype(t);
  const bool is_narrow = !is_float(t) && t != DType::b1 && byte_size(t) < 4;
  if (dialect_.promotes_integers || !is_narrow) return expression;
  return cat("((", memory_type(t), ")(", expression, "))");
}

std::string Renderer::emit(const Value& e) {
  if (const auto v = vector_loads_.find(e.node()); v != vector_loads_.end())
    return name_value(
        e, from_memory(buffer_dtype(static_cast<int>(e.attrs().integer("param"))), v->second));
  if (e.is(ops::load) && e.operand_count() > 0 && !dialect_.choice_skips_loads)
    return conditional_load(e);
  if (e.is(ops::load)) return name_value(e, emit_load(e));
  if (e.is(ops::tile_element)) return name_value(e, tile_element(e));
  if (e.is(ops::dims)) {
    const Dim& d = e.attrs().dims("dims").at(0);
    // A position that fits is converted from 32 bits, as in vector code.
    const bool is_short = fits_32_bits(d) && byte_size(register_dtype(e.dtype())) <= 4;
    const DType from = is_short || is_near_ ? DType::i32 : DType::i64;
    return name_value(e, cast_number(from, e.dtype(), number_of(d, is_short)));
  }
  if (has_short_powers_)
    if (const std::optional<Value> x = power_of_two(e))
      return name_value(e, call(helpers_.use("short_power_f32"), value(*x)));
  Words operands;
  const bool compares = find(comparisons, e.op()) != nullptr;
  if (compares && e.operand(0).is(ops::dims) && e.operand(1).is(ops::dims)) {
    // Compare in 32 bits if both fit.
    const Dim &a = e.operand(0).attrs().dims("dims").at(0),
              &b = e.operand(1).attrs().dims("dims").at(0);
    const bool is_short = fits_32_bits(a) && fits_32_bits(b);
    return name_value(
        e, binary(helpers_, e.op(), DType::i64, number_of(a, is_short), number_of(b, is_short)));
  }
  if (compares && dialect_.has_groups)
    if (const auto a = near_position(e.operand(0)), b = near_position(e.operand(1)); a && b)
      return name_value(e, binary(helpers_, e.op(), DType::i32, *a, *b));
  if (e.is(ops::add))
    for (std::size_t i : {0u, 1u})
      if (is_open_product(e.operand(i)))
        return name_value(e, sum_with(e.operand(i), value(e.operand(1 - i))));
  for (const Value& operand : e.operands())
    operands.push_back(e.is(ops::mul) ? multiplicand(operand) : value(operand));
  return name_value(e, operation(e, operands));
}

// A position or a number that fits in 32 bits.
std::optional<std::string> Renderer::near_position(const Value& e) {
  if (is_float(e.dtype()) || e.dtype() == DType::b1 || is_coded(e.dtype())) return std::nullopt;
  if (e.is(ops::dims)) {
    const Dim& d = e.attrs().dims("dims").at(0);
    // A narrower dtype would have truncated it.
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    if (byte_size(e.dtype()) < 4 || d.low() < -limit || d.high() > limit) return std::nullopt;
    return number_of(d, true);
  }
  if (!e.is(ops::constant)) return std::nullopt;
  const std::int64_t n = in_registers(e.attrs().get<Array>("value")).integer(0);
  if (n != static_cast<std::int32_t>(n)) return std::nullopt;
  return literal(n, DType::i32);
}

std::string Renderer::multiplicand(const Value& e) {
  if (dialect_.zero.empty() || !e.is(ops::constant) || !is_float(e.dtype())) return value(e);
  const double x = e.attrs().get<Array>("value").real(0);
  if (x != 0) return value(e);
  const std::string_view sign = std::signbit(x) ? "-" : "";
  return register_dtype(e.dtype()) == DType::f64 ? cat("(", sign, "(double)", dialect_.zero, ")")
                                                 : cat("(", sign, dialect_.zero, ")");
}

// As in a plan's kernels, sums are fused with products, differences are not: a product minus its
// own maximum is 0; fused, it would be the rounding error.
bool Renderer::is_open_product(const Value& e) const {
  return (e.is(ops::mul) || e.is(ops::square)) && is_float(e.dtype()) && !cache_.contains(e.node());
}

std::string Renderer::sum_with(const Value& product, const std::string& addend) {
  const DType t = register_dtype(product.dtype());
  // The addend may have named it.
  if (!is_open_product(product)) return binary(helpers_, ops::add, t, addend, value(product));
  const std::string a = multiplicand(product.operand(0));
  const std::string b = product.is(ops::square) ? a : multiplicand(product.operand(1));
  return cat(helpers_.use(cat("fma_", t)), "(", a, ", ", b, ", ", addend, ")");
}

std::string Renderer::operation(const Value& e, const Words& in) {
  if (e.is(ops::cast)) return cast(e, in[0]);
  if (e.is(ops::bitcast)) return bitcast(e, in[0]);
  if (e.is(ops::select)) {
    std::string text = cat(in[0], " ? ", in[1], " : ", in[2]);
    const DType t = register_dtype(e.dtype());
    // C widens the branches of ?: to int.
    return is_float(t) ? text : cat("(", register_type(t), ")(", text, ")");
  }
  const DType t = register_dtype(e.operand(0).dtype());
  std::string text;
  if (in.size() == 1) text = unary(helpers_, e.op(), t, in[0]);
  if (e.is(ops::maximum) || e.is(ops::minimum)) {
    // Against a constant, one comparison is enough; NaN compares false and stays.
    const bool first = is_plain_bound(e.operand(0)), second = is_plain_bound(e.operand(1));
    const std::string &bound = second ? in[1] : in[0], &x = second ? in[0] : in[1];
    if (first || second)
      return cat(bound, e.is(ops::maximum) ? " > " : " < ", x, " ? ", bound, " : ", x);
  }
  // Computed in a wider type than the result: as exact as the general power.
  if (e.is(ops::pow) && is_narrow(e.dtype()) && e.operand(1).is(ops::constant) &&
      e.operand(1).attrs().get<Array>("value").real(0) == 3)
    return cat(in[0], " * ", in[0], " * ", in[0]);
  if (in.size() == 2) text = binary(helpers_, e.op(), t, in[0], in[1]);
  if (text.empty())
    throw UserError(e.op().name, ": is not written as ", dialect_.language, " with ", e.type(),
                    " yet; use ",
                    dialect_.has_groups ? "another backend" : "a plan for this model");
  return text;
}

// ---- conversions

std::string Renderer::to_memory(DType t, const std::string& x, bool stays) {
  const std::string kept = cat("kept_", t, "_of_f32");
  if (stays && helpers_.has(kept)) return call(helpers_.use(kept), x);
  if (is_narrow(t)) return call(helpers_.use(cat(t, "_of_f32")), x);
  return t == DType::b1 ? "(uint8_t)" + x : x;
}

std::string Renderer::from_memory(DType t, const std::string& element) {
  if (is_narrow(t)) return call(helpers_.use(cat("f32_of_", t)), element);
  return t == DType::b1 ? cat(element, " != 0") : element;
}

// Arithmetic on narrow floats keeps wider intermediates; these hold exactly what memory would.
bool Renderer::is_rounded(const Value& v) const {
  return v.is(ops::load) || v.is(ops::cast) || v.is(ops::constant) || held_load(v);
}

std::optional<Value> Renderer::held_load(const Value& v) const {
  if (!v.is(ops::reg)) return std::nullopt;
  const auto at = held_loads_.find(static_cast<RegId>(v.attrs().integer("index")));
  return at == held_loads_.end() ? std::nullopt : std::optional(at->second);
}

std::string Renderer::cast(const Value& e, const std::string& x) {
  const Value from = e.operand(0);
  HONE_ASSERT(!is_coded(e.dtype()) && !is_coded(from.dtype()), "cast of ", from.dtype(), " to ",
              e.dtype(), " in a kernel; pass 'codes' replaces it");
  // A value held wider than its dtype is rounded before the cast.
  if (is_narrow(from.dtype()) && !is_rounded(from)) {
    std::string rounded = cast_number(DType::f32, from.dtype(), x);
    if (e.dtype() == from.dtype()) return rounded;
    std::string name = fresh("v");
    out_.line("const float ", name, " = ", rounded, ";");
    return cast_number(DType::f32, e.dtype(), name);
  }
  return cast_number(register_dtype(from.dtype()), e.dtype(), x);
}

std::string Renderer::cast_number(DType from, DType to, const std::string& x) {
  if (is_narrow(to)) {
    const bool fits = from == DType::f32 || from == DType::b1 || byte_size(from) <= 2;
    const std::string odd =
        fits ? "" : call(helpers_.use("odd_f32_of_f64"), from == DType::f64 ? x : "(double)" + x);
    const std::string single = !fits ? odd : from == DType::f32 ? x : "(float)" + x;
    return from_memory(to, to_memory(to, single, true));
  }
  if (from == to) return x;
  if (to == DType::b1) return cat(x, " != 0");
  if (from == DType::i32 && to == DType::i64 && helpers_.has("i64_of_i32"))
    return call(helpers_.use("i64_of_i32"), x);
  if (is_float(from) && !is_float(to)) return call(helpers_.saturate(from, to), x);
  return cat("(", memory_type(to), ")", x);
}

std::string Renderer::bitcast(const Value& e, const std::string& x) {
  auto in_registers = [](DType t) { return is_coded(t) ? code_dtype(t) : t; };
  const DType from = in_registers(e.operand(0).dtype()), to = in_registers(e.dtype());
  if (from == to) return x;
  const std::string bits = is_narrow(from) ? narrow_bits(e.operand(0), x) : x;
  if (is_narrow(to)) return from_memory(to, is_narrow(from) ? bits : "(uint16_t)" + bits);
  if (!is_float(to) && (!is_float(from) || is_narrow(from)))
    return cat("(", memory_type(to), ")", bits);
  return call(helpers_.bitcast(from, to), x);
}

// For a value in memory, the bits there: conversion to f32 and back may change those of a NaN.
std::string Renderer::narrow_bits(const Value& v, const std::string& x) {
  const bool is_there = v.is(ops::load) && v.operand_count() == 0 && dialect_.has_groups;
  if (!is_there) return to_memory(v.dtype(), x);
  if (const auto w = vector_loads_.find(v.node()); w != vector_loads_.end()) return w->second;
  return element_at(static_cast<int>(v.attrs().integer("param")), v.attrs().dims("offset").at(0));
}

// ---- memory

DType Renderer::buffer_dtype(int param) const {
  auto p = static_cast<std::size_t>(param);
  return p < kernel_.params.size() ? kernel_.params[p].dtype
                                   : kernel_.memory[p - kernel_.params.size()].dtype;
}

std::string Renderer::buffer(int param) {
  used_params_.insert(param);
  return cat("p", param);
}

// A negative position is in code that never runs; some compilers refuse it all the same.
std::string Renderer::element_at(int param, const Dim& offset) {
  const bool is_negative = offset.is_number() && offset.number() < 0;
  return element_at(param, position(is_negative ? Dim(0) : offset));
}

std::string Renderer::element_at(int param, const std::string& offset) {
  const std::string name = buffer(param);
  if (in_words_.contains(param)) return element_in_words(param, offset);
  if (is_spread(param)) return cat(name, "[", spread_place(param, offset), "]");
  if (is_array(param)) return in_array(name, offset);
  const DType t = buffer_dtype(param);
  return filled(is_near_ ? dialect_.element : dialect_.far_element,
                {{"$P", name},
                 {"$I", offset},
                 {"$T", std::string(memory_type(t))},
                 {"$B", cat(byte_size(is_coded(t) ? code_dtype(t) : t))}});
}

// An element of an array variable, which has few elements.
std::string Renderer::in_array(const std::string& name, const std::string& at) const {
  const bool is_cut = !is_near_ && !dialect_.promotes_integers;
  return is_cut ? cat(name, "[(int32_t)(", at, ")]") : cat(name, "[", at, "]");
}

// Whether the memory is a variable of the text.
bool Renderer::is_array(int param) const {
  const KernelMemory* memory = memory_named(kernel_, param);
  return dialect_.has_groups && memory && is_variable(*memory);
}

bool Renderer::is_shared(int param) const {
  const KernelMemory* memory = memory_named(kernel_, param);
  return memory && memory->scope == MemoryScope::group;
}

bool Renderer::is_spread(int param) const {
  const KernelMemory* memory = memory_named(kernel_, param);
  return memory && !dialect_.block_thread.empty() && memory->scope == MemoryScope::spread;
}

// Interleaves the threads' pieces of 16 bytes, or single elements.
std::string Renderer::spread_place(int param, const std::string& at) const {
  const KernelMemory& m = *memory_named(kernel_, param);
  const std::int64_t piece = vector_alignment / byte_size(m.dtype);
  if (m.elements.number() % piece != 0)
    return cat("(", at, ") * ", block_threads(), " + ", dialect_.block_thread);
  return cat("((", at, ") / ", piece, " * ", block_threads(), " + ", dialect_.block_thread, ") * ",
             piece, " + (", at, ") % ", piece);
}

std::int64_t Renderer::block_threads() const { return group_threads(kernel_) / dialect_.blocks; }

std::string Renderer::emit_load(const Value& e) {
  const int param = static_cast<int>(e.attrs().integer("param"));
  const std::string condition = e.operand_count() > 0 ? value(e.operand(0)) : "";
  const std::string x =
      from_memory(buffer_dtype(param), element_at(param, e.attrs().dims("offset").at(0)));
  if (condition.empty()) return x;
  const DType t = register_dtype(e.dtype());
  std::string zero = is_float(t) ? literal(0.0, t) : literal(std::int64_t{0}, t);
  if (is_float(t)) return cat(condition, " ? ", x, " : ", zero);
  return cat("(", register_type(t), ")(", condition, " ? ", x, " : ", zero, ")");
}

std::string Renderer::conditional_load(const Value& e) {
  const int param = static_cast<int>(e.attrs().integer("param"));
  const std::string name = fresh("v"), condition = value(e.operand(0));
  const DType t = register_dtype(e.dtype());
  out_.line(register_type(e.dtype()), " ", name, " = ",
            is_float(t) ? literal(0.0, t) : narrowed(t, literal(std::int64_t{0}, t)), ";");
  out_.line("if (", condition, ") ", name, " = ",
            from_memory(buffer_dtype(param), element_at(param, e.attrs().dims("offset").at(0))),
            ";");
  return name;
}

// ---- positions

std::string Renderer::symbol(const Dim& s) {
  if (std::optional<VarId> var = loop_of(s)) {
    auto it = variables_.find(*var);
    HONE_ASSERT(it != variables_.end(), "loop variable ", s, " is not in scope");
    return it->second;
  }
  if (std::optional<RegId> reg = register_of(s))
    return is_near_ ? cat("(int32_t)", registers_.at(*reg)) : registers_.at(*reg);
  for (std::size_t i = 0; i < kernel_.sizes.size(); ++i)
    if (kernel_.sizes[i] == s) return dialect_.has_groups ? cat("size", i) : cat("sizes[", i, "]");
  throw InternalError("size ", s, " is not handed to the kernel");
}

std::string Renderer::position(const Dim& d) {
  if (d.is_number()) return index(d.number());
  return d.expr()->kind == DimExpr::Kind::sum ? sum_text(*d.expr()) : factor(d);
}

// gcc 12 turns a masked load with a known mask into a full load. So the condition of a load must be
// hidden from it.
std::string Renderer::number_of(const Dim& d, bool is_short) {
  if (d.is_number()) return index(d.number());
  std::string text = position(d);
  if (hides_conditions_) {
    text += " + zero";
    uses_zero_ = true;
  }
  return cat(is_short ? "(int32_t)(" : "(", text, ")");
}

std::string Renderer::sum_text(const DimExpr& e) {
  std::string text;
  auto add = [&](const DimExpr::Term& t) {
    std::string product;
    for (const Dim& atom : t.atoms) product += cat(product.empty() ? "" : " * ", factor(atom));
    // The lowest number has no positive counterpart.
    const bool is_lowest = t.factor == std::numeric_limits<std::int64_t>::min();
    const bool is_negative = t.factor < 0 && !is_lowest;
    const std::int64_t size = is_negative ? -t.factor : t.factor;
    if (product.empty())
      product = index(size);
    else if (size != 1)
      product += cat(" * ", index(size));
    if (text.empty())
      text = is_negative ? "-" + product : product;
    else
      text += cat(is_negative ? " - " : " + ", product);
  };
  for (const DimExpr::Term& t : e.terms)
    if (!t.atoms.empty()) add(t);
  for (const DimExpr::Term& t : e.terms)
    if (t.atoms.empty()) add(t);
  return text;
}

std::string Renderer::factor(const Dim& d) {
  if (d.is_number()) return index(d.number());
  const DimExpr& e = *d.expr();
  using Kind = DimExpr::Kind;
  if (e.kind == Kind::symbol) return symbol(d);
  if (e.kind == Kind::sum) return cat("(", sum_text(e), ")");
  const bool divides = e.kind == Kind::floor_div || e.kind == Kind::mod;
  if (divides && e.a.low() >= 0 && e.b.low() > 0) {
    const std::string_view op = e.kind == Kind::mod ? " % " : " / ";
    if (!fits_32_bits(e.a) || !fits_32_bits(e.b))
      return cat("(", factor(e.a), op, factor(e.b), ")");
    // Unsigned 32-bit division is the fastest.
    std::string divisor = e.b.is_number() ? cat(e.b.number(), "u") : cat("(uint32_t)", factor(e.b));
    return cat("(", index_type(), ")((uint32_t)", factor(e.a), op, divisor, ")");
  }
  const std::string a = position(e.a), b = position(e.b);
  switch (e.kind) {
    case Kind::floor_div:
      return call(helpers_.use(is_near_ ? "floor_div_i32" : "floor_div"), a, b);
    case Kind::mod:
      return call(helpers_.use(is_near_ ? "floor_mod_i32" : "floor_mod"), a, b);
    case Kind::min:
      return call(helpers_.use(is_near_ ? "min_i32" : "min_i64"), a, b);
    case Kind::max:
      return call(helpers_.use(is_near_ ? "max_i32" : "max_i64"), a, b);
    default:
      return cat("(", index_type(), ")(", a, " == ", b, ")");
  }
}

}  // namespace hone::c
