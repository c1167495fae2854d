// Whether rounding alone explains a result that the rule of compare.h rejects: sums that cancel,
// comparisons and integers made from rounded numbers. Used only after a rejection, as it is slow.
#pragma once

#include <functional>
#include <vector>

#include "ref/evaluate.h"

namespace hone {

class Rounding {
 public:
  // Returns the results of another function, or the judged elements of them, on the same inputs.
  // Empty: that is too much work.
  using Evaluate = std::function<std::vector<Wide>(const Function&)>;
  // Numbers of evaluations: usually, and before a result is rejected. Six evaluations and the
  // reference agree by chance on one of 2^7 rounding-dependent decisions.
  static constexpr int few = 6, all = 30;

  // The evaluated function and its results, stepwise and wide. All must outlive this object.
  Rounding(const Function& f, Evaluate evaluate, const std::vector<Wide>& strict,
           const std::vector<Wide>& wide)
      : function_(f), evaluate_(std::move(evaluate)), strict_(strict), wide_(wide) {}
  Rounding(const Function& f, const std::vector<Array>& inputs, const std::vector<Wide>& strict,
           const std::vector<Wide>& wide)
      : Rounding(
            f, [&inputs](const Function& g) { return evaluate_wide(g, inputs, Mode::strict); },
            strict, wide) {}

  // Evaluates the function up to `most` times more, with a relative error of at most one unit in
  // the last place of its dtype (4 after exp and similar ops) on every use of a rounded value and
  // on every operand that is rounded. The error differs between operations and evaluations, and in
  // two of three evaluations between elements. Elements in `left_out`, if it is not empty, are not
  // judged and do not count for the limit of the others.
  bool explains(std::size_t result, const Wide& got, const std::vector<bool>& left_out = {},
                int most = all);
  // Whether rounding decides if this element is NaN, infinite or a number: whether one of all
  // evaluations differs from the others in that.
  bool decides_special(std::size_t result, std::size_t element);
  // Whether rounding decides the sizes of a result: whether they differ between evaluations.
  bool decides_sizes(std::size_t result);
  // Elements of a float result that have no digit in common in all these evaluations: they consist
  // only of rounding error.
  std::vector<bool> noise(std::size_t result);

  // For results of another program: whether each element is within the range of these evaluations,
  // or outside it by at most half the width of the range plus `atol` and `rtol` of |wide|.
  bool spans(std::size_t result, const Array& got, double atol, double rtol);

 private:
  void perturb(int phases);
  bool has_open_sizes(std::size_t result) const;
  std::vector<const Wide*> evaluations(std::size_t result) const;

  const Function& function_;
  Evaluate evaluate_;
  const std::vector<Wide>&strict_, &wide_;
  std::vector<std::vector<Wide>> perturbed_;
};

}  // namespace hone
