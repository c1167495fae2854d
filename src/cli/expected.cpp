#include "cli/expected.h"

#include <algorithm>
#include <cmath>

namespace hone::cli {

namespace {

double largest(const Array& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (std::isfinite(a.real(i))) most = std::max(most, std::fabs(a.real(i)));
  return most;
}

}  // namespace

Tolerance Tolerance::of(DType t) const {
  const bool narrow = t == DType::f16 || t == DType::bf16;
  return {atol >= 0 ? atol : narrow ? 2e-3 : 1e-4, rtol >= 0 ? rtol : narrow ? 1e-2 : 1e-3};
}

Comparison compare_expected(const Array& got, const Array& expected, const Tolerance& given) {
  const Tolerance t = given.of(expected.dtype());
  return within(got, expected, t.atol * largest(expected), t.rtol);
}

}  // namespace hone::cli
