#include "import/onnx/unsupported.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "import/onnx/dtypes.h"
#include "import/onnx/file/sorted.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"
#include "import/onnx/source.h"

namespace hone::onnx {

namespace {

bool is_known(const Source& source, const Node& n, std::int64_t opset) {
  if (source.local_function(n)) return true;
  const std::string_view domain = normal_domain(n.domain);
  return (domain.empty() && n.op == "If") || find_import(domain, n.op, opset);
}

constexpr std::size_t most_advised = 1000;  // lines with a suggestion

std::string line(const Node& n, const std::string& path, std::int64_t opset, bool advise) {
  std::string_view domain = normal_domain(n.domain);
  std::string out = cat("node ", path, " '", node_name(n), "': ", n.op, " of ",
                        domain.empty() ? "ai.onnx" : domain, " opset ", opset);
  if (domain == "com.microsoft.nchwc")
    return out +
           "; its weights are laid out for the machine on which ONNX Runtime optimized the model; "
           "save it at level ORT_ENABLE_EXTENDED";
  if (find_import(domain, n.op, ImportEntry::newest_opset))
    return out + "; other opsets of it are supported";
  if (!advise) return out;
  const std::string_view near = nearest_import(n.op);
  return near.empty() ? out : cat(out, "; nearest supported: ", near);
}

// Recursion is bounded by the nesting of messages in the file.
void collect(const Source& source, const std::vector<Node>& nodes, const std::vector<Opset>& opsets,
             const std::string& path, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& n = nodes[i];
    std::int64_t opset = opset_of(opsets, n.domain);
    if (!is_known(source, n, opset))
      out.push_back(line(n, cat(path, place_of(n, i)), opset, out.size() < most_advised));
    for (const Attribute& a : n.attributes)
      if (a.graph)
        collect(source, a.graph->nodes, opsets, cat(path, place_of(n, i), ".", a.name, "."), out);
  }
}

using Producers = std::unordered_map<std::string_view, std::size_t>;

constexpr std::size_t most_told = 100;  // listed nodes per cycle

// Nodes on a path from node `from` back to node `to` along operands, both in `component`.
std::string way_back(const std::vector<Node>& nodes, const Producers& makes,
                     const std::vector<std::size_t>& component, std::size_t from, std::size_t to) {
  std::unordered_map<std::size_t, std::size_t> came_from = {{from, from}};
  std::deque<std::size_t> open = {from};
  while (!open.empty() && !came_from.contains(to)) {
    std::size_t at = open.front();
    open.pop_front();
    for (std::string_view name : nodes[at].inputs)
      if (auto it = makes.find(name); it != makes.end() && component[it->second] == component[from])
        if (came_from.emplace(it->second, at).second) open.push_back(it->second);
  }
  const auto place = [&](std::size_t i) { return place_of(nodes[i], i); };
  std::string text = cat("node ", place(to));
  std::size_t told = 0;
  for (std::size_t at = to; at != from;) {
    at = came_from.at(at);
    if (++told <= most_told) text += cat(" -> node ", place(at));
  }
  return cat(text, told > most_told ? " -> ..." : "", " -> node ", place(to));
}

// Strongly connected components of the nodes along operands, by Tarjan's algorithm without
// recursion: a node's number is that of its component's first node on the stack.
class Components {
 public:
  Components(const std::vector<Node>& nodes, const Producers& makes)
      : nodes_(nodes),
        makes_(makes),
        order_(nodes.size(), none),
        low_(nodes.size(), none),
        component_(nodes.size(), none) {
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (order_[n] == none) visit(n);
  }
  std::vector<std::size_t> take() { return std::move(component_); }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  struct Visit {
    std::size_t node, operand = 0;
  };

  void enter(std::size_t n) {
    order_[n] = low_[n] = next_++;
    stack_.push_back(n);
    open_.push_back({n});
  }

  void visit(std::size_t first) {
    enter(first);
    while (!open_.empty()) {
      Visit& v = open_.back();
      const std::size_t n = v.node;
      if (v.operand == nodes_[n].inputs.size()) {
        leave(n);
        continue;
      }
      auto it = makes_.find(nodes_[n].inputs[v.operand++]);
      if (it == makes_.end()) continue;
      if (order_[it->second] == none)
        enter(it->second);
      else if (component_[it->second] == none)
        low_[n] = std::min(low_[n], order_[it->second]);
    }
  }

  void leave(std::size_t n) {
    open_.pop_back();
    if (!open_.empty()) low_[open_.back().node] = std::min(low_[open_.back().node], low_[n]);
    if (low_[n] != order_[n]) return;
    std::size_t member;
    do {
      member = stack_.back();
      stack_.pop_back();
      component_[member] = n;
    } while (member != n);
  }

  const std::vector<Node>& nodes_;
  const Producers& makes_;
  std::vector<std::size_t> order_, low_, component_, stack_;
  std::vector<Visit> open_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<std::string> unsupported_nodes(const Source& source) {
  std::vector<std::string> out;
  collect(source, source.model.graph->nodes, source.model.opsets, "", out);
  for (const LocalFunction& f : source.model.functions)
    collect(source, f.nodes, f.opsets, cat("of function '", f.name, "', "), out);
  return out;
}

const Undefined::List& Undefined::list(const std::vector<Node>& nodes) {
  auto [it, is_new] = lists_.try_emplace(&nodes);
  List& list = it->second;
  if (!is_new) return list;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view made : nodes[i].outputs)
      if (!made.empty()) list.makes.emplace(made, i);
  list.component = Components(nodes, list.makes).take();
  return list;
}

std::string Undefined::why(const std::vector<Node>& nodes, std::size_t index,
                           std::string_view name) {
  const List& known = list(nodes);
  auto it = known.makes.find(name);
  if (it == known.makes.end())
    return "is not computed by any node and is not an input or initializer";
  const std::size_t maker = it->second, component = known.component[index];
  if (maker == index) return "is the node's own result: the graph has a cycle";
  if (known.component[maker] != component)
    return cat("is computed by node ", place_of(nodes[maker], maker),
               ", which depends on a cycle of nodes");
  if (!lists_.at(&nodes).told.insert(component).second) return "is part of the cycle above";
  return cat("is part of a cycle: ", way_back(nodes, known.makes, known.component, maker, index));
}

// ==== dtypes

namespace {

bool is_unsigned(DType t) { return is_integer(t) && !is_signed(t); }
bool is_bool(DType t) { return t == DType::b1; }
bool has_sign(DType t) { return is_signed(t) || is_float(t); }
bool is_byte(DType t) { return t == DType::u8 || t == DType::i8; }

constexpr std::int64_t most_opset = std::numeric_limits<std::int64_t>::max();

struct Rule {
  std::string_view op;
  bool (*allows)(DType);
  std::string_view expected;
  std::size_t operands = 1;         // the rule is for this many, from the first
  std::int64_t until = most_opset;  // the first opset that allows all
};
constexpr std::string_view reals = "f16, bf16, f32 or f64";
constexpr Rule rules[] = {
    {"And", is_bool, "bools", 2},
    {"Atan", is_float, reals},
    {"Bernoulli", is_float, reals},
    {"BitShift", is_unsigned, "unsigned integers", 2, 28},
    {"BitwiseAnd", is_integer, "integers", 2},
    {"BitwiseNot", is_integer, "integers"},
    {"BitwiseOr", is_integer, "integers", 2},
    {"BitwiseXor", is_integer, "integers", 2},
    {"Det", is_float, reals},
    {"HardSigmoid", is_float, reals},
    {"HardSwish", is_float, reals},
    {"MatMulInteger", is_byte, "i8 or u8", 2},
    {"Multinomial", is_float, reals},
    {"Neg", has_sign, "signed numbers"},
    {"Not", is_bool, "bools"},
    {"Or", is_bool, "bools", 2},
    {"Softsign", is_float, reals},
    {"ThresholdedRelu", is_float, reals},
    {"Xor", is_bool, "bools", 2},
};
static_assert(std::ranges::is_sorted(rules, {}, &Rule::op));

// By second letter, a bit for each length of an operator with a rule. Few others share both.
constexpr auto lengths = [] {
  std::array<std::uint32_t, 256> of{};
  for (const Rule& r : rules) of[static_cast<unsigned char>(r.op[1])] |= 1u << r.op.size();
  return of;
}();

bool may_have_rule(std::string_view op) {
  return op.size() > 1 && op.size() < 32 &&
         (lengths[static_cast<unsigned char>(op[1])] >> op.size() & 1) != 0;
}

}  // namespace

void check_dtypes(const Node& n, std::int64_t opset, const Values& operands) {
  if (!may_have_rule(n.op) || !normal_domain(n.domain).empty()) return;
  const auto rule = std::ranges::lower_bound(rules, std::string_view(n.op), {}, &Rule::op);
  if (rule == std::end(rules) || rule->op != n.op || opset >= rule->until) return;
  for (std::size_t i = 0; i < std::min(operands.size(), rule->operands); ++i)
    if (operands[i] && operands[i].type().is_tensor() && !rule->allows(operands[i].dtype()))
      throw UserError("input ", i, " (value '", n.inputs[i], "') is ", operands[i].type(),
                      ", expected ", rule->expected, "; ONNX does not define ", n.op,
                      " of version ", opset, " for others: cast the input");
}

}  // namespace hone::onnx
