// Data-dependent sizes: the operation that binds them, and how to find them in a function.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "type/bounds.h"

namespace hone {

namespace ops {
extern const Op measure;  // attrs: symbol, high
}  // namespace ops

// The symbols that nodes of ops::measure bind, in node order, with their bounds. Covers the graph's
// own nodes, not those of bodies.
std::vector<DimBound> measured_sizes(const Graph&);
// Throws UserError unless 0 <= n <= most, and n equals the symbol if it was replaced by a number.
void check_measured(const Dim& symbol, std::int64_t n, std::int64_t most);

}  // namespace hone
