// Copies groups out of a function: each becomes a closed Function with parameters by position, so
// that equal groups have equal hashes.
#pragma once

#include <span>
#include <vector>

#include "ir/function.h"
#include "schedule/group.h"

namespace hone {

struct Extracted {
  Function function;  // empty for a control node and an assembly
  Values params;      // values of the whole function, in memory or views of such
  Values results;     // values of members that somebody outside reads
};

// One for each group, in order.
std::vector<Extracted> extract(const Function&, const Grouping&);

}  // namespace hone
