// Whether rounding alone explains a result that the rule of compare.h refuses: sums that cancel,
// comparisons and whole numbers made of rounded ones. Asked after a refusal only; it is slow.
#pragma once

#include <vector>

#include "ref/evaluate.h"

namespace hone {

class Rounding {
 public:
  // What was evaluated, stepwise and wide. All must outlive this object.
  Rounding(const Function& f, const std::vector<Array>& inputs, const std::vector<Wide>& strict,
           const std::vector<Wide>& wide)
      : function_(f), inputs_(inputs), strict_(strict), wide_(wide) {}

  // Evaluates the function up to thirty times more, with a relative error of at most one unit in
  // the last place of its dtype (4 after exp and its like) on every use of a rounded value and on
  // every operand that is rounded. The error differs from element to element, operation to
  // operation, time to time.
  bool explains(std::size_t result, const Array& got);

  // For results of another program: whether each element lies among those of these evaluations, or
  // outside by at most half the distance between the least and the largest, and `atol` and `rtol`
  // of |wide|.
  bool spans(std::size_t result, const Array& got, double atol, double rtol);

 private:
  void evaluate(int phases);

  const Function& function_;
  const std::vector<Array>& inputs_;
  const std::vector<Wide>&strict_, &wide_;
  std::vector<std::vector<Wide>> perturbed_;
};

}  // namespace hone
