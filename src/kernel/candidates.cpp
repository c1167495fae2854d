#include "kernel/candidates.h"

#include "kernel/contraction.h"
#include "kernel/convolution.h"

namespace hone {

std::vector<Candidate> generated_candidates(const GroupSpec& spec, const TargetInfo& target) {
  std::vector<Candidate> out;
  for (auto build : {contraction_candidate, convolution_candidate})
    if (auto candidate = build(spec, target)) out.push_back(std::move(*candidate));
  out.push_back(nest_candidate(spec, target));
  return out;
}

}  // namespace hone
