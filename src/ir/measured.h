// Sizes that data decides: the operation that binds them, and what they are in a function.
#pragma once

#include <vector>

#include "ir/op.h"
#include "type/bounds.h"

namespace hone {

namespace ops {
extern const Op measure;  // attrs: symbol, high
}  // namespace ops

// The symbols that nodes of ops::measure bind, in the order of the nodes, with their bounds. Of the
// graph's own nodes, not of bodies.
std::vector<DimBound> measured_sizes(const Graph&);
// Throws UserError unless 0 <= n <= most, and n is the number that the symbol has become.
void check_measured(const Dim& symbol, std::int64_t n, std::int64_t most);

}  // namespace hone
