// A recurrence over the first axis of some values, built by the importer itself: unrolled where the
// steps are few, else a loop. (Bodies that a model holds: onnx_loop.cpp.)
#pragma once

#include <functional>

#include "ops/common.h"

namespace hone::onnx {

struct Stepped {
  Value y;
  Values states;
};

// One step from the slices of the inputs at this time, the states and constants; `time` is an i64
// scalar. All values, and what is made of them, belong to one graph, which is not always that of
// the node.
using Step = std::function<Stepped(const Values& now, const Values& states, const Values& constants,
                                   Value time)>;

// y is stacked along a new first axis, in order of time whichever way the steps run. At least one
// input.
Stepped over_time(const Step&, const Values& inputs, Values states, const Values& constants,
                  bool backwards);

}  // namespace hone::onnx
