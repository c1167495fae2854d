// What the import function of one ONNX operator sees: its node, typed operands, attributes, and the
// graph to build in. Not the importer's walk over the model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx_model.h"
#include "ops/common.h"

namespace hone::onnx {

class NodeContext {
 public:
  NodeContext(const Node& node, std::int64_t opset, hone::Graph& graph, std::vector<Value> inputs,
              const Model& model)
      : node_(node), opset_(opset), graph_(graph), inputs_(std::move(inputs)), model_(model) {}

  const Node& node() const { return node_; }
  std::int64_t opset() const { return opset_; }
  hone::Graph& graph() const { return graph_; }

  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i]; }
  Value in(std::size_t i) const;  // fails when absent
  const std::vector<Value>& all_inputs() const { return inputs_; }
  std::size_t outputs() const { return node_.outputs.size(); }
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }

  std::int64_t integer(std::string_view attribute, std::int64_t fallback) const;
  double real(std::string_view attribute, double fallback) const;
  std::string_view text(std::string_view attribute, std::string_view fallback) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view attribute) const;
  std::optional<Array> tensor(std::string_view attribute) const;

  // Sizes that an integer operand holds; fails when they depend on data.
  Dims contents(std::size_t input) const;
  // The same, all of them numbers.
  std::vector<std::int64_t> numbers(std::size_t input) const;
  // Attribute `name` (older opsets) or operand `input` (newer ones), as numbers.
  std::optional<std::vector<std::int64_t>> list(std::string_view name, std::size_t input) const;

  [[noreturn]] void fail(std::string_view why) const;

 private:
  const Node& node_;
  std::int64_t opset_;
  hone::Graph& graph_;
  std::vector<Value> inputs_;
  const Model& model_;
};

// Builds the node's results, one for each ONNX output of the operator (trailing ones may be left
// out when no model can use them).
using ImportNode = Values (*)(NodeContext&);

struct ImportEntry {
  std::string_view op;
  ImportNode import;
  std::int64_t newest = 27;  // last opset that this function is known to be right for
};

std::span<const ImportEntry> elementwise_imports();
std::span<const ImportEntry> shape_imports();
std::span<const ImportEntry> network_imports();
// All of the above, of domain "". Null when there is none.
const ImportEntry* find_import(std::string_view op);
// The supported operator nearest in spelling.
std::string_view nearest_import(std::string_view op);

}  // namespace hone::onnx
