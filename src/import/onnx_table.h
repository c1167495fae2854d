// The ONNX operators that can be imported, as a table for people: what each becomes is found by
// importing a small use of it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace hone {

struct OnnxOperator {
  std::string_view name;
  std::int64_t since = 1, until = 1;  // opsets
  std::vector<const Op*> becomes;     // empty when no use was found that is imported by itself
};

// In order of their names.
std::vector<OnnxOperator> onnx_operators();

}  // namespace hone
