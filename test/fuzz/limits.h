// What the targets that read ONNX allow a file to cost.
#pragma once

#include "import/import.h"

namespace hone::fuzz {

inline ImportOptions small_limits() {
  ImportOptions o;
  o.most_nodes = 2'000;
  o.most_value_bytes = 1 << 20;
  o.most_variants = 4;
  return o;
}

}  // namespace hone::fuzz
