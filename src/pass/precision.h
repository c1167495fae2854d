// The precision of a whole model: dtypes of its float32 values, chosen for each operation by a
// table. Parameters and results keep their types.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/function.h"

namespace hone {

// fp32 also widens float16 and bfloat16 models; tf32 rounds the operands of contractions to ten
// bits of mantissa, and stores everything in float32.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16 };

std::string_view name_of(Precision);
std::span<const std::string_view> precision_names();
// Throws UserError listing the valid names.
Precision precision_named(std::string_view);

// How an operation's float32 operands are treated. An operation that is not in the table keeps the
// dtypes of the original model: reductions, softmax, norms, losses, powers, logarithms and
// recurrences accumulate and compute in float32.
struct PrecisionRule {
  enum class Kind : std::uint8_t {
    narrow,   // operands and result are cast down; sums are float32 inside
    follows,  // the same if an operand was already cast down; else unchanged
  };
  const Op* op;
  Kind kind;
};
std::span<const PrecisionRule> precision_policy();

// The table for a precision as prose: what is cast, what follows, what stays.
std::string policy_text(Precision);

// Includes the bodies of control flow. A cast of a weight depends only on weights, so it is
// computed once, when the plan is prepared.
Function with_precision(const Function&, Precision);

}  // namespace hone
