#include "pass/precision.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ops/common.h"
#include "pass/fold_batch_norm.h"
#include "pass/raise.h"
#include "pass/rewrite.h"
#include "pass/simplify.h"

namespace hone {

namespace {

constexpr std::string_view names[] = {"fp32", "tf32", "fp16", "bf16"};

using Kind = PrecisionRule::Kind;

constexpr PrecisionRule policy[] = {
    {&ops::dot, Kind::narrow},         {&ops::matmul, Kind::narrow},
    {&ops::conv, Kind::narrow},        {&ops::attention, Kind::narrow},
    {&ops::add, Kind::follows},        {&ops::sub, Kind::follows},
    {&ops::mul, Kind::follows},        {&ops::maximum, Kind::follows},
    {&ops::minimum, Kind::follows},    {&ops::neg, Kind::follows},
    {&ops::abs, Kind::follows},        {&ops::relu, Kind::follows},
    {&ops::leaky_relu, Kind::follows}, {&ops::clip, Kind::follows},
    {&ops::tanh, Kind::follows},       {&ops::erf, Kind::follows},
    {&ops::sigmoid, Kind::follows},    {&ops::silu, Kind::follows},
    {&ops::gelu, Kind::follows},       {&ops::gelu_tanh, Kind::follows},
    {&ops::select, Kind::follows},     {&ops::reshape, Kind::follows},
    {&ops::transpose, Kind::follows},  {&ops::broadcast, Kind::follows},
    {&ops::slice, Kind::follows},      {&ops::pad, Kind::follows},
    {&ops::concat, Kind::follows},     {&ops::reverse, Kind::follows},
    {&ops::gather, Kind::follows},     {&ops::tile, Kind::follows},
    {&ops::pad_edge, Kind::follows},   {&ops::pad_reflect, Kind::follows},
};

bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

// Operations to widen: those that compute with numbers and take their dtype from their operands.
bool can_widen(const Op& op) {
  return op.kind != OpKind::leaf && op.kind != OpKind::control && &op != &ops::cast &&
         &op != &ops::bitcast && &op != &ops::iota && &op != &ops::random_bits;
}

// To nearest, ties to even. Infinities and NaN are unchanged.
Value rounded_to_tf32(Value x) {
  constexpr std::int64_t dropped = 13;
  const Value bits = ops::bitcast(x, {{"dtype", DType::u32}});
  const auto number = [&](std::int64_t n) { return integer_like(bits, n); };
  const Value odd = ops::bit_and(ops::shift_right(bits, number(dropped)), number(1));
  Value rounded = bits + (odd + number((1 << (dropped - 1)) - 1));
  rounded = ops::bit_and(rounded, number(0xffffffff - ((1 << dropped) - 1)));
  const Value exponent = number(0x7f800000);
  const Value is_finite = ops::ne(ops::bit_and(bits, exponent), exponent);
  return ops::bitcast(ops::select(Values{is_finite, rounded, bits}), {{"dtype", DType::f32}});
}

class Narrowing {
 public:
  Narrowing(const Function& f, Precision p) : from_(f), precision_(p) {
    for (const PrecisionRule& r : policy) kinds_.emplace(r.op, r.kind);
  }

  Function run() {
    return transform(from_, [&](NodeId n, Copier& copy, Function&) { return node(n, copy); });
  }

 private:
  DType wanted() const {
    return precision_ == Precision::fp16   ? DType::f16
           : precision_ == Precision::bf16 ? DType::bf16
                                           : DType::f32;
  }
  bool changes(const Value& v) const {
    if (!v.type().is_tensor()) return false;
    return precision_ == Precision::fp32 ? is_half(v.dtype()) : v.dtype() == DType::f32;
  }

  bool applies(NodeId n) const {
    const Op& op = from_.graph().op(n);
    const std::span<const Value> operands = from_.graph().operands(n);
    const auto is_changed = [&](const Value& v) { return changes(v); };
    if (std::ranges::none_of(operands, is_changed)) return false;
    if (precision_ == Precision::fp32) return can_widen(op);
    const auto kind = kinds_.find(&op);
    if (kind == kinds_.end()) return false;
    if (kind->second == Kind::narrow) return true;
    return precision_ != Precision::tf32 &&
           std::ranges::any_of(operands, [&](const Value& v) { return made_.contains(v); });
  }

  // Empty: copied unchanged, with operands of their original dtypes.
  Values node(NodeId n, Copier& copy) {
    if (!applies(n)) return {};
    Graph& graph = from_.graph();
    Values operands;
    for (const Value& v : graph.operands(n)) operands.push_back(operand(v, copy));
    const Op& op = graph.op(n);
    Attrs attrs = graph.attrs(n);
    if (precision_ == Precision::tf32 && op.kind == OpKind::contraction)
      attrs.set("mode", std::string("tf32"));
    const Value made = operands[0].graph().intern(op, operands, attrs);
    Values out;
    for (std::size_t i = 0; i < made.result_count(); ++i) {
      const Value result = made.result(i), before(&graph, n, static_cast<std::uint32_t>(i));
      const bool is_other = result.dtype() != before.dtype();
      if (is_other) made_.emplace(before, result);
      out.push_back(is_other ? cast_to(result, before.dtype()) : result);
    }
    return out;
  }

  Value operand(const Value& v, Copier& copy) {
    if (const auto known = made_.find(v); known != made_.end()) return known->second;
    const Value now = copy(v);
    if (!changes(v)) return now;
    return precision_ == Precision::tf32 ? rounded_to_tf32(now) : cast_to(now, wanted());
  }

  const Function& from_;
  Precision precision_;
  std::unordered_map<const Op*, Kind> kinds_;
  std::unordered_map<Value, Value, ValueHash> made_;  // results whose dtype changed
};

}  // namespace

std::string_view name_of(Precision p) { return names[static_cast<std::size_t>(p)]; }
std::span<const std::string_view> precision_names() { return names; }

Precision precision_named(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != std::end(names)) return static_cast<Precision>(found - std::begin(names));
  std::string known;
  for (std::string_view n : names) known += cat(known.empty() ? "" : ", ", n);
  throw UserError("precision is '", name, "', expected one of ", known);
}

std::span<const PrecisionRule> precision_policy() { return policy; }

std::string policy_text(Precision p) {
  if (p == Precision::fp32) return "all operations on float16 and bfloat16 compute in float32";
  std::string narrow, follows;
  for (const PrecisionRule& r : policy) {
    std::string& list = r.kind == Kind::narrow ? narrow : follows;
    list += cat(list.empty() ? "" : ", ", r.op->name);
  }
  if (p == Precision::tf32)
    return cat("operands are rounded to tf32: ", narrow, "; all others: float32");
  return cat(p == Precision::fp16 ? "float16" : "bfloat16", ": ", narrow,
             ", with sums in float32; where an operand is already: ", follows,
             "; all others: float32");
}

// Raises first because rows and norms written as small operations are not in the table; folds
// normalisations after convolutions while the weights are still wide.
Function with_precision(const Function& f, Precision p) {
  const Function spelled = raise(fold_batch_norm(simplify(f)));
  return for_bodies_too(spelled, [p](const Function& body) { return Narrowing(body, p).run(); });
}

}  // namespace hone
