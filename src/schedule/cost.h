// What a group reads, writes and computes at least, and what it is called. Not a time: that is the
// cost model's and the clock's.
#pragma once

#include <string>

#include "kernel/kernel.h"

namespace hone {

// Bytes of all parameters and results, each once; of what is updated in place, the part that
// changes.
Dim ideal_bytes(const GroupSpec&);
// Multiplications and additions of contractions count two each; every other element one.
Dim ideal_flops(const Function& group);
// "conv+relu": its anchors, or its first operations, in order.
std::string group_name(const Function& group);
// ONNX nodes or source lines of the members.
std::string group_origins(const Function&, std::span<const NodeId> members);

}  // namespace hone
