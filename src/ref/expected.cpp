#include "ref/expected.h"

namespace hone {

Expected::Expected(Evaluator& evaluator, std::span<const Array> inputs, Mode rounded)
    : evaluator_(&evaluator),
      inputs_(inputs),
      mode_(rounded),
      wide_(evaluator.in(Mode::wide, inputs)) {}

const std::vector<Wide>& Expected::rounded() {
  if (rounded_.empty()) rounded_ = evaluator_->in(mode_, inputs_);
  return rounded_;
}

Comparison Expected::accept(std::size_t result, const Wide& got) {
  const Wide& wide = wide_[result];
  Comparison c = hone::accept(got, wide, wide);
  if (c.ok || !c.problem.empty()) return c;
  if (!may_be_refused()) return hone::accept(got, rounded()[result], wide);
  Comparison undecided;
  undecided.undecided = got.count();
  return undecided;
}

bool Expected::may_be_refused() {
  try {
    rounded();
    return false;
  } catch (const UserError&) {
    return true;
  }
}

}  // namespace hone
