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

// What integers are where random ones do not do.
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
// Of sizes that satisfy the guards; nothing when there are none. Where the function refuses the
// first ones, others follow in which one size is the sum of two others, as that of a mask over what
// a cache holds and what is new, or more than all others.
std::optional<MadeInputs> made_inputs_and_sizes(const Function&, const std::vector<Guard>&);

}  // namespace hone
