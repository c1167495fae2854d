// Checks results against the reference: promise 1 of the design, and for results that it refuses,
// whether rounding alone explains the difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ref/enclosure.h"
#include "ref/expected.h"
#include "verify/reduce/case.h"

namespace hone {

// The reference's values of one run.
class Judge {
 public:
  // If denormals are not kept, the inputs contain none.
  Judge(const Function&, const CaseRun&, bool keeps_denormals = true);

  const std::vector<Array>& inputs() const { return inputs_; }
  // Empty when the results pass; else which one is wrong and how.
  std::string operator()(const std::vector<Array>& got);
  // Number of results that the rule refused and the enclosure explained.
  int explained() const { return explained_; }

 private:
  const std::vector<Enclosure>& enclosures();

  const Function& function_;
  Evaluator evaluator_;
  std::vector<Array> inputs_;
  std::optional<Expected> expected_;
  std::optional<std::vector<Enclosure>> enclosures_;
  int explained_ = 0;
};

}  // namespace hone
