// A plan as JSON, without the bytes of its tensors. Not the plan file: that is the JSON, the bytes,
// and the hashes of both.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "plan/plan.h"

namespace hone {

// Is told of every weight, prepared buffer, piece of code and graph array, with a name for it;
// returns the name under which it can be found again.
using StoreTensor = std::function<std::string(std::string_view name, const Array&)>;
using LoadTensor = std::function<Array(std::string_view name)>;

Json plan_to_json(const Plan&, const StoreTensor& store);
// For people and other programs: tensors appear by name, type and size only.
Json plan_to_json(const Plan&);
// The devices of a variant alone: name, target, streams, arena_bytes, arena_lower_bound.
Json devices_json(const Variant&);
// The inverse. Throws UserError when the JSON has another form; does not check() the plan.
Plan plan_from_json(const Json&, const LoadTensor& load);

}  // namespace hone
