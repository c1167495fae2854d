#include "kernel/problem/coded_operand.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone {

namespace {

bool is_move(Value v) { return v.is(ops::reshape) || v.is(ops::transpose); }

// Finds the narrowest of the values from which the operand is computed elementwise.
class CodesFinder {
 public:
  explicit CodesFinder(DType dtype) : dtype_(dtype) {}

  std::optional<CodedOperand> find(Value operand) {
    visit(operand, {});
    return best_;
  }

 private:
  static constexpr std::size_t most_values = 64;

  void visit(Value v, const std::vector<Value>& moves) {
    if (std::find(seen_.begin(), seen_.end(), v) != seen_.end() || seen_.size() == most_values)
      return;
    seen_.push_back(v);
    const DType least = best_ ? best_->codes.dtype() : dtype_;
    const bool is_number = v.dtype() != DType::b1 && v.dtype() != DType::text;
    if (is_number && !v.is(ops::constant) && byte_size(v.dtype()) < byte_size(least))
      best_ = CodedOperand{v, moves, {}};
    if (is_move(v)) {
      std::vector<Value> more = moves;
      more.push_back(v);
      visit(v.operand(0), more);
    } else if (maps_elements(v.op())) {
      for (Value operand : v.operands())
        if (operand.shape() == v.shape()) visit(operand, moves);
    }
  }

  DType dtype_;
  std::vector<Value> seen_;
  std::optional<CodedOperand> best_;
};

}  // namespace

std::optional<Dims> CodedOperand::position(Dims at, const Positions& positions) const {
  for (Value v : moves) {
    std::optional<Dims> from = source_position(v, at, positions);
    if (!from) return std::nullopt;
    at = std::move(*from);
  }
  return at;
}

Value CodedOperand::in_order(Value codes_there) const {
  for (std::size_t i = moves.size(); i-- > 0;)
    codes_there = codes_there.graph().intern(moves[i].op(), Values{codes_there}, moves[i].attrs());
  return codes_there;
}

std::vector<CodedOperand> coded_operands(Value operand, DType accumulate) {
  std::vector<CodedOperand> out;
  std::vector<Value> moves;
  Value v = operand;
  for (; is_move(v); v = v.operand(0)) moves.push_back(v);
  if (v.is(ops::mul) && v.dtype() == accumulate)
    for (int side : {0, 1})
      if (packed_dtype(v.operand(side), accumulate) != accumulate)
        out.push_back({v.operand(side), moves, v.operand(1 - side)});
  if (auto codes = CodesFinder(packed_dtype(operand, accumulate)).find(operand))
    out.push_back(std::move(*codes));
  return out;
}

}  // namespace hone
