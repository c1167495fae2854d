// A function with sizes and seeds of inputs, small enough to be sent and kept: what shows a fault
// of the compiler. As text (`.hone-ir`): comments (#), one line for each run ("run seed=7 extreme
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
  extreme,   // one in four: zeros of both signs, denormals, huge, infinities, NaN, ends of integers
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
