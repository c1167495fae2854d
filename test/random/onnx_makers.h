// ONNX operators in random functions, as the importer expands them into Hone operations: patterns
// that occur in models but that no single operation covers.
#pragma once

#include <span>

#include "test/random/builder.h"

namespace hone::fuzz {

// Adds the expansion of one operator and returns its result 0. If nothing fits, returns an invalid
// value or throws UserError.
struct OnnxMaker {
  std::string_view op;
  Value (*make)(Builder&, std::string_view op);
};
std::span<const OnnxMaker> onnx_elementwise_makers();
std::span<const OnnxMaker> onnx_layer_makers();
std::vector<OnnxMaker> onnx_makers();

// An attribute of a node.
struct Argument {
  std::string_view name;
  std::variant<std::int64_t, double, std::string_view, std::vector<std::int64_t>> value;
};
using Arguments = std::vector<Argument>;

// The importer's expansion of the operator at the newest opset: at most `results` values; none if
// it needs sizes or contents that are not known.
Values imported(Builder&, std::string_view op, const Values& operands, const Arguments& = {},
                int results = 1);
// Returns the first result; the others are kept in the builder.
Value import_one(Builder&, std::string_view op, const Values& operands, const Arguments& = {},
                 int results = 1);

Value integers(Builder&, const std::vector<std::int64_t>&);  // a constant i64[n]

}  // namespace hone::fuzz
