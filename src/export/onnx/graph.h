// Builds one graph of an ONNX file: nodes, names of values, sizes as values. ops.cpp has the
// operators for each op.
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

// State shared by all graphs of one model.
struct ExportState {
  ConstantPool& constants;
  std::vector<std::string> refused = {};                    // one line per node
  std::unordered_map<std::string, std::string> sizes = {};  // symbol to its value, i64[1]
  std::int64_t values = 0;
  std::int64_t opset = 21;     // the lowest that has all written operators
  std::string condition = {};  // condition of the branch that is being written

  void need_opset(std::int64_t n) { opset = std::max(opset, n); }
};

class ExportGraph {
 public:
  // `names` are those of f's parameters. Adds nodes to f's graph.
  ExportGraph(ExportState&, const Function& f, std::vector<std::string> names);

  // Adds values for all symbols of the parameters; called once, in the outermost graph.
  void add_sizes();
  // Adds the results under these names, and everything that they need.
  void add_results(const std::vector<std::string>& names);
  // The same for a body, whose parameters have the names of existing values.
  std::vector<std::string> results();
  const Message& nodes() const { return nodes_; }
  ExportState& state() { return state_; }

  const std::string& name(Value v) const { return names_.at(v); }
  // Adds a node; returns the names of its results.
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
  // i64 values of rank 1 and of rank 0.
  std::string sizes(const Dims&);
  std::string scalar_size(const Dim&);
  // The i64 values 0 to n - 1.
  std::string range(const Dim& n);
  // Whether all integers are known to lie between -size and size - 1: they are constants, or the
  // function checks them (ops::require).
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

// Writes one node; returns the names of its results. Throws UserError with the reason when ONNX has
// no equivalent.
using ExportNode = std::vector<std::string> (*)(ExportGraph&, Value);
// Null: the node is expanded, or refused if it is core.
ExportNode find_export(const ExportGraph&, Value);

struct ExportEntry {
  const Op* op;
  ExportNode write;
};
// Gather, scatter, and slices at dynamic positions.
std::span<const ExportEntry> index_exports();
// Windows, convolutions and other contractions.
std::span<const ExportEntry> window_exports();
// The values from which a node is written: its operands, or what they are made of.
std::vector<Value> written_operands(Value);
// Whether an average pool is an operator of ONNX.
bool is_pooled_whole(Value);
// Index operations that have a direct ONNX equivalent only if the indices are in range.
bool is_exported_whole(const ExportGraph&, Value);
inline Message axis_attribute(Value v) { return attribute("axis", v.attrs().integer("axis")); }

}  // namespace hone::onnx
