// Compares results with those stored beside a model, with the tolerance that its framework's
// rounding needs. Not for compiled code: that is ref/compare.h.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "ref/compare.h"

namespace hone {

struct Tolerance {
  double atol = -1, rtol = -1;  // -1: 1e-4 and 1e-3, for narrow floats 2e-3 and 1e-2

  Tolerance of(DType) const;  // both set
};

// Passes if |got - expected| <= atol max|expected| + rtol |expected|.
Comparison compare_expected(const Array& got, const Array& expected, const Tolerance& = {});

// Inputs of a model, and what another program computed from them.
struct StoredSet {
  std::filesystem::path path;          // for messages
  std::vector<Array> inputs, outputs;  // outputs are empty if there are none
};

// A plan that agrees with the reference shares its import. Outputs that another program stored
// check both. Throws UserError for the first that differs.
void check_expected(const Plan&, std::span<const StoredSet>, int threads);

}  // namespace hone
