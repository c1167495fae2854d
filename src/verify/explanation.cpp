#include "verify/explanation.h"

#include "ref/compare.h"

namespace hone {

namespace {

// Whether the rule accepts a result when elements that depend on the order of operations are left
// out: inf/inf of numbers that a kernel keeps in a wider dtype, 0/0 of differences that cancel.
bool accepts_others(const Enclosure& e, const Array& got, Wide strict, Wide wide) {
  const Wide g = widen(got);
  bool any = false;
  for (std::size_t i = 0; i < g.reals.size(); ++i) {
    if (!e.hangs_on_order(i)) continue;
    any = true;
    strict.reals[i] = wide.reals[i] = g.reals[i];
  }
  return any && accept(g, strict, wide).ok;
}

}  // namespace

// Random perturbations may miss a rare outcome of a step that rounding decides, such as the other
// branch of an `if` or the next whole number, and f64 has no more precise evaluation to compare
// with. There enclosures decide. Those of other floats are too wide to find a wrong rule, and
// decide only for numbers of which products may overflow.
bool Explanation::encloses(std::size_t result, const Array& got) {
  if (enclosures_.empty()) enclosures_ = enclose(function_, inputs_);
  const Enclosure& e = enclosures_[result];
  const bool is_judged =
      !is_float(got.dtype()) || got.dtype() == DType::f64 || may_overflow_ || e.hangs_on_step;
  if (is_judged) return accept(got, e).ok;
  return accept(got, e).ok &&
         accepts_others(e, got, expected_.rounded()[result], expected_.wide()[result]);
}

}  // namespace hone
