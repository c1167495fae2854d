// Which nodes of a function are computed together. Decides nothing about memory.
#pragma once

#include <vector>

#include "schedule/grouping.h"

namespace hone {

struct GroupOptions {
  bool one_op_groups = false;
  // Per parameter: its memory may be overwritten once nothing reads it any more. Empty: none's.
  std::vector<bool> owned = {};
};

Grouping group(const Function&, const GroupOptions& = {});

}  // namespace hone
