// The ONNX operators that can be imported, as a table for people: what each becomes is found by
// importing a small use of it.
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
  std::vector<const Op*> becomes = {};     // empty when no use was found that is imported by itself
};

// In order of domains and names.
std::vector<OnnxOperator> onnx_operators();

}  // namespace hone
