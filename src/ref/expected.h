// What a function gives for some inputs, evaluated as far as judging results needs.
#pragma once

#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone {

class Expected {
 public:
  // Evaluates the wide mode; throws as Evaluator does. `rounded`: the other mode of the rule. The
  // evaluator and the inputs must outlive it.
  Expected(Evaluator&, std::span<const Array> inputs, Mode rounded);

  const std::vector<Wide>& wide() const { return wide_; }
  // In the other mode, evaluated when it is first asked for. Throws where that refuses the inputs.
  const std::vector<Wide>& rounded();

  // The rule of compare.h. A result that it accepts with the wide mode in place of both is accepted
  // for any numbers of the other mode. So that is evaluated only where the wide mode alone refuses,
  // and `limit` may be smaller than the rule allows.
  Comparison accept(std::size_t result, const Wide& got);

  // Whether the other mode refuses the inputs, so that a plan may as well.
  bool may_be_refused();

 private:
  Evaluator* evaluator_;
  std::span<const Array> inputs_;
  Mode mode_;
  std::vector<Wide> wide_, rounded_;
};

}  // namespace hone
