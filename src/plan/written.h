// What a plan will be as a file, known before it is written.
#pragma once

#include "plan/plan.h"

namespace hone {

// What reading the plan from a file will use.
PlanReading reading_when_written(const Plan&);

}  // namespace hone
