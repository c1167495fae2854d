#include "import/onnx_check.h"

#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "import/onnx_context.h"
#include "import/onnx_walk.h"

namespace hone::onnx {

namespace {

bool is_known(const Source& source, const Node& n, std::int64_t opset) {
  if (source.local_function(n)) return true;
  const std::string_view domain = normal_domain(n.domain);
  return (domain.empty() && n.op == "If") || find_import(domain, n.op, opset);
}

std::string line(const Node& n, const std::string& path, std::int64_t opset) {
  std::string_view domain = normal_domain(n.domain);
  std::string out = cat("node ", path, " '", node_name(n), "': ", n.op, " of ",
                        domain.empty() ? "ai.onnx" : domain, " opset ", opset);
  if (find_import(domain, n.op, ImportEntry::newest_opset))
    return out + "; another opset of it is supported";
  return cat(out, "; nearest supported: ", nearest_import(n.op));
}

// Recursion is bounded by how deep messages nest in the file.
void collect(const Source& source, const std::vector<Node>& nodes, const std::vector<Opset>& opsets,
             const std::string& path, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& n = nodes[i];
    std::int64_t opset = opset_of(opsets, n.domain);
    if (!is_known(source, n, opset)) out.push_back(line(n, cat(path, i), opset));
    for (const Attribute& a : n.attributes)
      if (a.graph) collect(source, a.graph->nodes, opsets, cat(path, i, ".", a.name, "."), out);
  }
}

using Producers = std::unordered_map<std::string_view, std::size_t>;

// Names on a way from node `from` back to node `to` along operands, or nothing.
std::string way_back(const std::vector<Node>& nodes, const Producers& makes, std::size_t from,
                     std::size_t to) {
  std::unordered_map<std::size_t, std::size_t> came_from = {{from, from}};
  std::deque<std::size_t> open = {from};
  while (!open.empty() && !came_from.contains(to)) {
    std::size_t at = open.front();
    open.pop_front();
    for (std::string_view name : nodes[at].inputs)
      if (auto it = makes.find(name); it != makes.end())
        if (came_from.emplace(it->second, at).second) open.push_back(it->second);
  }
  if (!came_from.contains(to)) return {};
  std::string text = cat("node ", to);
  for (std::size_t at = to; at != from;) {
    at = came_from.at(at);
    text += cat(" -> node ", at);
  }
  return cat(text, " -> node ", to);
}

}  // namespace

std::vector<std::string> unsupported_nodes(const Source& source) {
  std::vector<std::string> out;
  collect(source, source.model.graph->nodes, source.model.opsets, "", out);
  for (const LocalFunction& f : source.model.functions)
    collect(source, f.nodes, f.opsets, cat("of function '", f.name, "', "), out);
  return out;
}

std::string why_undefined(const std::vector<Node>& nodes, std::size_t index,
                          std::string_view name) {
  Producers makes;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view made : nodes[i].outputs)
      if (!made.empty()) makes.emplace(made, i);
  auto it = makes.find(name);
  if (it == makes.end()) return "is not computed by any node, and is no input or initializer";
  if (it->second == index) return "is the node's own result: the graph has a cycle";
  std::string cycle = way_back(nodes, makes, it->second, index);
  if (!cycle.empty()) return cat("lies on a cycle: ", cycle);
  return cat("is computed only later, by node ", it->second, "; nodes must be in order");
}

}  // namespace hone::onnx
