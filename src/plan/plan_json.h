// A plan as JSON, without the bytes of its tensors. A plan file has this JSON, the bytes, and
// hashes of both.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "plan/plan.h"

namespace hone {

// Called for every weight, prepared buffer, piece of code and graph array, with a suggested name;
// returns the name to store it by.
using StoreTensor = std::function<std::string(std::string_view name, const Array&)>;
using LoadTensor = std::function<Array(std::string_view name)>;

// Increment it when the JSON of what a run reads changes, because equal plans then get another
// content_hash().
inline constexpr int content_version = 2;

Json plan_to_json(const Plan&, const StoreTensor& store);
// For people and other programs: shows tensors by name, type and size only.
Json plan_to_json(const Plan&);
// Only the devices of a variant: name, target, streams, arena_bytes, arena_lower_bound.
Json devices_json(const Variant&);
// The inverse. Throws UserError when the JSON has the wrong structure; does not check() the plan.
Plan plan_from_json(const Json&, const LoadTensor& load);

}  // namespace hone
