// Data-dependent selection of elements, compacted to the front: the building block of operators
// with results of open size. Does not measure sizes; NodeContext does.
#pragma once

#include "import/common/build.h"

namespace hone::onnx {

// The positions where a rank-1 condition holds.
struct Chosen {
  Value places;  // i64, as long as the condition: the selected positions in order, then zeros
  Value rank;  // i64, same length: the number selected up to and including each position, minus one
  Value count;  // i64 scalar
};
Chosen chosen(Value condition);

}  // namespace hone::onnx
