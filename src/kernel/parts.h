// A group computed in several parts, each in the best way that is known for it alone, with dense
// temporaries between them. Not a way to compute any one part.
#pragma once

#include <functional>
#include <optional>

#include "kernel/kernel.h"

namespace hone {

// A group around an attention as scores, softmax and the mixture of values, each as `best` has it;
// nothing for others.
std::optional<Candidate> attention_in_parts(
    const GroupSpec&, const std::function<Candidate(const GroupSpec& part)>& best);

}  // namespace hone
