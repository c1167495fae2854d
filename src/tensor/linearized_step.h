// A step of a scan in two functions: what it computes, with what its derivative needs of that; and
// the derivative, which computes none of it again. Not for users.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tensor/body.h"

namespace hone::bodies {

struct Step {
  FunctionRef f;  // of carried tensors, slices and captured tensors: what is carried on and kept
  std::size_t carried = 0, over = 0, captured = 0, kept = 0;
};

class LinearizedStep {
 public:
  // f, whose results are followed by what is saved of each step.
  const FunctionRef& forward() const { return forward_; }
  std::size_t saved() const { return forward_->results().size() - f_results_; }
  // Of what was saved, slices, captured tensors and derivatives of the floats among f's results:
  // those of the floats among f's operands. Derivatives that are 0 are left out.
  FunctionRef backward(const std::vector<bool>& is_zero) const { return backward_(is_zero); }

 private:
  friend LinearizedStep linearized(Trace&, const Step&, Where);
  FunctionRef forward_;
  std::size_t f_results_ = 0;
  std::function<FunctionRef(const std::vector<bool>&)> backward_;
};

// Throws UserError, which begins with the given line, if the step has no derivative.
LinearizedStep linearized(Trace& outer, const Step&, Where);

}  // namespace hone::bodies
