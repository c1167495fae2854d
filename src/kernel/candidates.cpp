#include "kernel/candidates.h"

#include <algorithm>

#include "kernel/contraction.h"
#include "kernel/convolution.h"
#include "kernel/cost.h"

namespace hone {

std::vector<Candidate> generated_candidates(const GroupSpec& spec, const TargetInfo& target) {
  std::vector<Candidate> out;
  for (auto build : {contraction_candidate, convolution_candidate})
    if (auto candidate = build(spec, target)) out.push_back(std::move(*candidate));
  out.push_back(nest_candidate(spec, target));
  if (out.size() > 1) {
    std::ranges::stable_sort(out, {}, [&](const Candidate& c) { return predicted_ms(c, target); });
  }
  return out;
}

}  // namespace hone
