// The precision of a whole model: dtypes of its float32 values, chosen for each operation by a
// table. Parameters and results keep their types.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/function.h"

namespace hone {

// fp32 also widens float16 and bfloat16 models; tf32 rounds what contractions multiply to ten bits
// of mantissa, and stores everything in float32.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16 };

std::string_view name_of(Precision);
std::span<const std::string_view> precision_names();
// Throws UserError that lists the names.
Precision precision_named(std::string_view);

// What becomes of the float32 values that an operation reads. An operation that is not in the table
// reads and makes the dtypes of the model as it was given: reductions, softmax, norms, losses,
// powers, logarithms and recurrences accumulate and compute in float32.
struct PrecisionRule {
  enum class Kind : std::uint8_t {
    narrow,   // they are cast down, and so is the result; sums are float32 inside
    follows,  // the same where one of them was cast down already; else they stay
  };
  const Op* op;
  Kind kind;
};
std::span<const PrecisionRule> precision_policy();

// The table for a precision, in words: what is cast, what follows, what stays.
std::string policy_text(Precision);

// Bodies of control flow included. A cast of a weight depends on weights alone, so plans compute it
// once when they are prepared.
Function with_precision(const Function&, Precision);

}  // namespace hone
