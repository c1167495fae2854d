#include "verify/model/explanation.h"

#include <algorithm>

#include "ref/compare.h"

namespace hone {

// Random perturbations may miss a rare outcome of a step that rounding decides, such as the other
// branch of an `if` or the next whole number, and f64 has no more precise evaluation to compare
// with. Enclosures decide in these cases. For other floats they are too wide to find a wrong rule,
// and decide only for numbers whose products may overflow, and for single elements: those that
// depend on the order of operations (inf/inf of numbers that a kernel keeps in a wider dtype, 0/0
// of differences that cancel) and those that are nothing but rounding (a product of such
// differences). Perturbations must explain the others.
bool Explanation::encloses(std::size_t result, const Array& got) {
  if (enclosures_.empty()) enclosures_ = enclose(function_, inputs_);
  const Enclosure& e = enclosures_[result];
  if (!accept(got, e).ok) return false;
  if (!is_float(got.dtype()) || got.dtype() == DType::f64 || may_overflow_ || e.hangs_on_step)
    return true;
  std::vector<bool> enclosed = rounding().noise(result);
  for (std::size_t i = 0; i < enclosed.size(); ++i)
    enclosed[i] = enclosed[i] || e.hangs_on_order(i);
  return std::ranges::find(enclosed, true) != enclosed.end() &&
         rounding().explains(result, widen(got), enclosed);
}

}  // namespace hone
