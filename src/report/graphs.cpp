#include "report/graphs.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "ops/ops.h"

namespace hone {

std::int64_t TextTable::number(const std::string& text) {
  auto [it, fresh] = numbers_.try_emplace(text, static_cast<std::int64_t>(numbers_.size()));
  if (fresh) texts_.push(text);
  return it->second;
}

namespace {

constexpr std::size_t most_text = 240;  // sizes can be long expressions

std::string shortened(std::string text) {
  if (text.size() <= most_text) return text;
  std::size_t end = most_text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // of UTF-8
  return text.substr(0, end) + " ...";
}

std::string real_text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string array_text(const Array& a) {
  std::string out = cat(a.type());
  constexpr std::int64_t most = 8;
  if (a.count() > most) return out;
  out += " =";
  for (std::int64_t i = 0; i < a.count(); ++i)
    out += cat(" ", is_float(a.dtype()) ? real_text(a.real(i)) : cat(a.integer(i)));
  return out;
}

std::string attr_text(const Attr& a) {
  struct Text {
    std::string operator()(std::int64_t n) const { return cat(n); }
    std::string operator()(double x) const { return real_text(x); }
    std::string operator()(const std::string& s) const { return "'" + s + "'"; }
    std::string operator()(DType t) const { return cat(t); }
    std::string operator()(const Dims& d) const { return cat(Shape(d)); }
    std::string operator()(const FunctionRef& f) const {
      return cat("{", live_nodes(*f).size(), " nodes}");
    }
    std::string operator()(const Array& a) const { return array_text(a); }
  };
  return std::visit(Text(), a);
}

// Attributes that distinguish nodes but are not shown: arrays, by identity.
std::string hidden_text(const Attrs& attrs) {
  std::string out;
  for (const Attrs::Entry& e : attrs.entries())
    if (const Array* a = std::get_if<Array>(&e.second)) out += cat(a->storage().hash());
  return out;
}

std::string origins_text(const std::vector<Origin>& origins) {
  std::string out;
  for (const Origin& o : origins) out += cat(out.empty() ? "" : "\n", o);
  return out;
}

// A function at one stage, numbered.
struct Listed {
  std::string path;
  std::vector<NodeId> order;
  std::vector<std::int64_t> nodes;  // into the table
  std::vector<std::string> keys;    // equal: may be the same node, seen after a pass
  std::vector<std::string> origins;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> inputs;
  std::vector<std::string_view> rules;
  std::vector<std::int64_t> results;
};

// Both are lists of lines.
bool share_origin(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return true;
  const std::string lines = cat("\n", b, "\n");
  for (std::size_t at = 0; at < a.size();) {
    const std::size_t end = std::min(a.find('\n', at), a.size());
    if (lines.find(cat("\n", a.substr(at, end - at), "\n")) != std::string::npos) return true;
    at = end + 1;
  }
  return false;
}

// Matches nodes of this stage with those of the previous one: equal with equal origins, or else
// equal with a common origin (merged nodes have several). Equal nodes are matched in order.
std::vector<std::int64_t> match(const Listed& before, const Listed& now) {
  std::vector<std::int64_t> out(now.nodes.size(), -1);
  std::vector<bool> taken(before.nodes.size(), false);
  for (bool whole : {true, false}) {
    std::unordered_map<std::string, std::vector<std::size_t>> open;
    for (std::size_t i = 0; i < before.nodes.size(); ++i)
      if (!taken[i]) open[before.keys[i]].push_back(i);
    for (std::size_t i = 0; i < now.nodes.size(); ++i) {
      auto it = out[i] < 0 ? open.find(now.keys[i]) : open.end();
      if (it == open.end()) continue;
      auto found = std::ranges::find_if(it->second, [&](std::size_t b) {
        if (taken[b]) return false;
        return whole ? before.origins[b] == now.origins[i]
                     : share_origin(before.origins[b], now.origins[i]);
      });
      if (found == it->second.end()) continue;
      out[i] = static_cast<std::int64_t>(*found);
      taken[*found] = true;
      it->second.erase(found);
    }
  }
  return out;
}

class GraphWriter {
 public:
  Json run(const VariantReport& v) {
    add_stage(-1, v.imported, nullptr);
    for (std::size_t i = 0; i < v.passes.size(); ++i)
      if (v.passes[i].changed && v.passes[i].after)
        add_stage(static_cast<std::int64_t>(i), *v.passes[i].after, &v.passes[i].rules);
    return Json::Object{{"texts", texts_.take()}, {"nodes", nodes_}, {"stages", stages_}};
  }

 private:
  std::int64_t node_number(const Graph& graph, NodeId n, const std::string& param) {
    std::string types, attrs = param;
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      types += cat(i ? ", " : "", graph.type(n, i));
    for (const Attrs::Entry& e : graph.attrs(n).entries())
      attrs += cat(attrs.empty() ? "" : ", ", e.first.text(), " ", attr_text(e.second));
    const std::array<std::int64_t, 4> key = {
        texts_.number(std::string(graph.op(n).name)), texts_.number(shortened(types)),
        texts_.number(shortened(attrs)), texts_.number(origins_text(graph.origins(n)))};
    auto [it, fresh] = numbers_.try_emplace(key, static_cast<std::int64_t>(numbers_.size()));
    if (fresh) nodes_.push(Json::Array(key.begin(), key.end()));
    return it->second;
  }

  Listed list(const std::string& path, const Function& f) {
    const Graph& graph = f.graph();
    Listed out;
    out.path = path;
    out.order = live_nodes(f);
    std::vector<std::int64_t> place(graph.node_count(), -1);
    for (NodeId n : out.order) {
      place[n] = static_cast<std::int64_t>(out.nodes.size());
      std::string param;
      if (&graph.op(n) == &ops::param)
        param =
            "'" + f.params()[static_cast<std::size_t>(graph.attrs(n).integer("index"))].name + "'";
      out.nodes.push_back(node_number(graph, n, param));
      out.origins.push_back(origins_text(graph.origins(n)));
      out.keys.push_back(key(graph, n));
      out.rules.push_back(graph.rule(n));
      out.inputs.emplace_back();
      for (const Value& v : graph.operands(n))
        out.inputs.back().push_back({place[v.node()], v.index()});
    }
    for (const Function::Result& r : f.results()) out.results.push_back(place[r.value.node()]);
    return out;
  }

  static std::string key(const Graph& graph, NodeId n) {
    std::string out(graph.op(n).name);
    for (std::size_t i = 0; i < graph.result_count(n); ++i) out += cat(" ", graph.type(n, i));
    for (const Attrs::Entry& e : graph.attrs(n).entries())
      out += cat(" ", e.first.text(), "=", attr_text(e.second));
    return out + hidden_text(graph.attrs(n));
  }

  // The function, then the bodies in it.
  void list_all(const std::string& path, const Function& f, std::vector<Listed>& out) {
    out.push_back(list(path, f));
    const std::vector<NodeId> order = out.back().order;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const Attrs::Entry& e : f.graph().attrs(order[i]).entries())
        if (const FunctionRef* body = std::get_if<FunctionRef>(&e.second))
          list_all(cat(path, path.empty() ? "" : "/", body_name(f, order, i), ".", e.first.text()),
                   **body, out);
  }

  // Numbers only the nodes with bodies, so that other nodes do not change the name.
  static std::string body_name(const Function& f, const std::vector<NodeId>& order,
                               std::size_t at) {
    int number = 1;
    for (std::size_t i = 0; i < at; ++i) number += f.graph().op(order[i]).kind == OpKind::control;
    return cat(f.graph().op(order[at]).name, number);
  }

  void add_stage(std::int64_t pass, const Function& f, const RuleLog* log) {
    std::vector<Listed> all;
    list_all("", f, all);
    Json functions = Json::Array{};
    for (const Listed& l : all) functions.push(function_json(l));
    Json fired = Json::Array{};
    if (log)
      for (const RuleLog::Firing& firing : log->firings) {
        const Function& where = log->functions[firing.function];
        fired.push(Json::Array{node_number(where.graph(), firing.node, ""),
                               texts_.number(std::string(firing.rule))});
      }
    stages_.push(Json::Object{{"pass", pass}, {"functions", functions}, {"fired", fired}});
    before_ = std::move(all);
  }

  Json function_json(const Listed& l) {
    auto same_path = [&](const Listed& b) { return b.path == l.path; };
    auto it = std::find_if(before_.begin(), before_.end(), same_path);
    std::vector<std::int64_t> before =
        it == before_.end() ? std::vector<std::int64_t>(l.nodes.size(), -1) : match(*it, l);
    Json inputs = Json::Array{}, rules = Json::Object{};
    for (std::size_t i = 0; i < l.nodes.size(); ++i) {
      Json list = Json::Array{};
      for (auto [node, result] : l.inputs[i])
        list.push(result == 0 ? Json(node) : Json(Json::Array{node, result}));
      inputs.push(std::move(list));
      if (before[i] < 0 && !l.rules[i].empty())
        rules.add(cat(i), texts_.number(std::string(l.rules[i])));
    }
    return Json::Object{
        {"path", l.path},   {"nodes", Json::Array(l.nodes.begin(), l.nodes.end())},
        {"inputs", inputs}, {"before", Json::Array(before.begin(), before.end())},
        {"rules", rules},   {"results", Json::Array(l.results.begin(), l.results.end())}};
  }

  TextTable texts_;
  std::map<std::array<std::int64_t, 4>, std::int64_t> numbers_;
  Json nodes_ = Json::Array{}, stages_ = Json::Array{};
  std::vector<Listed> before_;
};

}  // namespace

Json graphs_json(const VariantReport& v) { return GraphWriter().run(v); }

}  // namespace hone
