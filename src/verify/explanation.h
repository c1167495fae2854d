// Whether rounding explains a result that the rule of ref/compare.h refuses (docs/decisions/0026).
// Asked after a refusal only; it is slow.
#pragma once

#include <vector>

#include "ref/enclosure.h"
#include "ref/rounding.h"

namespace hone {

class Explanation {
 public:
  // `expected`: of these inputs, stepwise and wide. `may_overflow`: products of the inputs may. All
  // must outlive this object.
  Explanation(const Function& f, const std::vector<Array>& inputs, const BothModes& expected,
              bool may_overflow = false)
      : function_(f),
        inputs_(inputs),
        expected_(expected),
        rounding_(f, inputs, expected.strict, expected.wide),
        may_overflow_(may_overflow) {}

  bool explains(std::size_t result, const Array& got) {
    return rounding_.explains(result, got) || encloses(result, got);
  }

 private:
  bool encloses(std::size_t result, const Array& got);

  const Function& function_;
  const std::vector<Array>& inputs_;
  const BothModes& expected_;
  Rounding rounding_;
  bool may_overflow_;
  std::vector<Enclosure> enclosures_;
};

}  // namespace hone
