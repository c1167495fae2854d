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

Comparison compare_expected(const Array& got, const Array& expected, const Tolerance& given) {
  const bool narrow = expected.dtype() == DType::f16 || expected.dtype() == DType::bf16;
  const double atol = given.atol >= 0 ? given.atol : narrow ? 2e-3 : 1e-4;
  const double rtol = given.rtol >= 0 ? given.rtol : narrow ? 1e-2 : 1e-3;
  return within(got, expected, atol * largest(expected), rtol);
}

}  // namespace hone::cli
