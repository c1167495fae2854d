#include "import/onnx/structure.h"

#include <unordered_set>

#include "base/error.h"
#include "import/onnx/file/sorted.h"
#include "import/onnx/unsupported.h"
#include "import/onnx/walk.h"

namespace hone::onnx {

namespace {

using Names = std::unordered_set<std::string_view>;

// Finding a cycle takes a walk over the graph; in a hostile file the remaining errors get the short
// form.
constexpr std::size_t most_explained = 20;

struct Scope {
  const Scope* outer = nullptr;
  Names names = {};

  bool knows(std::string_view name) const {
    for (const Scope* s = this; s; s = s->outer)
      if (s->names.contains(name)) return true;
    return false;
  }
};

class Structure {
 public:
  std::vector<StructureError> errors;
  std::vector<std::string> warnings;

  // Recursion is bounded by the nesting of messages in the file. `where` prefixes node lines.
  void graph(const Graph& g, const Scope* outer, const std::string& where) {
    Scope scope{outer};
    Names initialized;
    for (std::string_view name : initializer_names(g))
      if (!initialized.insert(name).second) twice(where, cat("initializer '", name, "'"));
    for (const ValueInfo& v : g.inputs)
      if (!v.name.empty() && !scope.names.insert(v.name).second)
        twice(where, cat("input '", v.name, "'"));
    scope.names.insert(initialized.begin(), initialized.end());
    nodes(g.nodes, scope, where);
    if (!outer && g.outputs.empty())
      errors.push_back({where, "the graph has no outputs, so the model computes nothing"});
    for (const ValueInfo& v : g.outputs)
      if (!scope.knows(v.name))
        errors.push_back({where, cat("graph output '", v.name, "' is not computed by any node")});
  }

  void function(const LocalFunction& f) {
    Scope scope;
    scope.names.insert(f.inputs.begin(), f.inputs.end());
    const std::string where = cat("function '", f.name, "': ");
    if (f.outputs.empty())
      errors.push_back({where, "it has no outputs, so a call of it computes nothing"});
    nodes(f.nodes, scope, where);
    for (std::string_view name : f.outputs)
      if (!scope.knows(name))
        errors.push_back({where, cat("graph output '", name, "' is not computed by any node")});
  }

 private:
  void nodes(const std::vector<Node>& nodes, Scope& scope, const std::string& where) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& n = nodes[i];
      const std::string at =
          cat(Origin{place_of(n, i), std::string(node_name(n)), std::string(n.op)});
      for (std::string_view name : n.inputs)
        if (!name.empty() && !scope.knows(name)) undefined(nodes, i, name, where, at);
      for (const Attribute& a : n.attributes)
        if (a.graph) graph(*a.graph, &scope, cat(where, at, ": ", a.name, ": "));
      for (std::string_view name : n.outputs) {
        if (name.empty()) continue;
        if (scope.outer && scope.outer->knows(name))
          warnings.push_back(
              cat(where, at, ": value '", name, "' hides the outer value of this name"));
        if (!scope.names.insert(name).second)
          errors.push_back({where, cat(at, ": value '", name,
                                       "' is defined twice in one graph; names must be unique")});
      }
    }
  }

  void twice(const std::string& where, const std::string& what) {
    errors.push_back({where, what + " appears twice; names must be unique"});
  }

  void undefined(const std::vector<Node>& nodes, std::size_t index, std::string_view name,
                 const std::string& where, const std::string& at) {
    const bool explained = explained_++ < most_explained;
    errors.push_back({where, cat(at, ": input '", name, "' ",
                                 explained ? undefined_.why(nodes, index, name)
                                           : "has no value before this node")});
  }

  std::size_t explained_ = 0;
  Undefined undefined_;
};

// Names that are read anywhere, including outer names read by bodies.
void add_used(const std::vector<Node>& nodes, Names& used);
void add_used(const Graph& g, Names& used) {
  for (const ValueInfo& v : g.outputs) used.insert(v.name);
  add_used(g.nodes, used);
}
void add_used(const std::vector<Node>& nodes, Names& used) {
  for (const Node& n : nodes) {
    used.insert(n.inputs.begin(), n.inputs.end());
    for (const Attribute& a : n.attributes)
      if (a.graph) add_used(*a.graph, used);
  }
}

void add_calls(const std::vector<Node>& nodes, std::unordered_set<std::string>& calls) {
  for (const Node& n : nodes) {
    calls.insert(cat(normal_domain(n.domain), ":", n.op, ":", n.overload));
    for (const Attribute& a : n.attributes)
      if (a.graph) add_calls(a.graph->nodes, calls);
  }
}

// "7 initializers are not used: a, b, c, ..."
void add_unused(std::vector<std::string>& out, std::string_view what,
                const std::vector<std::string_view>& names) {
  constexpr std::size_t most = 5;
  if (names.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    list += cat(i ? ", " : "", "'", names[i], "'");
  out.push_back(cat(names.size(), " ", what, names.size() == 1 ? " is" : "s are",
                    " not used: ", list, names.size() > most ? ", ..." : ""));
}

}  // namespace

std::vector<StructureError> structure_errors(const Model& model) {
  Structure s;
  if (model.graph) s.graph(*model.graph, nullptr, "");
  for (const LocalFunction& f : model.functions) s.function(f);
  return std::move(s.errors);
}

std::vector<std::string> structure_warnings(const Model& model) {
  if (!model.graph) return {};
  Structure s;
  s.graph(*model.graph, nullptr, "");
  std::vector<std::string> out = std::move(s.warnings);
  const Graph& g = *model.graph;
  Names used;
  add_used(g, used);
  std::vector<std::string_view> inputs, initializers, nodes;
  Names initialized;
  for (std::string_view name : initializer_names(g)) {
    initialized.insert(name);
    if (!used.contains(name)) initializers.push_back(name);
  }
  for (const ValueInfo& v : g.inputs)
    if (!used.contains(v.name) && !initialized.contains(v.name)) inputs.push_back(v.name);
  for (const Node& n : g.nodes) {
    bool is_used = n.outputs.empty();
    for (std::string_view name : n.outputs) is_used = is_used || used.contains(name);
    if (!is_used) nodes.push_back(node_name(n));
  }
  add_unused(out, "input", inputs);
  add_unused(out, "initializer", initializers);
  add_unused(out, "node", nodes);
  std::unordered_set<std::string> calls;
  add_calls(g.nodes, calls);
  std::vector<std::string_view> functions;
  for (const LocalFunction& f : model.functions) add_calls(f.nodes, calls);
  for (const LocalFunction& f : model.functions)
    if (!calls.contains(cat(normal_domain(f.domain), ":", f.name, ":", f.overload)))
      functions.push_back(f.name);
  add_unused(out, "function", functions);
  return out;
}

}  // namespace hone::onnx
