// A Function: ordered parameters and ordered results over one graph. The unit that passes, groups
// and plans work on. Copies share the graph, and share the lists until one copy is changed.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"
#include "type/capacity.h"

namespace hone {

class Function {
 public:
  struct Param {
    Value value;
    std::string name;
    bool donated = false;  // its memory may be overwritten by a result
    // Set when the function is valid only for these contents of the parameter. Small.
    std::optional<Array> required = {};
    // Its memory has room for more along an axis, for all sizes that the types allow: a result that
    // is stored there may be longer.
    std::optional<Capacity> capacity = {};
  };
  struct Result {
    Value value;
    std::string name;
    // The donated parameter whose memory holds the result after a run, in every variant of a plan:
    // in place where that is proven, else by a copy at the end of the run. It has the type of the
    // result, except along the axis of its capacity. At most one result for each parameter.
    std::optional<std::uint32_t> stored_to = {};
  };

  Function() : graph_(std::make_shared<Graph>()), lists_(std::make_shared<Lists>()) {}

  Graph& graph() const { return *graph_; }
  const std::vector<Param>& params() const { return lists_->params; }
  const std::vector<Result>& results() const { return lists_->results; }
  Value param(std::size_t i) const;   // throws UserError when there are fewer
  Value result(std::size_t i) const;  // throws UserError when there are fewer

  Value add_param(const Type&, std::string name, bool donated = false,
                  std::optional<Array> required = {});
  // A parameter of this type that is otherwise as `like` of another function.
  Value add_param(const Type&, const Param& like);
  void add_result(Value, std::string name = "", std::optional<std::uint32_t> stored_to = {});
  // What `like` is in another function.
  void add_result(Value v, const Result& like) { add_result(v, like.name, like.stored_to); }

  // Marks a result as stored to a parameter of its type, which becomes donated. With a capacity,
  // the types may differ along its axis. Throws UserError when the types do not fit, or another
  // result is stored there.
  void store(std::size_t result, std::uint32_t param, std::optional<Capacity> = {});

  std::vector<Type> param_types() const;
  std::vector<Type> result_types() const;
  // Whether neither has changed since one was copied from the other.
  bool is_unchanged(const Function& other) const {
    return graph_ == other.graph_ && lists_ == other.lists_;
  }
  // Symbols of all parameter types, each once, in order of first appearance.
  Dims symbols() const;
  // Structure, types and attributes; not names, origins, donation or capacity.
  std::uint64_t hash() const;

 private:
  friend std::vector<NodeId> live_nodes(const Function&);
  // Live nodes; valid as long as the graph has this many nodes.
  struct Live {
    std::size_t node_count;
    std::vector<NodeId> nodes;
  };
  struct Lists {
    Lists() = default;
    Lists(const Lists& o) : params(o.params), results(o.results) {}
    ~Lists() { forget(); }
    void forget() { delete live.exchange(nullptr); }

    std::vector<Param> params;
    std::vector<Result> results;
    std::atomic<const Live*> live = nullptr;  // computed on first use
  };
  Lists& own();

  std::shared_ptr<Graph> graph_;
  std::shared_ptr<Lists> lists_;
};

// Equal except for names and origins.
bool same_structure(const Function&, const Function&);

// Node ids that the results need (and params and impure nodes), operands before users, in an order
// that depends on structure only. No recursion.
std::vector<NodeId> live_nodes(const Function&);
// All nodes that the roots depend on, operands before users. The roots are of one graph.
std::vector<NodeId> nodes_below(std::span<const Value> roots);

// Copies nodes of one graph into another, one at a time, operands first, and records the new value
// of each node; a pass overrides entries for the nodes it replaces.
class Copier {
 public:
  // Maps parameters of `from` to those of `to` (clone_params), or to the given values of `to`.
  Copier(const Function& from, Function& to);
  Copier(const Function& from, std::span<const Value> params, Function& to);
  Value operator()(Value v) const;  // the copy of a value whose node was copied or set
  void set(NodeId node, std::vector<Value> results);
  bool has(NodeId node) const;
  // Copies one node whose operands have been copied or set.
  Value copy(NodeId node);
  // While the scope lives, new nodes of the target get the origins of the source node.
  std::uint32_t origins_in_target(NodeId node) { return origins_in_target(node, false); }

 private:
  // A copy keeps the rule that made the node; a replacement made by a pass has no rule.
  std::uint32_t origins_in_target(NodeId node, bool with_rule);

  const Function& from_;
  Function& to_;
  std::vector<std::uint32_t> first_;  // per node: index into values_, or none
  std::vector<Value> values_;
  std::vector<std::array<std::uint32_t, 2>> origin_map_;  // without and with the rule
};

// The values without their names.
Values results_of(const Function&);
// A Function with the same parameters and checks and no results yet.
Function clone_params(const Function&);
// Calls `replace` on every live node in order; it returns the new results or an empty vector to
// keep the node. Results, names, donation, origins and checks are carried over.
Function transform(const Function&,
                   const std::function<std::vector<Value>(NodeId, Copier&, Function& to)>& replace);

// Adds the body of `inner` to `graph`, its parameters bound to `arguments`; returns its results.
Values inline_call(Graph& graph, const Function& inner, std::span<const Value> arguments);

// Text form; round-trips through parse. Constants of at most `inline_bytes` bytes are inlined,
// larger ones are written as value=@k where k indexes `large` (inlined too when `large` is null).
std::string print(const Function&, std::vector<Array>* large = nullptr,
                  std::size_t inline_bytes = 256);
// Throws UserError with the line number. `large` resolves @k.
Function parse(std::string_view text, OpLookup, std::span<const Array> large = {});

// Throws InternalError when an invariant does not hold: operand order, types as inferred, parameter
// indices, closed bodies. For use after every pass in debug builds and tests.
void verify(const Function&);

// "node 12 'conv1' (Conv)" of all origins, joined; for messages.
std::string origins_text(Value);

}  // namespace hone
