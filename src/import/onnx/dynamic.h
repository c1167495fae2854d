// Elements that data chooses, front first: what the operators with results of open size are made
// of. Measures nothing itself; NodeContext does.
#pragma once

#include "import/onnx/build.h"

namespace hone::onnx {

// Where a condition of rank 1 holds.
struct Chosen {
  Value places;  // i64, as long as the condition: those that are chosen in order, then zeros
  Value rank;    // i64, likewise: how many were chosen before and at each place, less one
  Value count;   // i64 scalar
};
Chosen chosen(Value condition);

}  // namespace hone::onnx
