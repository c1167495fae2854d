// Operators of ONNX in random functions, as the importer spells them in operations of ours: what
// models hold that no operation of the list is alone.
#pragma once

#include <span>

#include "test/random/builder.h"

namespace hone::fuzz {

// Adds what one operator becomes; its result 0. Invalid, or a UserError, when nothing fits.
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

// What the importer of the newest opset makes of the operator: `results` values or fewer, none when
// it asks about sizes or contents that are not known.
Values imported(Builder&, std::string_view op, const Values& operands, const Arguments& = {},
                int results = 1);
// The first of them; the others are kept.
Value import_one(Builder&, std::string_view op, const Values& operands, const Arguments& = {},
                 int results = 1);

Value integers(Builder&, const std::vector<std::int64_t>&);  // a constant i64[n]

}  // namespace hone::fuzz
