#include "import/import.h"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_map>

#include "import/onnx_context.h"

namespace hone {

namespace {

using onnx::Model;
using onnx::NodeContext;

// Thrown when a question about sizes has no answer among the assumptions: the caller reads the
// model again, once for each answer.
struct OpenQuestion {
  Dim condition;
};

std::string symbol_name(std::string_view text) {
  std::string out;
  for (char c : text) out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  return out;
}

// Walks one graph of the file (the model's, or a body's) into a Function.
class Walk {
 public:
  Walk(const Model& model, const ImportOptions& options, const std::vector<Assumption>& assumptions,
       Function& function, Walk* outer)
      : model_(model),
        options_(options),
        assumptions_(assumptions),
        function_(function),
        outer_(outer) {}

  void initializers(const onnx::Graph& g) {
    for (const onnx::Tensor& t : g.initializers) {
      Array a = onnx::to_array(t, model_.file, model_.directory);
      define(t.name, constant(graph(), a));
    }
  }

  void inputs(const onnx::Graph& g) {
    std::set<std::string_view> initialized;
    for (const onnx::Tensor& t : g.initializers) initialized.insert(t.name);
    for (const onnx::ValueInfo& v : g.inputs)
      if (!initialized.contains(v.name))  // IR version 3 lists initializers among the inputs
        define(v.name, function_.add_param(input_type(v), std::string(v.name)));
  }

  void nodes(const onnx::Graph& g) {
    for (std::size_t i = 0; i < g.nodes.size(); ++i) node(g.nodes[i], i);
  }

  // The value of a name here or in an enclosing graph; from an enclosing Function it becomes a
  // parameter of this one.
  Value find(std::string_view name) {
    if (auto it = values_.find(name); it != values_.end()) return it->second;
    if (!outer_) return {};
    Value v = outer_->find(name);
    if (!v || &v.graph() == &graph()) return v;
    Value here = capture(v, name);
    values_.emplace(name, here);
    return here;
  }

  // Outer values that became parameters, in the order of the parameters.
  const Values& captures() const { return captures_; }
  // Every value defined in this walk and in those inlined into it.
  const std::unordered_map<std::string_view, Value>& values() const { return values_; }

  Value output(const onnx::ValueInfo& v) {
    Value found = find(v.name);
    if (!found) throw UserError("graph output '", v.name, "' is not computed by any node");
    return found;
  }

 private:
  Graph& graph() const { return function_.graph(); }

  void define(std::string_view name, Value v) {
    if (name.empty()) return;
    if (!values_.emplace(name, v).second)
      throw UserError("value '", name, "' is defined twice in one graph");
  }

  // Constants and sizes are made again, so that what follows from shapes stays known inside.
  Value capture(Value v, std::string_view name) {
    if (v.op().kind == OpKind::leaf && !v.is(ops::param))
      return graph().intern(v.op(), {}, v.attrs());
    captures_.push_back(v);
    return function_.add_param(v.type(), std::string(name));
  }

  Dim input_size(const onnx::ValueInfo& v, std::size_t axis) {
    const onnx::Size& size = v.sizes[axis];
    if (size.number && *size.number >= 0 && size.symbol.empty()) return *size.number;
    std::string name = symbol_name(size.symbol.empty() ? cat(v.name, "_d", axis) : size.symbol);
    auto given = options_.dims.find(name);
    ImportOptions::Range range =
        given == options_.dims.end() ? ImportOptions::Range() : given->second;
    return range.low == range.high ? Dim(range.low) : Dim::symbol(name, range.low, range.high);
  }

  Type input_type(const onnx::ValueInfo& v) {
    std::optional<DType> dtype = onnx::dtype_of(v.data_type);
    if (!dtype)
      throw UserError("input '", v.name, "': ",
                      v.data_type ? onnx::data_type_name(v.data_type) + " tensors are"
                                  : std::string("inputs that are no tensors are"),
                      " not supported yet");
    if (!v.has_shape)
      throw UserError("input '", v.name,
                      "' has no shape, not even a rank; export the model with input shapes");
    Dims dims;
    for (std::size_t i = 0; i < v.sizes.size(); ++i) dims.push_back(input_size(v, i));
    return {*dtype, Shape(dims)};
  }

  void node(const onnx::Node& n, std::size_t index) {
    Origin origin{static_cast<std::int64_t>(index),
                  std::string(n.name.empty() && !n.outputs.empty() ? n.outputs[0] : n.name),
                  std::string(n.op)};
    OriginScope scope(graph(), origin);
    std::vector<Value> operands;
    for (std::string_view name : n.inputs) {
      Value v = name.empty() ? Value() : find(name);
      if (!name.empty() && !v)
        throw UserError(cat(origin), ": operand '", name, "' is not defined before it is used");
      operands.push_back(v);
    }
    while (!operands.empty() && !operands.back()) operands.pop_back();
    Values results;
    try {
      results = n.op == "If" ? choose(n, operands) : import(n, operands);
    } catch (const UserError& e) {
      throw UserError(e.what(), " (", origin, ")");
    }
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (i < results.size() && results[i])
        define(n.outputs[i], results[i]);
      else if (!n.outputs[i].empty())
        throw UserError(cat(origin), ": output ", i, " '", n.outputs[i], "' is not supported");
    }
  }

  Values import(const onnx::Node& n, std::vector<Value> operands) {
    NodeContext context(n, model_.opset(n.domain), graph(), std::move(operands), model_);
    return onnx::find_import(n.op)->import(context);
  }

  const onnx::Graph& branch(const onnx::Node& n, std::string_view name) {
    const onnx::Attribute* a = n.find(name);
    if (!a || a->graphs.empty()) throw UserError("If: ", name, " is missing");
    return *a->graphs[0];
  }

  Values choose(const onnx::Node& n, const Values& operands) {
    if (operands.size() != 1) throw UserError("If: has ", operands.size(), " operands, needs one");
    Value condition = operands[0];
    if (condition.dtype() != DType::b1)
      throw UserError("If: the condition is ", condition.type(), ", expected one bool");
    const onnx::Graph &then_graph = branch(n, "then_branch"),
                      &else_graph = branch(n, "else_branch");
    if (std::optional<Dims> known = contents_of(condition); known && known->size() == 1)
      return inlined(holds((*known)[0]) ? then_graph : else_graph);
    return by_data(reshape_to(condition, {}), then_graph, else_graph);
  }

  bool holds(const Dim& condition) {
    if (condition.is_number()) return condition.number() != 0;
    for (const Assumption& a : assumptions_)
      if (a.condition == condition) return a.holds;
    throw OpenQuestion{condition};
  }

  Values inlined(const onnx::Graph& g) {
    Walk inner(model_, options_, assumptions_, function_, this);
    inner.initializers(g);
    inner.nodes(g);
    Values results;
    for (const onnx::ValueInfo& v : g.outputs) results.push_back(inner.output(v));
    // Inner names are unique in valid models and serve `dump`; the first wins otherwise.
    for (const auto& [name, value] : inner.values()) values_.emplace(name, value);
    return results;
  }

  struct Branch {
    Function function;
    Values captures;
    std::string refused;  // why it cannot be typed
  };

  Branch body(const onnx::Graph& g) {
    Branch b;
    try {
      Walk inner(model_, options_, assumptions_, b.function, this);
      inner.initializers(g);
      inner.nodes(g);
      for (const onnx::ValueInfo& v : g.outputs)
        b.function.add_result(inner.output(v), std::string(v.name));
      b.captures = inner.captures();
    } catch (const UserError& e) {
      b = {};
      b.refused = e.what();
    }
    return b;
  }

  // A branch that no run with these sizes may take: it has the other one's types and a reason.
  static void refuse_like(Branch& b, const Branch& other) {
    for (const Function::Result& r : other.function.results())
      b.function.add_result(b.function.graph().intern(
                                ops::refuse, {},
                                {{"message", "these sizes do not fit this branch: " + b.refused},
                                 {"dtype", r.value.dtype()},
                                 {"shape", r.value.shape().dims}}),
                            r.name);
  }

  // The same body over the parameters of both branches.
  static Function over(const Function& f, std::size_t first, const Values& all) {
    Function out;
    for (const Value& v : all) out.add_param(v.type(), "");
    Values arguments;
    for (std::size_t i = 0; i < f.params().size(); ++i) arguments.push_back(out.param(first + i));
    for (const DimCheck& c : f.graph().checks()) out.graph().add_check(c);
    Copier copy(f, arguments, out);
    for (NodeId n : live_nodes(f))
      if (!copy.has(n)) copy.copy(n);
    for (const Function::Result& r : f.results()) out.add_result(copy(r.value), r.name);
    return out;
  }

  Values by_data(Value condition, const onnx::Graph& then_graph, const onnx::Graph& else_graph) {
    Branch a = body(then_graph), b = body(else_graph);
    if (!a.refused.empty() && !b.refused.empty())
      throw UserError("If: neither branch can be typed: ", a.refused, "; and: ", b.refused);
    if (!a.refused.empty()) refuse_like(a, b);
    if (!b.refused.empty()) refuse_like(b, a);
    Values operands = {condition}, all = a.captures;
    all.insert(all.end(), b.captures.begin(), b.captures.end());
    operands.insert(operands.end(), all.begin(), all.end());
    auto then_body = std::make_shared<const Function>(over(a.function, 0, all));
    auto else_body = std::make_shared<const Function>(over(b.function, a.captures.size(), all));
    Value made = ops::if_else(operands, {{"then", then_body}, {"else", else_body}});
    Values results;
    for (std::size_t i = 0; i < made.result_count(); ++i) results.push_back(made.result(i));
    return results;
  }

  const Model& model_;
  const ImportOptions& options_;
  const std::vector<Assumption>& assumptions_;
  Function& function_;
  Walk* outer_;
  std::unordered_map<std::string_view, Value> values_;
  Values captures_;
};

// Every node that has no import function, in bodies too.
void collect_unsupported(const Model& model, const onnx::Graph& g, const std::string& path,
                         std::vector<std::string>& out, std::size_t& nodes, int depth = 0) {
  if (depth > 64) throw UserError("graphs are nested deeper than 64");
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const onnx::Node& n = g.nodes[i];
    ++nodes;
    std::string_view domain = n.domain == "ai.onnx" ? "" : n.domain;
    bool known = domain.empty() && (n.op == "If" || onnx::find_import(n.op));
    if (!known)
      out.push_back(cat(
          "  node ", path, i, " '", n.name, "': ", domain.empty() ? "ai.onnx" : domain, ".", n.op,
          " (opset ", model.opset(n.domain), "); nearest supported: ", onnx::nearest_import(n.op)));
    for (const onnx::Attribute& a : n.attributes)
      for (const auto& body : a.graphs)
        collect_unsupported(model, *body, cat(path, i, "."), out, nodes, depth + 1);
  }
}

void check_supported(const std::filesystem::path& path, const Model& model,
                     const ImportOptions& options) {
  std::vector<std::string> found;
  std::size_t nodes = 0;
  collect_unsupported(model, model.graph, "", found, nodes);
  if (static_cast<std::int64_t>(nodes) > options.most_nodes)
    throw UserError(path.string(), ": has ", nodes, " nodes, the limit is ", options.most_nodes);
  if (model.graph.has_sparse_initializers)
    found.push_back("  sparse initializers; store them dense");
  if (model.opset("") > 27)
    found.push_back(cat("  opset ", model.opset(""), "; the newest that is known is 27"));
  if (found.empty()) return;
  std::string list;
  for (const std::string& line : found) list += "\n" + line;
  throw UserError(path.string(), ": ", found.size(), " parts are not supported:", list);
}

Function read_variant(const Model& model, const ImportOptions& options,
                      const std::vector<Assumption>& assumptions) {
  Function f;
  Walk walk(model, options, assumptions, f, nullptr);
  walk.inputs(model.graph);
  walk.initializers(model.graph);
  walk.nodes(model.graph);
  for (const onnx::ValueInfo& v : model.graph.outputs)
    f.add_result(walk.output(v), std::string(v.name));
  for (const std::string& name : options.dump) {
    Value v = walk.find(name);
    if (!v)
      throw UserError("dump: the model has no value '", name,
                      "' (values inside a data-driven If cannot be dumped)");
    f.add_result(v, name);
  }
  return f;
}

}  // namespace

Imported import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  Model model = onnx::read_model(path);
  check_supported(path, model, options);
  Imported out;
  out.name = path.stem() == "model" && path.has_parent_path()
                 ? path.parent_path().filename().string()
                 : path.stem().string();
  std::deque<std::vector<Assumption>> open = {{}};
  std::string failure;
  while (!open.empty()) {
    std::vector<Assumption> assumptions = std::move(open.front());
    open.pop_front();
    try {
      Function f = read_variant(model, options, assumptions);
      out.variants.push_back({std::move(assumptions), std::move(f)});
    } catch (const OpenQuestion& question) {
      if (open.size() + out.variants.size() + 2 > options.most_variants)
        throw UserError(path.string(), ": sizes decide ranks in more than ", options.most_variants,
                        " ways; give sizes with --dim or --shapes");
      for (bool holds : {true, false}) {
        open.push_back(assumptions);
        open.back().push_back({question.condition, holds});
      }
    } catch (const UserError& e) {
      // Under some assumptions the model may be ill-typed; it must not be under all.
      failure = e.what();
      if (assumptions.empty()) throw UserError(path.string(), ": ", failure);
      std::string when;
      for (const Assumption& a : assumptions)
        when += cat(when.empty() ? "" : " and ", a.condition, a.holds ? "" : " == 0");
      out.warnings.push_back(cat("no variant for sizes with ", when, ": ", failure));
    }
  }
  if (out.variants.empty()) throw UserError(path.string(), ": ", failure);
  return out;
}

}  // namespace hone
