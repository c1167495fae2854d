#include "kernel/nest/own_maximum.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// The only statement of a loop, or of the lanes in it, if it joins values into a register.
const Stmt* only_join(const Stmt& loop, const Op& combine) {
  const Stmt* s = &loop;
  while (is_loop(*s) && s->body.size() == 1) s = &s->body[0];
  return s->kind == Kind::accumulate && s->combine == &combine ? s : nullptr;
}

// Replaces the variables of `from` by those of `to`; empty if their iterations differ.
std::vector<Replacement> same_iterations(const Stmt& from, const Stmt& to) {
  std::vector<Replacement> out;
  const Stmt *a = &from, *b = &to;
  for (; is_loop(*a) && is_loop(*b); a = &a->body[0], b = &b->body[0]) {
    if (!(a->extent == b->extent)) return {};
    out.push_back({symbol_of(*a), symbol_of(*b)});
  }
  return is_loop(*a) || is_loop(*b) ? std::vector<Replacement>() : out;
}

class OwnMaximum {
 public:
  OwnMaximum(Block& block, Lowering& lowering) : block_(block), lowering_(lowering) {}

  void run() {
    for (std::size_t i = 0; i + statements <= block_.size(); ++i)
      if (matches(i)) rewrite(i);
  }

 private:
  // Places of the statements with which threads share a maximum and the sum after it.
  enum : std::size_t { maximum, join_maximum, outside, start, sum, join_sum, statements };

  static bool joins(const Stmt& s, const Stmt& values) {
    return s.kind == Kind::reduce_group && s.reg == values.reg && s.combine == values.combine &&
           s.extent == Dim(1);
  }

  bool matches(std::size_t i) const {
    const Stmt* s = &block_[i];
    const Stmt *max = only_join(s[maximum], ops::maximum), *add = only_join(s[sum], ops::add);
    if (!max || !add || !joins(s[join_maximum], *max) || !joins(s[join_sum], *add)) return false;
    if (s[outside].kind != Kind::accumulate || s[outside].combine != &ops::maximum ||
        !(s[outside].value == reg(max->reg)) || s[start].kind != Kind::declare ||
        s[start].reg != add->reg || !add->value.is(ops::exp) || add->value.dtype() != DType::f32)
      return false;
    const Value difference = add->value.operand(0);
    const std::vector<Replacement> iterations = same_iterations(s[sum], s[maximum]);
    return difference.is(ops::sub) && !iterations.empty() &&
           difference.operand(1) == reg(s[outside].reg) &&
           Rewriter(lowering_.graph(), iterations)(difference.operand(0)) == max->value &&
           is_only_maximum(s[outside].reg, i);
  }

  // Whether register m holds nothing else before statement i.
  bool is_only_maximum(RegId m, std::size_t i) const {
    bool starts = false;
    for (const Stmt& s : std::span(block_).first(i)) {
      starts = starts || (s.kind == Kind::declare && s.reg == m && s.value == lowest());
      bool changes = false;
      for_each_statement({s}, [&](const Stmt& each) {
        changes = changes || (each.reg == m && each.kind != Kind::declare);
      });
      if (changes) return false;
    }
    return starts;
  }

  void rewrite(std::size_t i) {
    const Stmt last = std::move(block_[i + join_sum]), join = std::move(block_[i + join_maximum]);
    const Stmt outer = block_[i + outside], begin = block_[i + start];
    Stmt loop = std::move(block_[i + sum]);
    const Value largest = reg(join.reg), total = reg(begin.reg);
    // Where all x of a thread are -infinity, its sum is 0.
    const Stmt subtracted = declare(apply(ops::select, {apply(ops::eq, {largest, lowest()}),
                                                        lowering_.number(0, DType::f32), largest}));
    Rewriter own(lowering_.graph(), {});
    own.set(reg(outer.reg), reg(subtracted.reg));
    own(loop.body);
    Stmt all{.kind = Kind::intrinsic};
    all.name = join_exponentials;
    const Stmt kept = declare(largest);
    const Value correction = apply(ops::exp, {apply(ops::sub, {reg(kept.reg), largest})});
    all.body = {
        kept, join,
        Stmt{.kind = Kind::assign, .reg = begin.reg, .value = apply(ops::mul, {total, correction})},
        last};
    std::ranges::move(std::vector{subtracted, begin, std::move(loop), std::move(all), outer},
                      block_.begin() + static_cast<std::ptrdiff_t>(i + join_maximum));
  }

  Value reg(RegId r) const { return lowering_.reg(r, DType::f32); }
  Value apply(const Op& op, std::vector<Value> operands) const {
    return lowering_.apply(op, std::move(operands));
  }
  Value lowest() const { return constant(lowering_.graph(), start_of(ops::maximum, DType::f32)); }
  Stmt declare(Value v) const {
    return {.kind = Kind::declare, .reg = lowering_.positions().new_register(), .value = v};
  }

  Block& block_;
  Lowering& lowering_;
};

}  // namespace

void subtract_own_maximum(Block& block, Lowering& lowering) { OwnMaximum(block, lowering).run(); }

}  // namespace hone
