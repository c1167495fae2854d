// The error of compiled operations of one real number, in units in the last place of the result's
// dtype, against the C library in double. Not the limit of a whole kernel: one that fuses rounds
// less often.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/ops.h"

namespace hone::ulp {

struct Unary {
  const Op* op;
  double (*exact)(double);
  double limit;  // 0.5: rounded once, as IEEE 754 demands or because nothing is computed
  Attrs attrs = {};
};
const std::vector<Unary>& unaries();

struct Error {
  double worst = 0;  // infinite where NaN, infinities or zeros disagree
  double at = 0, got = 0, exact = 0;
};

// Over all inputs of a dtype of 16 bits; of f32 over each `step`-th pattern of bits, compiled for a
// target as CompileOptions names them.
Error measure(const Unary&, DType, std::uint64_t step, const std::string& target);

}  // namespace hone::ulp
