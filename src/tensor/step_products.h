// Sums over the steps of a scan that are products of two values of each step: one product of all
// steps, after the loop. So are derivatives of the matrices of recurrent layers. Not for users.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tensor/body.h"

namespace hone::bodies {

// What a function that is called in each step gives, in this order.
struct StepResults {
  std::size_t carried = 0, kept = 0;  // the results after these are summed over the steps
};

class StepProducts {
 public:
  // Of the function's parameters, the first `sliced` are slices of what is stepped over.
  StepProducts(const Function&, StepResults, std::size_t sliced);

  // The function's carried and kept results, sums that stay in the loop, and further kept results,
  // as many as more_kept().
  const FunctionRef& function() const { return function_; }
  std::size_t more_kept() const { return more_.size(); }
  bool stays(std::size_t sum) const { return !products_[sum].is_found; }
  // The sum of all steps, from what is stepped over and what was kept of all steps: the function's
  // kept results and then those further ones.
  Tensor sum(std::size_t which, const Tensors& over, const Tensors& kept) const;

 private:
  enum class From : std::uint8_t { over, kept };
  struct Operand {
    From from = From::over;
    std::size_t place = 0;
  };
  struct Product {
    bool is_found = false;
    Operand a = {}, b = {};
    std::vector<std::pair<int, int>> contract;  // without the axis of steps
    std::vector<std::vector<int>> transposed;   // one after the other
    DType dtype = DType::f32;
  };

  void find(const Function&, std::size_t sum);
  Operand operand_of(const Function&, const Value&);

  StepResults results_;
  std::size_t sliced_;
  FunctionRef function_;
  std::vector<Product> products_;  // for each sum
  Values more_;                    // in the given function
};

}  // namespace hone::bodies
