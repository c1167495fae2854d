// What a group must at least read, write and compute, and its name. Not a time: cost models and
// measurements give that.
#pragma once

#include <string>

#include "kernel/kernel.h"

namespace hone {

// Bytes of all parameters and results, each counted once; for those updated in place, only the part
// that changes.
Dim ideal_bytes(const GroupSpec&);
// Each multiply-add of a contraction counts two; every element of other operations counts one.
Dim ideal_flops(const Function& group);
// E.g. "conv+relu": its anchors, or its first operations, in order.
std::string group_name(const Function& group);
// ONNX nodes or source lines of the group's nodes.
std::string group_origins(const Function&, std::span<const NodeId> members);

}  // namespace hone
