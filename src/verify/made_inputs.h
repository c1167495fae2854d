// Inputs that a function accepts, made up when none are given: seeded random data whose integers
// satisfy what reads them, as far as a bounded search finds such.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "verify/sample.h"

namespace hone {

// Integers that are tried where the function refuses random ones.
enum class Listed : std::uint8_t {
  no,
  counting,  // 0, 1, 2, ...: axes, each of which may stand there once
  shape      // -1, 1, 1, ...: a target shape that any number of elements fits
};
constexpr std::int64_t listed_integer(Listed l, std::int64_t k) {
  return l == Listed::counting ? k : k == 0 ? -1 : 1;
}

struct MadeInputs {
  std::vector<Array> arrays;  // one for each parameter
  // What was assumed of them, one line for each parameter: "'ids' i64[2,3]: 0 to 1".
  std::vector<std::string> assumptions;
  // Why a run will refuse them: nothing was found that the function accepts. Empty: it will not.
  std::string problem;
};

// Parameters hold what is required of them, reals are those of Fill::random.
MadeInputs made_inputs(const Function&, const Sizing&);
// Also makes up the sizes, which satisfy the guards; nothing when no such sizes are found. If the
// function refuses the first sizes, one size at a time is set to the sum of two others, such as the
// length of an attention mask over cached and new tokens, or to more than the sum of all.
std::optional<MadeInputs> made_inputs_and_sizes(const Function&, const std::vector<Guard>&);
// The same of a model. Throws UserError, which says what to do instead, where no inputs are found.
MadeInputs made_inputs_of(std::string_view model, const Function&, const std::vector<Guard>&,
                          std::string_view instead);

}  // namespace hone
