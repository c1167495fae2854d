// Whether results are those of the reference: promise 1 of the design, and for what it refuses,
// whether rounding alone explains it.
#pragma once

#include <string>
#include <vector>

#include "test/random/inputs.h"

namespace hone::fuzz {

// The reference's values of one run.
class Judge {
 public:
  Judge(const Function&, const Run&);

  const std::vector<Array>& inputs() const { return inputs_; }
  // Empty when the results pass; else which of them is wrong and how.
  std::string operator()(const std::vector<Array>& got);
  // Results that the rule refused and rounding explained.
  int explained() const { return explained_; }

 private:
  bool explains(std::size_t result, const Array& got);

  const Function& function_;
  std::vector<Array> inputs_;
  std::vector<Wide> strict_, wide_;
  std::vector<std::vector<Wide>> perturbed_;
  int explained_ = 0;
};

// The same function, with a relative error of at most one unit in the last place of its dtype (4
// after exp and its like) on every use of a rounded value and on every operand that is rounded. The
// error differs from element to element, from use to use, and with `phase`.
Function perturbed(const Function&, int phase);

}  // namespace hone::fuzz
