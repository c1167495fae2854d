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
  // every operand that is rounded. The error differs from operation to operation and time to time,
  // and two times in three from element to element. Elements in `left_out`, if it is not empty, are
  // neither judged nor count for the limit of the others.
  bool explains(std::size_t result, const Array& got, const std::vector<bool>& left_out = {});
  // Elements of a float result that have no digit in common in all these evaluations: nothing but
  // rounding is left of them.
  std::vector<bool> noise(std::size_t result);

  // For results of another program: whether each element lies among those of these evaluations, or
  // outside by at most half the distance between the least and the largest, and `atol` and `rtol`
  // of |wide|.
  bool spans(std::size_t result, const Array& got, double atol, double rtol);

 private:
  void perturb(int phases);
  std::vector<const Wide*> evaluations(std::size_t result) const;

  const Function& function_;
  const std::vector<Array>& inputs_;
  const std::vector<Wide>&strict_, &wide_;
  std::vector<std::vector<Wide>> perturbed_;
};

}  // namespace hone
