// A recurrence over the first axis of some values, built by the importer: unrolled for few steps,
// otherwise a loop. (Bodies that a model holds: loop.cpp.)
#pragma once

#include <functional>

#include "ops/common.h"

namespace hone::onnx {

struct Stepped {
  Value y;
  Values states;
};

// One step, computed from this time's slices of the inputs, the states and constants; `time` is an
// i64 scalar. All values belong to one graph, which may differ from the node's graph.
using Step = std::function<Stepped(const Values& now, const Values& states, const Values& constants,
                                   Value time)>;

// y is stacked along a new first axis, in time order for either direction. At least one input.
Stepped over_time(const Step&, const Values& inputs, Values states, const Values& constants,
                  bool backwards);

}  // namespace hone::onnx
