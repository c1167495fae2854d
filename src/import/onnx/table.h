// The supported ONNX operators as a table for display. What each becomes is found by importing a
// small example.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace hone {

struct OnnxOperator {
  std::string_view name, domain;           // "ai.onnx", ...
  std::int64_t since = 1;                  // opsets of the domain
  std::optional<std::int64_t> until = {};  // none: to the newest
  std::vector<const Op*> becomes = {};     // empty when no example imports on its own
};

// Sorted by domain and name.
std::vector<OnnxOperator> onnx_operators();

}  // namespace hone
