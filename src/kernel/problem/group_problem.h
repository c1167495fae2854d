// A contraction or convolution for groups of threads, as one sum of products over batch, rows,
// columns and depth. A convolution is a contraction over its window. Shared by the builders of such
// kernels; not one of them.
#pragma once

#include <functional>
#include <optional>

#include "kernel/problem/anchored.h"
#include "ops/contraction.h"
#include "target/target_info.h"

namespace hone {

// C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n]
struct GroupProblem {
  using Where = std::function<Dims(const Dim& batch, const Dim& free, const Dim& k)>;
  Value a, b;
  Dim batch = 1, m = 1, n = 1, k = 1;
  bool is_convolution = false;
  Where a_at, b_at;
  std::function<Dims(const Dim& batch, const Dim& m, const Dim& n)> c_at;
};

struct FoundGroupContraction {
  AnchoredGroup group;
  DType accumulate;
};

// Returns nullopt if the group does not match or the machine has no groups of threads.
std::optional<FoundGroupContraction> find_group_contraction(const GroupSpec&, const TargetInfo&);
// The group must outlive the result.
GroupProblem problem_of(AnchoredGroup&);

}  // namespace hone
