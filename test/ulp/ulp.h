// The error of compiled operations of one real number, in units in the last place of the result's
// dtype, against the C library in double. Not a limit for whole kernels: fused ones round less
// often.
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

// Over all inputs of a 16-bit dtype; for f32 over every `step`-th bit pattern. `target` is a name
// as in CompileOptions.
Error measure(const Unary&, DType, std::uint64_t step, const std::string& target);

}  // namespace hone::ulp
