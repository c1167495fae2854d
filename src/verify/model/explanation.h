// Whether rounding explains a result that the rule of ref/compare.h refuses (docs/decisions/0026).
// Used only after a refusal, because it is slow.
#pragma once

#include <optional>
#include <vector>

#include "ref/enclosure.h"
#include "ref/expected.h"
#include "ref/rounding.h"

namespace hone {

class Explanation {
 public:
  // `expected`: for these inputs, stepwise. `may_overflow`: products of the inputs may overflow.
  // All must outlive this object.
  Explanation(const Function& f, const std::vector<Array>& inputs, Expected& expected,
              bool may_overflow = false)
      : function_(f), inputs_(inputs), expected_(expected), may_overflow_(may_overflow) {}

  // For a result that `expected` refuses.
  bool explains(std::size_t result, const Array& got) {
    return rounding_explains(result, got) || encloses(result, got);
  }
  // For a result with other sizes than `expected` has.
  bool explains_sizes(std::size_t result) { return rounding().decides_sizes(result); }
  // Does not use enclosures, which are too wide after a long chain of steps. `most`: evaluations.
  bool rounding_explains(std::size_t result, const Array& got, int most = Rounding::all) {
    return rounding().explains(result, widen(got), {}, most);
  }

 private:
  bool encloses(std::size_t result, const Array& got);
  Rounding& rounding() {
    if (!rounding_) rounding_.emplace(function_, inputs_, expected_.rounded(), expected_.wide());
    return *rounding_;
  }

  const Function& function_;
  const std::vector<Array>& inputs_;
  Expected& expected_;
  std::optional<Rounding> rounding_;
  bool may_overflow_;
  std::vector<Enclosure> enclosures_;
};

}  // namespace hone
