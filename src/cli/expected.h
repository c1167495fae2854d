// Compares results with those stored beside a model, with the tolerance that its framework's
// rounding needs. Not for compiled code: that is ref/compare.h.
#pragma once

#include "ref/compare.h"

namespace hone::cli {

struct Tolerance {
  double atol = -1, rtol = -1;  // -1: 1e-4 and 1e-3, for narrow floats 2e-3 and 1e-2

  Tolerance of(DType) const;  // both set
};

// Passes if |got - expected| <= atol max|expected| + rtol |expected|.
Comparison compare_expected(const Array& got, const Array& expected, const Tolerance& = {});

}  // namespace hone::cli
