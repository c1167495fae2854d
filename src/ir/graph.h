// Nodes: immutable, interned (equal expressions are one node), in an arena with dense ids. No edge
// is ever changed; a pass builds a new graph. A Graph belongs to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attr.h"
#include "ir/op.h"
#include "type/type.h"

namespace hone {

class Graph;

using NodeId = std::uint32_t;

// One result of one node. `==` is "same expression in the same graph".
class Value {
 public:
  Value() = default;
  Value(Graph* graph, NodeId node, std::uint32_t index = 0)
      : graph_(graph), node_(node), index_(index) {}

  explicit operator bool() const { return graph_ != nullptr; }
  // Throws UserError for an empty value, as do all functions below that need a node.
  Graph& graph() const {
    if (!graph_) throw_empty();
    return *graph_;
  }
  NodeId node() const { return node_; }
  std::uint32_t index() const { return index_; }
  const Op& op() const;
  bool is(const Op& o) const { return graph_ && &op() == &o; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }
  std::size_t operand_count() const;
  Value operand(std::size_t i) const;
  std::vector<Value> operands() const;
  const Attrs& attrs() const;
  std::size_t result_count() const;
  Value result(std::size_t i) const;  // throws UserError when there are fewer
  bool operator==(const Value&) const = default;

 private:
  [[noreturn, gnu::cold]] static void throw_empty();
  Graph* graph_ = nullptr;
  NodeId node_ = 0;
  std::uint32_t index_ = 0;
};

struct ValueHash {
  std::size_t operator()(const Value& v) const {
    return (static_cast<std::size_t>(v.node()) << 8) ^ v.index();
  }
};

using Values = std::vector<Value>;

// Where a node comes from: an ONNX node (index, name, kind = operator) or a line of C++.
struct Origin {
  std::int64_t index = -1;  // ONNX node index, or line
  std::string name;         // ONNX node name, or file
  std::string kind;         // ONNX operator, or "" for C++
  bool operator==(const Origin&) const = default;
};
std::ostream& operator<<(std::ostream&, const Origin&);

// Two sizes that must be equal at run time but could not be proved equal.
struct DimCheck {
  Dim a, b;
  std::string message;  // names the op and both sizes
  bool operator==(const DimCheck&) const = default;
};

class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  // A value given at run time. Each index may be used once per graph.
  Value param(std::int64_t index, const Type&);
  // Result 0 of the node for an expression; the node is created and typed on first use.
  Value intern(const Op&, std::span<const Value> operands, Attrs attrs);
  // The same when the result types are known to be right (copies of typed nodes): skips infer.
  Value intern_typed(const Op&, std::span<const Value> operands, const Attrs& attrs,
                     std::span<const Type> results);

  std::size_t node_count() const { return nodes_.size(); }
  // Access by node id, for side tables; other code reads values through Value.
  const Op& op(NodeId n) const { return *nodes_[n].op; }
  std::span<const Value> operands(NodeId n) const {
    return {operands_.data() + nodes_[n].first_operand, nodes_[n].operand_count};
  }
  const Attrs& attrs(NodeId n) const { return attr_sets_[nodes_[n].attrs]; }
  std::size_t result_count(NodeId n) const { return nodes_[n].result_count; }
  const Type& type(NodeId n, std::size_t i = 0) const {
    return types_[result_types_[nodes_[n].first_type + i]];
  }
  std::vector<Type> result_types(NodeId n) const;

  // Sets the origins of nodes made from now on; an existing node gets the union. Returns the
  // previous setting. Use OriginScope.
  std::uint32_t set_origins(std::uint32_t list);
  // `rule` is the rewrite rule that makes the nodes; its characters must outlive the graph.
  std::uint32_t origin_list(std::vector<Origin>, std::string_view rule = {});
  std::uint32_t origins_id(NodeId n) const { return origins_of_[n]; }
  const std::vector<Origin>& origins(NodeId n) const { return origin_lists_[origins_of_[n]].list; }
  // Empty when no rule made the node.
  std::string_view rule(NodeId n) const { return origin_lists_[origins_of_[n]].rule; }

  // Whether the C++ line that calls an op becomes the origin of its node (and appears in errors).
  bool records_source() const { return records_source_; }
  void record_source(bool on) { records_source_ = on; }

  // Records that a must equal b at run time, unless proved. Throws UserError(message) if refuted.
  void require_equal(const Dim& a, const Dim& b, const std::string& message);
  const std::vector<DimCheck>& checks() const { return checks_; }
  void add_check(const DimCheck&);

 private:
  struct NodeData {
    const Op* op;
    std::uint32_t first_operand, first_type, attrs;
    std::uint32_t hash;
    std::uint16_t operand_count, result_count;
  };
  struct OriginList {
    std::vector<Origin> list;
    std::string_view rule;
    bool operator==(const OriginList&) const = default;
  };
  std::uint32_t intern_type(const Type&);
  std::uint32_t intern_attrs(Attrs, std::uint64_t hash);
  Value find(const Op&, std::span<const Value>, std::uint32_t attrs, std::uint32_t hash);
  Value add(const Op&, std::span<const Value>, std::uint32_t attrs, std::uint32_t hash,
            std::span<const Type>);
  void insert_slot(NodeId);
  void merge_origins(NodeId);

  std::vector<NodeData> nodes_;
  std::vector<Value> operands_;
  std::vector<std::uint32_t> result_types_;
  std::deque<Type> types_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> type_ids_;
  std::deque<Attrs> attr_sets_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> attr_ids_;
  std::vector<std::uint32_t> slots_;  // open addressing over node id + 1
  std::vector<std::uint32_t> origins_of_;
  std::vector<OriginList> origin_lists_;
  std::unordered_map<std::uint64_t, std::uint32_t> merged_origins_;
  std::uint32_t origins_ = 0;
  bool records_source_ = false;
  std::vector<DimCheck> checks_;
};

inline const Op& Value::op() const { return graph().op(node_); }
inline const Type& Value::type() const { return graph().type(node_, index_); }
inline const Attrs& Value::attrs() const { return graph().attrs(node_); }
inline std::size_t Value::operand_count() const { return graph().operands(node_).size(); }
inline std::size_t Value::result_count() const { return graph().result_count(node_); }

// Nodes made while it lives get the given origins.
class OriginScope {
 public:
  OriginScope(Graph& g, std::uint32_t list) : graph_(g), before_(g.set_origins(list)) {}
  OriginScope(Graph& g, Origin origin) : OriginScope(g, g.origin_list({std::move(origin)})) {}
  ~OriginScope() { graph_.set_origins(before_); }
  OriginScope(const OriginScope&) = delete;

 private:
  Graph& graph_;
  std::uint32_t before_;
};

// A use of an operation whose node does not exist yet (infer, contents) or is being replaced
// (expand). Operands are values of `graph`.
struct Call {
  const Op& op;
  std::span<const Value> operands;
  const Attrs& attrs;
  Graph& graph;
  std::span<const Type> results;  // filled for expand

  const Type& type(std::size_t i) const { return operands[i].type(); }
  const Shape& shape(std::size_t i) const { return operands[i].type().shape; }
};

// Result 0 of the node for this use of the operation. The caller's line becomes its origin in
// graphs that record their source.
Value apply(const Op&, std::span<const Value> operands, Attrs attrs,
            std::source_location = std::source_location::current());

Value constant(Graph&, const Array&);
// A number of rank 0, rounded to dtype.
Value scalar(Graph&, double, DType);
// A tensor of the given sizes that holds `contents`; a plain constant when all of them are numbers.
Value dims_value(Graph&, const Dims& contents, DType dtype, std::vector<std::int64_t> shape);
// Contents of an integer value as sizes: from ops::dims or a constant of at most 64 elements.
std::optional<Dims> contents_of(Value);

}  // namespace hone
