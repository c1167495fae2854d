// A function cut into groups, with a place (slot and strides) for every value between them, and the
// order in which they run. Says nothing yet about how a group is computed: candidates do, and
// PlanBuilder joins both into a Variant.
#pragma once

#include <vector>

#include "ir/function.h"
#include "schedule/scheduled.h"

namespace hone {

struct ScheduleOptions {
  bool one_op_groups = false;    // every operation a group of its own, for debugging
  bool in_place = true;          // results may take the memory of what they are made of
  bool tells_alignment = false;  // groups whose memory is aligned are told from others
};

// What a function requires of the sizes that are known before it runs; what it requires of sizes
// that data decides is checked by items of its schedule.
std::vector<DimCheck> first_checks(const Function&);

Schedule schedule(const Function&, const ScheduleOptions& = {});

}  // namespace hone
