#include "verify/onnx/check.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "import/onnx/source.h"
#include "verify/onnx/meaning.h"
#include "verify/onnx/open.h"

namespace hone::onnx {

namespace {

// Limits that keep a check fast compared with compiling: elements of one initializer, and of
// everything that is checked.
constexpr std::int64_t most_elements = 1 << 17, most_elements_in_all = 1 << 22;
// Elements of a node that is compared though an equal one was.
constexpr std::int64_t most_of_repeat = 1 << 12;

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

// Beyond its dtype a number may be infinite.
bool is_beyond(const Numbers& n, double x) {
  return is_float(n.dtype) && std::fabs(x) > largest_number(n.dtype);
}

// Integers that are computed from floats are as precise as f32.
double allowed_in_large(const Numbers& n) {
  constexpr double few = 0x1p23, precision = 0x1p-22;
  double most = 0;
  for (std::size_t i = 0; i < n.values.size(); ++i)
    if (is_integer(n.dtype) && !n.is_open(i)) most = std::max(most, std::fabs(n.values[i]));
  return most > few ? most * precision : 0;
}

// Empty: they agree. Counts the numbers that were compared.
std::string difference(const Numbers& got, const Numbers& expected, std::int64_t& compared,
                       bool is_computed) {
  if (got.dtype != expected.dtype || got.dims != expected.dims)
    return cat("is ", text_of(got), ", expected ", text_of(expected));
  const double allowed = is_computed
                             ? std::max(allowed_difference(expected), allowed_in_large(expected))
                             : allowed_difference(expected);
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (expected.is_open(i)) continue;
    const double a = got.values[i], b = expected.values[i];
    compared += b == b;
    if (a == b || (b != b && a != a) || std::fabs(a - b) <= allowed || is_beyond(expected, b))
      continue;
    return cat("is ", a, " at element ", i, ", expected ", b);
  }
  return "";
}

std::string difference(const Numbers& got, const Numbers& expected) {
  std::int64_t compared = 0;
  return difference(got, expected, compared, false);
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
    const auto [seen, is_new] = seen_.emplace(kind_of(n, inputs), false);
    // Equal nodes are read alike, but each has its own operands: compared where that is cheap.
    const bool is_cheap = elements <= most_of_repeat && elements <= repeats_left_;
    if (!is_new && !is_cheap) {
      if (seen->second) out_.judged.insert(id_of(n));
      return;
    }
    if (!is_new) repeats_left_ -= elements;
    const std::int64_t opset = opset_of(model_.opsets, n.domain);
    auto meant = meaning_of(n, opset, inputs, values_);
    if (!meant) return;
    left_ -= elements;
    std::int64_t compared = 0;
    std::string wrong = wrong_result(n, *meant, compared);
    if (!wrong.empty()) {
      if (!is_exact(n)) leave_rounding_open(meaning_of, n, opset, inputs, values_, *meant);
      compared = 0;
      wrong = wrong_result(n, *meant, compared);
    }
    if (wrong.empty()) {
      const bool is_known = compared > 0 || is_empty(*meant);
      seen->second = seen->second || is_known;
      if (is_known) out_.judged.insert(id_of(n));
      return;
    }
    out_.judged.insert(id_of(n));
    std::string given;
    for (const Numbers* x : inputs) given += cat(given.empty() ? "" : ", ", x ? text_of(*x) : "-");
    out_.wrong = cat("node ", index, " '", node_name(n), "' (", n.op, ") of ", given, ": ", wrong);
  }

  static bool is_empty(const std::vector<Numbers>& results) {
    return std::ranges::all_of(results, [](const Numbers& n) { return n.values.empty(); });
  }

  // The first difference; empty: none.
  std::string wrong_result(const Node& n, const std::vector<Numbers>& meant,
                           std::int64_t& compared) const {
    for (std::size_t i = 0; i < std::min(meant.size(), n.outputs.size()); ++i) {
      const Numbers* got = n.outputs[i].empty() ? nullptr : values_(n.outputs[i]);
      if (!got) continue;
      const std::string d = difference(*got, meant[i], compared, !is_exact(n));
      if (!d.empty()) return cat("result '", n.outputs[i], "' ", d);
    }
    return "";
  }

  const Model& model_;
  const NumbersByName& values_;
  std::int64_t most_of_node_;
  ReadingCheck out_;
  std::unordered_map<std::string, bool> seen_;  // by kind: whether it could be judged
  std::int64_t left_ = most_elements_in_all, repeats_left_ = 16 * most_of_repeat;
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
