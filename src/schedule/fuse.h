// Merges groups of one node into groups that are computed together. An anchor (contraction, row,
// reduction, ...) takes elementwise consumers of its own shape, and producers if each of their
// elements is needed about once. Independent updates of one type are one group.
#pragma once

#include "ir/function.h"
#include "schedule/grouping.h"

namespace hone {

// Expects one group per node; `read` is the result of find_read_nodes, `rows_into_products` that of
// ScheduleOptions. Leaves the groups in an order in which they can run.
void fuse(const Function&, const std::vector<bool>& read, bool rows_into_products, Grouping&);

}  // namespace hone
