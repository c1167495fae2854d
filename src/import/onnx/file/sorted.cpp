#include "import/onnx/file/sorted.h"

#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

namespace hone::onnx {

namespace {

using Indices = std::vector<std::size_t>;

}  // namespace

void for_each_read(const Node& n, const std::function<void(std::string_view)>& read) {
  for (std::string_view name : n.inputs) read(name);
  for (const Attribute& a : n.attributes) {
    if (!a.graph) continue;
    for (const Node& inner : a.graph->nodes) for_each_read(inner, read);
    for (const ValueInfo& v : a.graph->outputs) read(v.name);
  }
}

namespace {

// For each node, the nodes that read its results. Empty if the nodes are already sorted.
std::vector<Indices> readers(const std::vector<Node>& nodes) {
  std::unordered_map<std::string_view, std::size_t> makes;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view name : nodes[i].outputs)
      if (!name.empty()) makes.emplace(name, i);
  std::vector<Indices> out(nodes.size());
  bool is_sorted = true;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for_each_read(nodes[i], [&](std::string_view name) {
      const auto maker = makes.find(name);
      if (maker == makes.end() || maker->second == i) return;
      out[maker->second].push_back(i);
      is_sorted = is_sorted && maker->second < i;
    });
  if (is_sorted) out.clear();
  return out;
}

bool sort(std::vector<Node>& nodes) {
  const std::vector<Indices> read_by = readers(nodes);
  if (read_by.empty()) return false;
  std::vector<std::size_t> missing(nodes.size(), 0);
  for (const Indices& list : read_by)
    for (const std::size_t i : list) ++missing[i];
  std::priority_queue<std::size_t, Indices, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  std::vector<bool> is_done(nodes.size(), false);
  const auto take = [&](std::size_t i) {
    is_done[i] = true;
    sorted.push_back(std::move(nodes[i]));
    sorted.back().place = static_cast<std::int64_t>(i);
  };
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    take(next);
    for (const std::size_t i : read_by[next])
      if (--missing[i] == 0) ready.push(i);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!is_done[i]) take(i);
  nodes = std::move(sorted);
  return true;
}

// Recursion is bounded by the nesting of messages in the file.
bool sort_all(std::vector<Node>& nodes) {
  bool moved = sort(nodes);
  for (Node& n : nodes)
    for (Attribute& a : n.attributes)
      if (a.graph) moved = sort_all(a.graph->nodes) || moved;
  return moved;
}

}  // namespace

bool sort_nodes(Model& model) {
  model.is_sorted = true;
  bool moved = model.graph && sort_all(model.graph->nodes);
  for (LocalFunction& f : model.functions) moved = sort_all(f.nodes) || moved;
  return moved;
}

}  // namespace hone::onnx
