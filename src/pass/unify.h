// Merges symbols that are recorded as equal. Changes parameter types, so it runs before the passes;
// does not simplify expressions.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "ir/function.h"

namespace hone {

// For every check of the form symbol == symbol (in bodies too), replaces one symbol by the other
// everywhere; binding inputs to symbols then reports any contradiction.
Function unify_sizes(const Function&);
// The same inside the function; its parameters keep their types, and the checks stay.
Function unify_sizes_inside(const Function&);

// The function with some symbols replaced by the Dims of the given names, in types, attributes,
// checks and bodies.
Function substitute_sizes(const Function&, const std::map<std::string, Dim>& by_name);
// The same with numbers.
Function substitute_sizes(const Function&,
                          const std::unordered_map<std::string, std::int64_t>& by_name);

}  // namespace hone
