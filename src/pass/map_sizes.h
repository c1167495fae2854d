// Rewrites the sizes in a function: types, attributes, checks, bodies. Decides nothing about them.
#pragma once

#include <map>
#include <string>

#include "ir/function.h"

namespace hone {

struct SizeMap {
  std::map<std::string, Dim, std::less<>> symbols;  // what replaces them, by name
  bool pin = false;  // sizes that can have one value only become that number

  Dim operator()(const Dim&) const;
};

// Parameter types are mapped too. Types are not inferred again. A check that is proved by the new
// sizes is dropped; one that they refute stays, because a body may never be reached.
// Symbols that a body binds for itself, to other sizes than those of the same name outside, are its
// own.
Function map_sizes(const Function&, const SizeMap&);

}  // namespace hone
