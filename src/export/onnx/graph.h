// One graph of an ONNX file in the making: nodes, names of values, sizes as values. What each op
// becomes stands in export_ops.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "export/onnx/message.h"
#include "ir/function.h"

namespace hone::onnx {

class ConstantPool {
 public:
  virtual std::string add(const Array&) = 0;

 protected:
  ~ConstantPool() = default;
};

// What all graphs of one model share.
struct ExportState {
  ConstantPool& constants;
  std::vector<std::string> refused = {};                    // one line a node
  std::unordered_map<std::string, std::string> sizes = {};  // symbol to its value, i64[1]
  std::int64_t values = 0;
  std::int64_t opset = 21;     // the least that has all that is written
  std::string condition = {};  // of the branch that is being written

  void need_opset(std::int64_t n) { opset = std::max(opset, n); }
};

class ExportGraph {
 public:
  // `names` are those of f's parameters. f's graph is added to.
  ExportGraph(ExportState&, const Function& f, std::vector<std::string> names);

  // Values for all symbols of the parameters; once, in the outermost graph.
  void add_sizes();
  // Everything that the results need, and the results by these names.
  void add_results(const std::vector<std::string>& names);
  // The same for a body: its parameters have the names of values that are there already.
  std::vector<std::string> results();
  const Message& nodes() const { return nodes_; }
  ExportState& state() { return state_; }

  const std::string& name(Value v) const { return names_.at(v); }
  // A node and its results' names.
  std::vector<std::string> node(std::string_view op, const std::vector<std::string>& inputs,
                                const std::vector<Message>& attributes = {}, int outputs = 1);
  std::string one(std::string_view op, const std::vector<std::string>& inputs,
                  const std::vector<Message>& attributes = {}) {
    return node(op, inputs, attributes)[0];
  }
  std::string constant(const Array& a) { return state_.constants.add(a); }
  std::string integers(std::span<const std::int64_t> values) {
    return constant(Array::from_ints(values));
  }
  std::string fresh() { return cat("v", state_.values++); }
  std::string cast(const std::string& x, DType to);
  std::string reshape(const std::string& x, const Dims&);
  std::string expand(const std::string& x, const Dims&);
  // i64 of rank 1, and of rank 0.
  std::string sizes(const Dims&);
  std::string scalar_size(const Dim&);
  // 0 to n - 1, i64.
  std::string range(const Dim& n);
  // Whether integers all lie between -size and size - 1: they are known, or the function checks
  // them (ops::require).
  bool is_index_into(Value index, const Dim& size) const;
  void add(const Message& nodes) { nodes_.append(nodes); }

 private:
  void emit(Value);
  bool emit_one(NodeId);
  std::string size(const Dim&);

  ExportState& state_;
  const Function& f_;
  std::unordered_map<Value, std::string, ValueHash> names_;
  std::unordered_map<NodeId, std::vector<Value>> expanded_;
  std::vector<std::pair<Dim, std::string>> known_sizes_;
  std::unordered_set<Value, ValueHash> required_;  // operands of ops::require
  Message nodes_;
};

// How one node is written; gives the names of its results. Throws UserError with the reason when
// nothing in ONNX stands for it.
using ExportNode = std::vector<std::string> (*)(ExportGraph&, Value);
// Null: it is expanded, or refused when it is core.
ExportNode find_export(const ExportGraph&, Value);

struct ExportEntry {
  const Op* op;
  ExportNode write;
};
// Gather, scatter and parts at dynamic places.
std::span<const ExportEntry> index_exports();
// Operations on indices that stand in ONNX as they are only where the indices lie inside.
bool is_exported_whole(const ExportGraph&, Value);
inline Message axis_attribute(Value v) { return attribute("axis", v.attrs().integer("axis")); }

}  // namespace hone::onnx
