// Prints a variant's steps and buffers for people, one line each. Not a format; no program reads
// it.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace hone {

std::string_view name_of(Step::Kind);  // "launch", "if", ...
std::string_view name_of(PlanBuffer::Kind);
std::string guard_text(const Guard&);  // "n == 1"
// Name, target, streams, arena.
std::string device_text(const PlanDevice&);
std::string devices_text(const Variant&);
// Targets of all its devices.
std::string targets_text(const Variant&);
std::string steps_text(const Variant&, const std::vector<Step>&, int depth = 0);
// Guards, buffers with their places, steps.
std::string variant_text(const Variant&);

}  // namespace hone
