// Whether results are those of the reference: promise 1 of the design, and for what it refuses,
// whether rounding alone explains it.
#pragma once

#include <string>
#include <vector>

#include "ref/rounding.h"
#include "test/random/inputs.h"

namespace hone::fuzz {

// The reference's values of one run.
class Judge {
 public:
  // Refers to itself and to the function, which must outlive it.
  Judge(const Function&, const Run&);
  Judge(const Judge&) = delete;

  const std::vector<Array>& inputs() const { return inputs_; }
  // Empty when the results pass; else which of them is wrong and how.
  std::string operator()(const std::vector<Array>& got);
  // Results that the rule refused and rounding explained.
  int explained() const { return explained_; }

 private:
  std::vector<Array> inputs_;
  std::vector<Wide> strict_, wide_;
  Rounding rounding_;
  int explained_ = 0;
};

}  // namespace hone::fuzz
