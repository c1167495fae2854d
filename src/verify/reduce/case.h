// A test case that shows a compiler fault: a function with sizes and input seeds, small enough to
// send and keep. As text (`.hone-ir`): comments (#), one line for each run ("run seed=7 extreme
// n=3"), the function. A run holds no data, so a case is short.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.h"
#include "ref/evaluate.h"

namespace hone {

enum class CaseNumbers : std::uint8_t {
  ordinary,  // reals in [-2, 2], many of them halves; small integers
  extreme,   // one in four is special: zeros of both signs, denormals, huge, infinities, NaN,
             // integer limits
};

struct CaseRun {
  Sizing sizes;  // of every symbol
  std::uint64_t seed = 1;
  CaseNumbers numbers = CaseNumbers::ordinary;
};

struct Case {
  Function function;
  std::vector<CaseRun> runs;
};

Array input_array(const Type&, const Sizing&, std::uint64_t seed, CaseNumbers);
std::vector<Array> inputs_of(const Function&, const CaseRun&);

std::string case_text(const Case&, std::string_view comment);
// Throws UserError.
Case parse_case(std::string_view text);

}  // namespace hone
