// Makes up inputs that a function accepts when none are given: seeded random data whose integers
// are valid for the operations that read them, as far as a bounded search finds such values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "verify/sample.h"

namespace hone {

// Integers to try if the function refuses random ones.
enum class Listed : std::uint8_t {
  no,
  counting,  // 0, 1, 2, ...: axes, each of which may occur once
  shape      // -1, 1, 1, ...: a target shape that any number of elements fits
};
constexpr std::int64_t listed_integer(Listed l, std::int64_t k) {
  return l == Listed::counting ? k : k == 0 ? -1 : 1;
}

struct MadeInputs {
  std::vector<Array> arrays;  // one for each parameter
  // Assumptions about the inputs, one line for each parameter: "'ids' i64[2,3]: 0 to 1".
  std::vector<std::string> assumptions;
  // Why a run will refuse them, if no accepted inputs were found. Empty: it will not.
  std::string problem;
};

// Parameters with required contents get these; reals are those of Fill::random.
MadeInputs made_inputs(const Function&, const Sizing&);
// Also makes up sizes that satisfy the guards; empty when none are found. If the function refuses
// the first sizes, one size at a time is set to the sum of two others, such as the length of an
// attention mask over cached and new tokens, or to more than the sum of all.
std::optional<MadeInputs> made_inputs_and_sizes(const Function&, const std::vector<Guard>&);
// The same for a model. Throws UserError with advice when no inputs are found.
MadeInputs made_inputs_of(std::string_view model, const Function&, const std::vector<Guard>&,
                          std::string_view instead);

}  // namespace hone
