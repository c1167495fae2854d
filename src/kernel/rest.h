// The rest of a group whose anchor is computed by a step of its own: what follows it is a nest that
// reads what that step left in temporaries.
#pragma once

#include <functional>
#include <span>

#include "kernel/anchored.h"

namespace hone {

using NestMaker = std::function<Candidate(const GroupSpec&)>;

// A temporary of the candidate that holds a dense value of this type.
struct Left {
  Type type;
  int temporary = 0;
};

// Appends the steps that compute the group's results, with `anchor` of what was left in the place
// of the anchor.
void add_rest(Candidate&, const GroupSpec&, const AnchoredGroup&, std::span<const Left>,
              const std::function<Value(std::span<const Value>)>& anchor, const NestMaker&);

}  // namespace hone
