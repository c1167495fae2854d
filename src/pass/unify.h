// Makes one symbol of two that are recorded as equal. Changes parameter types, so it runs before
// the passes; not a simplification of expressions.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "ir/function.h"

namespace hone {

// Every check of the form symbol == symbol (in bodies too) is answered by writing one for the
// other everywhere; what binds inputs to symbols then finds a contradiction and names it.
Function unify_sizes(const Function&);

// The function with some symbols replaced by the Dims of the given names, in types, attributes,
// checks and bodies.
Function substitute_sizes(const Function&, const std::map<std::string, Dim>& by_name);
// The same by numbers.
Function substitute_sizes(const Function&,
                          const std::unordered_map<std::string, std::int64_t>& by_name);

}  // namespace hone
