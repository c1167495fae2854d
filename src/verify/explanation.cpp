#include "verify/explanation.h"

namespace hone {

// Random perturbations may miss a rare outcome of a step that rounding decides, such as the other
// branch of an `if` or the next whole number, and f64 has no more precise evaluation to compare
// with. There enclosures decide. Those of other floats are too wide to find a wrong rule, and
// decide only for numbers of which products may overflow.
bool Explanation::encloses(std::size_t result, const Array& got) {
  if (enclosures_.empty()) enclosures_ = enclose(function_, inputs_);
  const Enclosure& e = enclosures_[result];
  const bool is_judged =
      !is_float(got.dtype()) || got.dtype() == DType::f64 || may_overflow_ || e.hangs_on_step;
  return is_judged && accept(got, e).ok;
}

}  // namespace hone
