// A function divided into groups, with a place (slot and strides) for every value between them, and
// their order of execution. Does not say how a group is computed: candidates do, and PlanBuilder
// combines both into a Variant.
#pragma once

#include <vector>

#include "ir/function.h"
#include "schedule/scheduled.h"

namespace hone {

struct ScheduleOptions {
  bool one_op_groups = false;    // every operation a group of its own, for debugging
  bool in_place = true;          // results may reuse the memory of their operands
  bool tells_alignment = false;  // groups with aligned memory get specs of their own
  // A product of one row takes the function that computes the row, such as a norm. For machines
  // whose groups of threads all compute it sooner than another kernel starts.
  bool rows_into_products = false;
};

// The function's requirements on sizes that are known before it runs; those on data-dependent sizes
// are checked by items of its schedule.
std::vector<DimCheck> first_checks(const Function&);

Schedule schedule(const Function&, const ScheduleOptions& = {});

}  // namespace hone
