// The expected results of a function for some inputs, evaluated only as far as needed.
#pragma once

#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone {

class Expected {
 public:
  // Evaluates the wide mode; throws as Evaluator does. `rounded`: the second mode of the rule. The
  // evaluator and the inputs must outlive it.
  Expected(Evaluator&, std::span<const Array> inputs, Mode rounded);

  const std::vector<Wide>& wide() const { return wide_; }
  // The results in the second mode, evaluated on first use. Throws if it rejects the inputs.
  const std::vector<Wide>& rounded();

  // The rule of compare.h. A result that the rule accepts with the wide mode used for both is
  // accepted whatever the second mode gives. So the second mode is evaluated only if the wide mode
  // alone rejects, and `limit` may be smaller than the rule allows.
  Comparison accept(std::size_t result, const Wide& got);

  // Whether the second mode rejects the inputs, so that a plan may reject them too.
  bool may_be_refused();

 private:
  Evaluator* evaluator_;
  std::span<const Array> inputs_;
  Mode mode_;
  std::vector<Wide> wide_, rounded_;
};

}  // namespace hone
