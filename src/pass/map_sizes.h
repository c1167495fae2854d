// Rewrites the sizes in a function: types, attributes, checks, bodies. The caller chooses the new
// sizes.
#pragma once

#include <map>
#include <string>

#include "ir/function.h"

namespace hone {

struct SizeMap {
  std::map<std::string, Dim, std::less<>> symbols;  // replacement of each symbol, by name
  bool pin = false;  // sizes with only one possible value become that number

  Dim operator()(const Dim&) const;
};

// Parameter types are mapped too. Types are not inferred again. A check that the new sizes prove is
// dropped; one that they refute stays, because a body may never be reached. A symbol that a body
// binds to a different size than the outer symbol of that name is local to the body.
Function map_sizes(const Function&, const SizeMap&);

}  // namespace hone
