// Nodes with the values of their operands and results, as the second reading gets them.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "import/onnx/file/model.h"
#include "verify/onnx/check.h"
#include "verify/onnx/numbers.h"

namespace hone::test {

inline onnx::Node node(std::string_view op, const std::vector<std::string_view>& inputs,
                       std::vector<onnx::Attribute> attributes = {}) {
  onnx::Node n;
  n.op = op;
  for (std::string_view name : inputs) n.inputs.push_back(name);
  n.outputs.push_back("y");
  n.attributes = std::move(attributes);
  return n;
}

template <class T>
onnx::Attribute attribute(std::string_view name, onnx::Attribute::Kind kind,
                          T onnx::Attribute::* field, T value) {
  onnx::Attribute a;
  a.name = name;
  a.kind = static_cast<std::int32_t>(kind);
  a.*field = std::move(value);
  return a;
}

inline onnx::Attribute integer(std::string_view name, std::int64_t value) {
  return attribute(name, onnx::Attribute::Kind::integer, &onnx::Attribute::integer, value);
}
inline onnx::Attribute integers(std::string_view name, std::vector<std::int64_t> list) {
  return attribute(name, onnx::Attribute::Kind::integers, &onnx::Attribute::integers,
                   std::move(list));
}
inline onnx::Attribute real(std::string_view name, float value) {
  return attribute(name, onnx::Attribute::Kind::real, &onnx::Attribute::real, value);
}
inline onnx::Attribute reals(std::string_view name, std::vector<float> list) {
  return attribute(name, onnx::Attribute::Kind::reals, &onnx::Attribute::reals, std::move(list));
}
inline onnx::Attribute text(std::string_view name, std::string_view value) {
  return attribute(name, onnx::Attribute::Kind::text, &onnx::Attribute::text, value);
}
inline onnx::Attribute texts(std::string_view name, std::vector<std::string_view> list) {
  return attribute(name, onnx::Attribute::Kind::texts, &onnx::Attribute::texts, std::move(list));
}

inline onnx::Node of_domain(onnx::Node n, std::string_view domain) {
  n.domain = domain;
  return n;
}

inline onnx::Node with_outputs(onnx::Node n, const std::vector<std::string_view>& names) {
  n.outputs = {};
  for (std::string_view name : names) n.outputs.push_back(name);
  return n;
}

using NodeValues = std::map<std::string_view, onnx::Numbers>;

inline onnx::ReadingCheck check_node(const onnx::Node& n, const NodeValues& values) {
  onnx::Model model;
  model.opsets = {{"", 18}, {"ai.onnx.ml", 3}, {"com.microsoft", 1}};
  model.graph.emplace().nodes = {n};
  return onnx::check_reading(model, [&](std::string_view name) -> const onnx::Numbers* {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : &it->second;
  });
}

struct Example {
  onnx::Node node;
  NodeValues values;
};

}  // namespace hone::test
