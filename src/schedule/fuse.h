// Joins groups of one node to groups that are computed together. An anchor (contraction, row,
// reduction, ...) takes elementwise consumers of its own shape, and producers where each of their
// elements is needed about once.
#pragma once

#include "ir/function.h"
#include "schedule/grouping.h"

namespace hone {

// Expects one group for each member; `read` as find_read_nodes. Leaves the groups in an order in
// which they can run.
void fuse(const Function&, const std::vector<bool>& read, Grouping&);

}  // namespace hone
