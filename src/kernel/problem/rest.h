// The rest of a group whose anchor is computed by a separate step: a nest that reads the
// temporaries of that step and computes the rest.
#pragma once

#include <functional>
#include <span>

#include "kernel/problem/anchored.h"

namespace hone {

using NestMaker = std::function<Candidate(const GroupSpec&)>;

// A temporary of the candidate that holds a dense value of this type.
struct Left {
  Type type;
  int temporary = 0;
};

// Appends the steps that compute the group's results; `anchor` makes the anchor's value from the
// temporaries.
void add_rest(Candidate&, const GroupSpec&, const AnchoredGroup&, std::span<const Left>,
              const std::function<Value(std::span<const Value>)>& anchor, const NestMaker&);

}  // namespace hone
