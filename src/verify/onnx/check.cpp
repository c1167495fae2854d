#include "verify/onnx/check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "import/onnx/source.h"

namespace hone::onnx {

namespace {

// Limits that keep a check fast compared with compiling: elements of one initializer, and of
// everything that is checked.
constexpr std::int64_t most_elements = 1 << 17, most_elements_in_all = 1 << 22;

// Equal for nodes that do the same on operands of the same sizes.
std::string kind_of(const Node& n, std::span<const Numbers* const> inputs) {
  std::string out(n.op);
  for (const Attribute& a : n.attributes) {
    out += cat(" ", a.name, "=", a.integer, ",", a.real, ",", a.text);
    for (std::int64_t i : a.integers) out += cat(" ", i);
    for (float r : a.reals) out += cat(" ", r);
    if (a.tensor) out += cat(" ", static_cast<const void*>(a.tensor.get()));
    if (a.graph) out += cat(" ", static_cast<const void*>(a.graph.get()));
  }
  for (const Numbers* x : inputs) {
    out += x ? cat(" ", x->dtype) : " -";
    if (!x) continue;
    for (std::int64_t d : x->dims) out += cat(",", d);
    if (!is_float(x->dtype) && x->values.size() <= 64)
      for (double v : x->values) out += cat(":", v);
  }
  return out;
}

double tolerance(DType t) {
  return t == DType::f16 ? 2e-3 : t == DType::bf16 ? 2e-2 : is_float(t) ? 1e-5 : 0;
}

std::string text_of(const Numbers& n) {
  std::string out = cat(n.dtype, "[");
  for (std::size_t i = 0; i < n.dims.size(); ++i) out += cat(i == 0 ? "" : ",", n.dims[i]);
  return out + "]";
}

// For stored numbers: also compares the sign of zeros. Empty: they agree.
std::string difference_of_zeros(const Numbers& got, const Numbers& expected) {
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    if (expected.values[i] == 0 && std::signbit(got.values[i]) != std::signbit(expected.values[i]))
      return cat("is ", got.values[i], " at element ", i, ", expected ", expected.values[i]);
  return "";
}

// Empty: they agree.
std::string difference(const Numbers& got, const Numbers& expected) {
  if (got.dtype != expected.dtype || got.dims != expected.dims)
    return cat("is ", text_of(got), ", expected ", text_of(expected));
  double most = 0;
  for (double x : expected.values)
    if (std::isfinite(x)) most = std::max(most, std::fabs(x));
  const double allowed = tolerance(got.dtype) * most;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double a = got.values[i], b = expected.values[i];
    // An integer that is divided by zero may be anything.
    if (a == b || (b != b && (a != a || !is_float(expected.dtype))) || std::fabs(a - b) <= allowed)
      continue;
    return cat("is ", a, " at element ", i, ", expected ", b);
  }
  return "";
}

void add_nodes(const std::vector<Node>& nodes, std::vector<const Node*>& out) {
  for (const Node& n : nodes) {
    out.push_back(&n);
    for (const Attribute& a : n.attributes)
      if (a.graph) add_nodes(a.graph->nodes, out);
  }
}

class Check {
 public:
  Check(const Model& model, const NumbersByName& values, std::int64_t most_of_node)
      : model_(model), values_(values), most_of_node_(most_of_node) {}

  ReadingCheck run() {
    const Graph& g = *model_.graph;
    for (const Tensor& t : g.initializers) initializer(t);
    for (std::size_t i = 0; i < g.nodes.size() && out_.wrong.empty(); ++i) node(g.nodes[i], i);
    return out_;
  }

 private:
  void initializer(const Tensor& t) {
    const Numbers* got = values_(t.name);
    if (!got || !out_.wrong.empty() || left_ < got->count()) return;
    const std::optional<Numbers> expected = numbers_of(t);
    if (!expected) return;
    left_ -= got->count();
    std::string d = difference(*got, *expected);
    if (d.empty()) d = difference_of_zeros(*got, *expected);
    if (!d.empty()) out_.wrong = cat("initializer '", t.name, "' ", d);
  }

  void node(const Node& n, std::size_t index) {
    if (!is_judged(model_, n)) return;
    std::vector<const Numbers*> inputs;
    std::int64_t elements = 0;
    for (std::string_view name : n.inputs) {
      inputs.push_back(name.empty() ? nullptr : values_(name));
      if (!name.empty() && !inputs.back()) return;
      if (inputs.back()) elements += inputs.back()->count();
    }
    for (std::string_view name : n.outputs)
      if (const Numbers* y = values_(name)) elements += y->count();
    if (elements > std::min(most_of_node_, left_)) return;
    if (!seen_.insert(kind_of(n, inputs)).second) {
      out_.judged.insert(id_of(n));
      return;
    }
    const auto meant = meaning_of(n, opset_of(model_.opsets, n.domain), inputs, values_);
    if (!meant) return;
    left_ -= elements;
    out_.judged.insert(id_of(n));
    for (std::size_t i = 0; i < std::min(meant->size(), n.outputs.size()); ++i) {
      const Numbers* got = n.outputs[i].empty() ? nullptr : values_(n.outputs[i]);
      if (!got) continue;
      const std::string d = difference(*got, (*meant)[i]);
      if (d.empty()) continue;
      std::string given;
      for (const Numbers* x : inputs)
        given += cat(given.empty() ? "" : ", ", x ? text_of(*x) : "-");
      out_.wrong = cat("node ", index, " '", node_name(n), "' (", n.op, ") of ", given,
                       ": result '", n.outputs[i], "' ", d);
      return;
    }
  }

  const Model& model_;
  const NumbersByName& values_;
  std::int64_t most_of_node_;
  ReadingCheck out_;
  std::set<std::string> seen_;
  std::int64_t left_ = most_elements_in_all;
};

}  // namespace

NodeId id_of(const Node& n) {
  for (std::string_view name : n.outputs)
    if (!name.empty()) return name.data();
  return nullptr;
}

bool is_judged(const Model& model, const Node& n) {
  return has_meaning(n) && std::ranges::none_of(model.functions, [&](const LocalFunction& f) {
           return f.name == n.op && normal_domain(f.domain) == normal_domain(n.domain);
         });
}

std::vector<const Node*> all_nodes(const Model& model) {
  std::vector<const Node*> out;
  if (model.graph) add_nodes(model.graph->nodes, out);
  for (const LocalFunction& f : model.functions) add_nodes(f.nodes, out);
  return out;
}

std::string check_initializers(const Model& model,
                               const std::function<std::optional<Numbers>(const Tensor&)>& values) {
  std::int64_t left = most_elements_in_all;
  for (const Tensor& t : model.graph->initializers) {
    std::int64_t count = 1;
    for (std::int64_t d : t.dims) count *= d;
    if (count > std::min(most_elements, left)) continue;
    const std::optional<Numbers> expected = numbers_of(t);
    if (!expected) continue;
    left -= count;
    const std::optional<Numbers> got = values(t);
    if (!got) continue;
    std::string d = difference(*got, *expected);
    if (d.empty()) d = difference_of_zeros(*got, *expected);
    if (!d.empty()) return cat("initializer '", t.name, "' ", d);
  }
  return "";
}

std::vector<std::string> names_to_check(const Model& model) {
  if (!model.graph) return {};
  std::set<std::string_view> defined;
  for (const ValueInfo& v : model.graph->inputs) defined.insert(v.name);
  for (std::string_view name : initializer_names(*model.graph)) defined.insert(name);
  for (const Node& n : model.graph->nodes) defined.insert(n.outputs.begin(), n.outputs.end());
  std::set<std::string> names;
  for (const Node& n : model.graph->nodes) {
    if (!is_judged(model, n)) continue;
    for (const FewNames* list : {&n.inputs, &n.outputs})
      for (std::string_view name : *list)
        if (!name.empty()) names.emplace(name);
    // Values of this graph that the node's subgraphs use.
    std::vector<const Node*> inner;
    for (const Attribute& a : n.attributes)
      if (a.graph) add_nodes(a.graph->nodes, inner);
    for (const Node* i : inner)
      for (std::string_view name : i->inputs)
        if (defined.contains(name) && !name.empty()) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

ReadingCheck check_reading(const Model& model, const NumbersByName& values,
                           std::int64_t most_of_node) {
  return model.graph ? Check(model, values, most_of_node).run() : ReadingCheck();
}

}  // namespace hone::onnx
