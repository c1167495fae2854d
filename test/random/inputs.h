// Inputs of random functions: ordinary numbers, or with those mixed in on which arithmetic goes
// wrong first. A run is written as its sizes, a seed and the kind, so a case of the corpus holds no
// data.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "ref/evaluate.h"

namespace hone::fuzz {

enum class Numbers : std::uint8_t {
  ordinary,  // reals in [-2, 2], many of them halves; small integers
  extreme,   // one in four: zeros of both signs, denormals, huge, infinities, NaN, ends of integers
};

struct Run {
  Sizing sizes;  // of every symbol
  std::uint64_t seed = 1;
  Numbers numbers = Numbers::ordinary;
};

Array input_array(const Type&, const Sizing&, std::uint64_t seed, Numbers);
std::vector<Array> inputs_of(const Function&, const Run&);

}  // namespace hone::fuzz
