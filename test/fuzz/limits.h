// Limits on the cost of one file for the targets that read ONNX.
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
