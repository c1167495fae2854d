// Which nodes of a function are computed together. Does not assign memory.
#pragma once

#include <vector>

#include "schedule/grouping.h"

namespace hone {

struct GroupOptions {
  bool one_op_groups = false;
  bool rows_into_products = false;  // see ScheduleOptions
  // Per parameter: its memory may be overwritten after its last read. Empty: none may.
  std::vector<bool> owned = {};
};

Grouping group(const Function&, const GroupOptions& = {});

}  // namespace hone
