#include "schedule/fuse.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "ir/measured.h"
#include "ops/ops.h"

namespace hone {

namespace {

// How a node relates to the group that it joins.
enum class Part : std::uint8_t {
  elementwise,  // element i from elements i of operands of the same shape
  movement,     // reads elements from other positions
  reduction,    // reads each operand element once, produces another shape
  row,          // softmax, norms: the shape of operand 0
  window,       // reads operand elements repeatedly
  contraction,
  update,  // writes a part of its first operand's memory
  alone,   // a kernel of its own: sort, scatter, ...
};

bool has_operands_of_its_shape(const Graph& graph, NodeId n) {
  for (const Value& v : graph.operands(n))
    if (v.shape() != graph.type(n).shape) return false;
  return true;
}

using OpList = std::span<const Op* const>;

bool is_one_of(const Op& op, OpList list) {
  return std::find(list.begin(), list.end(), &op) != list.end();
}

Part part_of(const Graph& graph, NodeId n) {
  const Op& op = graph.op(n);
  if (op.kind == OpKind::contraction) return Part::contraction;
  if (&op == &ops::reduce_window) return Part::window;
  if (op.kind == OpKind::reduction) return Part::reduction;
  if (maps_elements(op))
    return has_operands_of_its_shape(graph, n) ? Part::elementwise : Part::movement;
  if (op.kind == OpKind::movement && op.is_core()) return Part::movement;
  return op.is_row ? Part::row : Part::alone;
}

bool is_anchor(Part p) { return p != Part::elementwise && p != Part::movement; }

// Cost per element, in additions.
double weight_of(const Op& op) {
  constexpr double much = 16;
  if (op.kind == OpKind::movement || op.kind == OpKind::leaf) return 1;
  return op.kind == OpKind::elementwise ? std::min(op.cost, much) : much;
}

constexpr std::int64_t tiny_elements = 16;
bool is_tiny(const Shape& shape) {
  std::optional<std::int64_t> n = shape.count().as_number();
  return n && *n <= tiny_elements;
}

// How a consumer reads a producer's value.
enum class Path : std::uint8_t {
  direct,
  window,    // through transposes and slices
  reshaped,  // also through a reshape
  repeated,  // also through a broadcast
};

struct Edge {
  NodeId from, to;
  Path path;
};

class Fuser {
 public:
  Fuser(const Function& f, const std::vector<bool>& read, bool rows_into_products, Grouping& g)
      : graph_(f.graph()), read_(read), rows_into_products_(rows_into_products), out_(g) {}

  void run() {
    number_positions();
    find_measured();
    find_edges();
    count_readers();
    for (NodeId n : members_) {
      for (const Edge& e : incoming(n)) ++bodies_[group_of(e.from)].met;
      if (can_join(n)) join_producers(n);
    }
    if (!out_.updates.empty()) join_updates();
    rebuild();
  }

 private:
  static constexpr NodeId no_node = ~NodeId{0};
  // A group under construction. Its nodes are an unordered list linked by next_.
  struct Body {
    NodeId head = no_node, tail = no_node;
    std::size_t count = 0;
    std::uint32_t first = 0, last = 0;  // positions of its nodes
    std::uint32_t parent = 0;           // of merged groups: the group they were merged into
    bool anchored = false;
    NodeId reduction = no_node;  // the first reduction, if the anchor is one
    NodeId update = no_node;     // the update, if the anchor is one
    bool shapeless = false;      // true if all nodes are
    bool spanning = false;       // read by a node that comes before its last
    bool kept = false;           // not read by a node, but from outside
    std::size_t readers = 0;     // edges from its nodes to other groups
    std::size_t met = 0;         // those that lead to members visited so far
    double weight = 0;
    const Shape* space = nullptr;  // of the values that others may read
  };

  static constexpr std::size_t most_nodes = 64;
  static constexpr std::size_t most_steps = 256;  // of one search for a cycle
  static constexpr int light = 4;                 // cheaper to recompute than to store

  void number_positions() {
    position_.assign(graph_.node_count(), 0);
    next_.assign(graph_.node_count(), no_node);
    parts_.assign(graph_.node_count(), Part::alone);
    for (std::uint32_t i = 0; i < out_.order.size(); ++i) position_[out_.order[i]] = i;
    members_.reserve(out_.groups.size());
    bodies_.reserve(out_.groups.size());
    for (std::uint32_t i = 0; i < out_.groups.size(); ++i) {
      NodeId n = out_.groups[i].nodes[0];
      members_.push_back(n);
      parts_[n] = part_of(graph_, n);
      if (parts_[n] == Part::movement && out_.is_update(n)) parts_[n] = Part::update;
      const bool joins = can_join(n);
      Body b;
      b.head = b.tail = n;
      b.count = 1;
      b.first = b.last = position_[n];
      b.parent = i;
      b.anchored = !joins || is_anchor(parts_[n]);
      if (joins && parts_[n] == Part::reduction) b.reduction = n;
      if (joins && parts_[n] == Part::update) b.update = n;
      b.shapeless = joins && is_shapeless(n);
      b.weight = weight_of(graph_.op(n));
      b.space = &graph_.type(n).shape;
      bodies_.push_back(b);
    }
  }

  template <class F>
  void for_each_node(const Body& b, F&& f) const {
    for (NodeId n = b.head; n != no_node; n = next_[n]) f(n);
  }

  bool is_member(NodeId n) const { return out_.group_of[n] != Grouping::none; }

  // False for control nodes, assemblies, and numbers and repeated nodes that are in memory only
  // because something reads them.
  bool can_join(NodeId n) const {
    return out_.roles[n] == Role::computed && parts_[n] != Part::alone;
  }

  // Follows windows and repeated nodes down to values with memory of their own; stops at inlined
  // nodes and weights.
  void find_edges() {
    first_edge_.assign(graph_.node_count() + 1, 0);
    edge_count_.assign(graph_.node_count(), 0);
    edges_.reserve(members_.size() * 2);
    uses_.assign(graph_.node_count(), 0);
    only_reader_.assign(graph_.node_count(), Edge{});
    for (NodeId n : members_) {
      first_edge_[n] = static_cast<std::uint32_t>(edges_.size());
      for (const Value& v : graph_.operands(n)) find_edges_below(v, n);
      for (NodeId m : measured_for(n)) add_edge({m, n, Path::direct});
      edge_count_[n] = static_cast<std::uint32_t>(edges_.size()) - first_edge_[n];
    }
    for (NodeId n : members_)
      if (read_[n]) ++uses_[n];
    for (NodeId n : out_.order)
      if (out_.roles[n] == Role::view && read_[n]) ++uses_[below_views(n)];
  }

  void count_readers() {
    for (const Edge& e : edges_) ++bodies_[out_.group_of[e.from]].readers;
    for (Body& b : bodies_) b.kept = uses_[b.head] > b.readers;
  }

  NodeId below_views(NodeId n) const {
    while (out_.roles[n] == Role::view) n = graph_.operands(n)[0].node();
    return n;
  }

  void find_edges_below(Value v, NodeId to, Path path = Path::direct) {
    while (true) {
      Role role = out_.roles[v.node()];
      if (role == Role::computed || role == Role::control || role == Role::assembled) break;
      if (role != Role::view && role != Role::cloned) return;
      Path step = role == Role::cloned            ? Path::repeated
                  : !v.is(ops::reshape)           ? Path::window
                  : are_but_ones(v, v.operand(0)) ? Path::window
                                                  : Path::reshaped;
      path = std::max(path, step);
      for (std::size_t i = 1; i < v.operand_count(); ++i) find_edges_below(v.operand(i), to, path);
      v = v.operand(0);
    }
    add_edge({v.node(), to, path});
  }

  // True if the sizes are equal apart from sizes of 1.
  static bool are_but_ones(Value a, Value b) {
    const Dims &x = a.shape().dims, &y = b.shape().dims;
    std::size_t i = 0, k = 0;
    for (;; ++i, ++k) {
      while (i < x.size() && x[i] == Dim(1)) ++i;
      while (k < y.size() && y[k] == Dim(1)) ++k;
      if (i == x.size() || k == y.size()) return i == x.size() && k == y.size();
      if (x[i] != y[k]) return false;
    }
  }

  void add_edge(const Edge& e) {
    edges_.push_back(e);
    only_reader_[e.from] = e;
    ++uses_[e.from];
  }

  // The nodes that measure sizes used by a member or by nodes that it repeats: it must run after
  // them, though it does not read their values.
  std::span<const NodeId> measured_for(NodeId n) const {
    return sizes_.empty() ? std::span<const NodeId>() : std::span(sizes_[n]);
  }

  void find_measured() {
    std::map<std::string, NodeId> nodes;
    for (NodeId n : out_.order)
      if (&graph_.op(n) == &ops::measure)
        if (const Dim& symbol = graph_.attrs(n).dims("symbol")[0]; symbol.is_symbol())
          nodes.emplace(symbol.name(), n);
    if (nodes.empty()) return;
    sizes_.resize(graph_.node_count());
    for (NodeId n : out_.order) {
      std::set<std::string> names;
      note_symbols(graph_, n, names);
      std::vector<NodeId>& found = sizes_[n];
      for (const std::string& name : names)
        if (auto it = nodes.find(name); it != nodes.end() && it->second != n)
          found.push_back(it->second);
      for (const Value& v : graph_.operands(n))
        if (!is_member(v.node()))
          found.insert(found.end(), sizes_[v.node()].begin(), sizes_[v.node()].end());
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
    }
  }

  // In its results, operands, attributes and bodies.
  static void note_symbols(const Graph& graph, NodeId n, std::set<std::string>& out) {
    auto note = [&](const Dims& dims) {
      for (const Dim& d : dims)
        for (const Dim& s : d.is_number() ? Dims() : d.symbols()) out.insert(s.name());
    };
    for (std::size_t i = 0; i < graph.result_count(n); ++i) note(graph.type(n, i).shape.dims);
    for (const Value& v : graph.operands(n)) note(v.shape().dims);
    for (const Attrs::Entry& e : graph.attrs(n).entries()) {
      if (auto* dims = std::get_if<Dims>(&e.second)) note(*dims);
      if (auto* body = std::get_if<FunctionRef>(&e.second)) {
        for (NodeId inner : live_nodes(**body)) note_symbols((*body)->graph(), inner, out);
        for (const DimCheck& c : (*body)->graph().checks()) note({c.a, c.b});
      }
    }
  }

  std::span<const Edge> incoming(NodeId n) const {
    return std::span(edges_).subspan(first_edge_[n], edge_count_[n]);
  }

  std::uint32_t group_of(NodeId n) {
    std::uint32_t g = out_.group_of[n];
    while (bodies_[g].parent != g) g = bodies_[g].parent = bodies_[bodies_[g].parent].parent;
    return g;
  }

  // Anchors first, the latest first: fusing a consumer into an anchor saves the most.
  void join_producers(NodeId n) {
    ranked_.clear();
    for (const Edge& e : incoming(n))
      ranked_.push_back({bodies_[group_of(e.from)].anchored, position_[e.from],
                         static_cast<std::uint32_t>(ranked_.size()), e});
    std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& a, const Ranked& b) {
      return std::tuple(b.anchored, b.position, a.index) <
             std::tuple(a.anchored, a.position, b.index);
    });
    for (const Ranked& r : ranked_) {
      std::uint32_t producer = group_of(r.edge.from), consumer = group_of(n);
      if (producer != consumer && fits(r.edge, producer, consumer) &&
          !closes_cycle(producer, consumer))
        merge(producer, consumer);
    }
  }

  bool fits(const Edge& e, std::uint32_t producer, std::uint32_t consumer) {
    const Body &p = bodies_[producer], &c = bodies_[consumer];
    if (!can_join(e.from) || p.count + c.count > most_nodes) return false;
    if (out_.groups[producer].prepare != out_.groups[consumer].prepare)
      return out_.groups[producer].prepare && is_dequantized(e, p) && is_used_inside(p, consumer);
    Part part = parts_[e.to];
    // A value that is overwritten must not be read in the same kernel.
    if (p.update != no_node || (c.update != no_node && reads_what_changes(p, c.update)))
      return false;
    bool same_space = e.path == Path::direct && is_same(p.space, &graph_.type(e.from).shape) &&
                      is_same(p.space, c.space);
    if (same_space && part == Part::elementwise)
      return !(p.anchored && c.anchored) ? !is_left_to_reader(e.to, producer) : share_rows(p, c);
    if (same_space && part == Part::row) return !p.anchored;
    if (rows_into_products_ && makes_row(e, p)) return is_used_inside(p, consumer);
    if (p.anchored || !is_used_inside(p, consumer)) return false;
    if (is_tiny(*p.space) && p.weight <= 4 * light) return part != Part::contraction;
    switch (part) {
      case Part::elementwise:
      case Part::row:
        return e.path == Path::repeated ? p.weight <= light : is_cheap_path(e.path, p.shapeless);
      case Part::update:
        return is_cheap_path(e.path, p.shapeless);
      case Part::movement:
        return is_read_once(e.to) ? is_cheap_path(e.path, p.shapeless) : p.weight <= light;
      case Part::reduction:
        return e.path == Path::repeated ? p.weight <= light : is_cheap_path(e.path, p.shapeless);
      case Part::contraction:
        return e.path == Path::direct && p.count == 1 && &graph_.op(p.head) == &ops::cast;
      case Part::window:
      case Part::alone:
        return false;
    }
    return false;
  }

  // True if the producer reduces a row to make another one, which is all that a product of few
  // enough columns reads on its left.
  bool makes_row(const Edge& e, const Body& p) const {
    constexpr std::int64_t most_elements = 1 << 14, most_columns = 1 << 14;
    if (&graph_.op(e.to) != &ops::dot || e.path > Path::window || !p.anchored) return false;
    bool reduces = false, has_others = false;
    for_each_node(p, [&](NodeId n) {
      const bool is_row = parts_[n] == Part::row || parts_[n] == Part::reduction;
      reduces = reduces || is_row;
      has_others = has_others || (is_anchor(parts_[n]) && !is_row);
    });
    if (!reduces || has_others) return false;
    const std::span<const Value> operands = graph_.operands(e.to);
    const Type &row = graph_.type(e.from), &made = graph_.type(e.to);
    const std::optional<std::int64_t> length = row.shape.count().as_number(),
                                      columns = made.shape.count().as_number();
    if (!length || !columns || *length > most_elements || *columns > most_columns ||
        in_memory(operands[0]).node() != e.from || in_memory(operands[1]).node() == e.from)
      return false;
    // One row on the left means that the matrix on the right is all of the other operand.
    return operands[1].shape().count() == Dim(*length * *columns) &&
           std::ranges::all_of(row.shape.dims,
                               [&](const Dim& d) { return d == Dim(1) || d == Dim(*length); });
  }

  // True for a weight that a contraction reads and that is computed elementwise from numbers of a
  // narrower dtype: the contraction can store those, and compute the weight where it multiplies.
  bool is_dequantized(const Edge& e, const Body& p) {
    if (&graph_.op(e.to) != &ops::dot || p.anchored || e.path == Path::repeated ||
        p.weight > 4 * light)
      return false;
    const Type& made = graph_.type(e.from);
    bool has_codes = false, has_others = false;
    for_each_node(p, [&](NodeId n) {
      for (const Value& v : graph_.operands(n)) {
        const Value base = in_memory(v);
        if (is_member(base.node()) && group_of(base.node()) == group_of(p.head)) continue;
        if (out_.roles[base.node()] == Role::inlined || base.shape().count() != made.shape.count())
          continue;
        const bool is_narrow = byte_size(base.dtype()) < byte_size(made.dtype);
        (is_narrow ? has_codes : has_others) = true;
      }
    });
    return has_codes && !has_others;
  }

  // The value in memory that is read for `v`, through views and repeated nodes.
  Value in_memory(Value v) const {
    while (out_.roles[v.node()] == Role::view || out_.roles[v.node()] == Role::cloned)
      v = v.operand(0);
    return v;
  }

  // True if a node of the body is or reads what the update overwrites.
  bool reads_what_changes(const Body& b, NodeId update) const {
    const NodeId base = out_.base_of(graph_.operands(update)[0]).node();
    bool found = false;
    for_each_node(b, [&](NodeId n) {
      found = found || n == base;
      for (const Value& v : graph_.operands(n)) found = found || reads(v, base);
    });
    return found;
  }

  // Directly, or through views and repeated nodes.
  bool reads(Value v, NodeId base) const {
    if (v.node() == base) return true;
    const Role role = out_.roles[v.node()];
    if (role != Role::view && role != Role::cloned) return false;
    const std::vector<Value> operands = v.operands();
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Value& o) { return reads(o, base); });
  }

  // ---- independent updates, such as those of the caches of keys and values, in one group

  void join_updates() {
    std::vector<std::uint32_t> uses(graph_.node_count(), 0);
    for (NodeId n : out_.order)
      for (const Value& v : graph_.operands(n)) ++uses[v.node()];
    // If others read the value before the update, it may have to wait for them.
    const auto is_only_reader = [&](NodeId update) {
      const NodeId whole = graph_.operands(update)[0].node();
      return out_.roles[whole] != Role::view && uses[whole] == 1 && !read_[whole];
    };
    constexpr std::size_t most_before = 4;
    std::vector<std::uint32_t> before;  // the latest groups that update
    for (NodeId n : members_) {
      const std::uint32_t g = group_of(n);
      if (bodies_[g].update != n || &graph_.op(n) != &ops::dynamic_update || !is_only_reader(n))
        continue;
      const auto other = std::find_if(before.begin(), before.end(),
                                      [&](std::uint32_t b) { return is_beside(b, g); });
      if (other != before.end()) {
        merge(*other, g);
        before.erase(other);
      }
      before.push_back(g);
      if (before.size() > most_before) before.erase(before.begin());
    }
  }

  // True if both change parts of the same type, and neither depends on the other.
  bool is_beside(std::uint32_t a, std::uint32_t b) {
    const Body &x = bodies_[a], &y = bodies_[b];
    const auto part = [&](const Body& b) { return graph_.operands(b.update)[1].type(); };
    constexpr std::size_t most_updates = 4;
    return graph_.type(x.update) == graph_.type(y.update) && part(x) == part(y) &&
           x.count + y.count <= most_nodes && updates_in(x) + updates_in(y) <= most_updates &&
           out_.groups[a].prepare == out_.groups[b].prepare && edges_between(a, b) == 0 &&
           edges_between(b, a) == 0 && !disturbs(x, y) && !disturbs(y, x) && !closes_cycle(a, b);
  }

  std::size_t updates_in(const Body& b) const {
    std::size_t count = 0;
    for_each_node(b, [&](NodeId n) { count += out_.is_update(n); });
    return count;
  }

  // True if `reader` reads what `writer` overwrites.
  bool disturbs(const Body& writer, const Body& reader) const {
    bool found = false;
    for_each_node(writer, [&](NodeId n) {
      found = found || (out_.is_update(n) && reads_what_changes(reader, n));
    });
    return found;
  }

  static bool is_same(const Shape* a, const Shape* b) { return a == b || *a == *b; }

  // True if both reduce the same axes of values of the same shape: one pass over the rows computes
  // both.
  bool share_rows(const Body& a, const Body& b) const {
    if (a.reduction == no_node || b.reduction == no_node) return false;
    return graph_.operands(a.reduction)[0].shape() == graph_.operands(b.reduction)[0].shape() &&
           graph_.op(a.reduction).kind == OpKind::reduction &&
           reduced_axes(a.reduction) == reduced_axes(b.reduction);
  }

  Dims reduced_axes(NodeId reduction) const {
    const Attrs& attrs = graph_.attrs(reduction);
    if (attrs.has("axes")) return attrs.dims("axes");
    return attrs.has("axis") ? Dims{attrs.integer("axis")} : Dims{};
  }

  // True if n's only reader can take it, and reads the producer's result anyway or fewer bytes of
  // it.
  bool is_left_to_reader(NodeId n, std::uint32_t producer) {
    if (uses_[n] != 1 || read_[n]) return false;
    const Edge& e = only_reader_[n];
    Part reader = parts_[e.to];
    if (reader != Part::reduction && reader != Part::row) return false;
    if (!is_cheap_path(e.path, is_shapeless(n))) return false;
    return widens(n) || is_read_beyond(n, producer);
  }

  bool widens(NodeId n) const {
    const Value& from = graph_.operands(n)[0];
    return &graph_.op(n) == &ops::cast && byte_size(graph_.type(n).dtype) > byte_size(from.dtype());
  }

  // True if the producer's values that n reads are also read by others outside the producer.
  bool is_read_beyond(NodeId n, std::uint32_t producer) {
    for (const Edge& e : incoming(n)) {
      if (group_of(e.from) != producer) continue;
      std::size_t known = uses_between(e.from, n);
      for_each_node(bodies_[producer], [&](NodeId m) { known += uses_between(e.from, m); });
      if (known < uses_[e.from]) return true;
    }
    return false;
  }

  std::size_t uses_between(NodeId from, NodeId to) const {
    std::span<const Edge> edges = incoming(to);
    return static_cast<std::size_t>(
        std::count_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.from == from; }));
  }

  // Other paths need divisions per element, unless the reshape can be moved before what it follows.
  static bool is_cheap_path(Path path, bool shapeless) {
    return path == Path::direct || path == Path::window || (path == Path::reshaped && shapeless);
  }

  // True if elementwise on whole dense values and numbers, so that it is the same in every shape.
  bool is_shapeless(NodeId n) const {
    if (parts_[n] != Part::elementwise) return false;
    const Shape& shape = graph_.type(n).shape;
    for (Value v : graph_.operands(n)) {
      if (v.is(ops::broadcast)) v = v.operand(0);
      if (v.rank() == 0 || v.is(ops::constant)) continue;
      while (v.is(ops::reshape)) v = v.operand(0);
      Role role = out_.roles[v.node()];
      if ((!is_same(&v.shape(), &shape) && v.shape().count() != shape.count()) ||
          (role != Role::computed && role != Role::param && role != Role::constant))
        return false;
    }
    return true;
  }

  bool is_read_once(NodeId movement) const {
    static constexpr const Op* once[] = {&ops::pad, &ops::reverse, &ops::dynamic_slice};
    return is_one_of(graph_.op(movement), once);
  }

  // True if only these two groups read the producer's results.
  bool is_used_inside(const Body& p, std::uint32_t consumer) {
    return !p.kept && p.readers == edges_between(group_of(p.head), consumer);
  }

  // Counts edges from nodes of one group to nodes of the other.
  std::size_t edges_between(std::uint32_t from, std::uint32_t to) {
    if (bodies_[to].last < bodies_[from].first) return 0;
    std::size_t count = 0;
    for_each_node(bodies_[to], [&](NodeId n) {
      for (const Edge& e : incoming(n)) count += group_of(e.from) == from;
    });
    return count;
  }

  // True if there is a path between the two through a third group.
  bool closes_cycle(std::uint32_t a, std::uint32_t b) { return reaches(a, b) || reaches(b, a); }

  // True if `to` depends on `from` through other groups, or if the search takes too long.
  bool reaches(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t earliest = earliest_reader(bodies_[from].first);
    if (bodies_[to].last < earliest) return false;
    stack_.clear();
    seen_.assign(1, to);
    std::size_t steps = 0;
    push_producers(to, from, to, earliest);
    while (!stack_.empty()) {
      std::uint32_t g = stack_.back();
      stack_.pop_back();
      if (g == from || ++steps > most_steps) return true;
      push_producers(g, from, to, earliest);
    }
    return false;
  }

  // No group that ends before the returned position depends on one that begins at `position`.
  // Readers come after what they read, but a spanning group that is read early may depend on later
  // nodes.
  std::uint32_t earliest_reader(std::uint32_t position) const {
    auto it = spans_.upper_bound(position);
    if (it == spans_.begin()) return position;
    --it;
    return it->second >= position ? it->first : position;
  }

  // Keeps spans_ disjoint.
  void add_span(std::uint32_t first, std::uint32_t last) {
    auto it = spans_.upper_bound(first);
    if (it != spans_.begin() && std::prev(it)->second >= first) --it;
    while (it != spans_.end() && it->first <= last) {
      first = std::min(first, it->first);
      last = std::max(last, it->second);
      it = spans_.erase(it);
    }
    spans_.emplace(first, last);
  }

  void push_producers(std::uint32_t g, std::uint32_t from, std::uint32_t to,
                      std::uint32_t earliest) {
    for_each_node(bodies_[g], [&](NodeId n) {
      for (const Edge& e : incoming(n)) {
        std::uint32_t p = group_of(e.from);
        if (g == to && p == from) continue;
        if (p == g || bodies_[p].last < earliest) continue;
        if (std::find(seen_.begin(), seen_.end(), p) != seen_.end()) continue;
        seen_.push_back(p);
        stack_.push_back(p);
      }
    });
  }

  void merge(std::uint32_t producer, std::uint32_t consumer) {
    Body &p = bodies_[producer], &c = bodies_[consumer];
    const std::size_t forward = edges_between(producer, consumer);
    const std::size_t inside = forward + edges_between(consumer, producer);
    c.spanning = c.spanning || p.spanning || p.met > forward;
    c.readers += p.readers - inside;
    c.met += p.met - inside;
    c.kept = c.kept || p.kept;
    p.parent = consumer;
    next_[p.tail] = c.head;
    c.head = p.head;
    c.count += p.count;
    c.first = std::min(c.first, p.first);
    c.last = std::max(c.last, p.last);
    c.anchored = c.anchored || p.anchored;
    if (c.reduction == no_node) c.reduction = p.reduction;
    if (c.update == no_node) c.update = p.update;
    c.shapeless = c.shapeless && p.shapeless;
    c.weight += p.weight;
    if (c.spanning) add_span(c.first, c.last);
    p.head = p.tail = no_node;
    p.count = 0;
  }

  // Collects the remaining groups, each in the function's order, in an order that can run, as close
  // as possible to the function's order.
  void rebuild() {
    std::vector<std::uint32_t> left;
    for (std::uint32_t g = 0; g < bodies_.size(); ++g)
      if (bodies_[g].parent == g) left.push_back(g);
    // If nothing was joined and only operands determine the order, it is already right.
    if (left.size() == bodies_.size() && sizes_.empty()) return;
    std::vector<std::uint32_t> missing(bodies_.size(), 0);
    std::vector<std::vector<std::uint32_t>> users(bodies_.size());
    for (std::uint32_t g : left)
      for (std::uint32_t p : producers_of(g)) {
        users[p].push_back(g);
        ++missing[g];
      }
    auto later = [&](std::uint32_t a, std::uint32_t b) {
      return bodies_[a].last > bodies_[b].last;
    };
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(later)> ready(later);
    for (std::uint32_t g : left)
      if (missing[g] == 0) ready.push(g);
    std::vector<Group> groups;
    for (; !ready.empty();) {
      std::uint32_t g = ready.top();
      ready.pop();
      groups.push_back(finished(g));
      for (std::uint32_t u : users[g])
        if (--missing[u] == 0) ready.push(u);
    }
    HONE_ASSERT(groups.size() == left.size(), "groups depend on each other in a circle");
    for (std::uint32_t i = 0; i < groups.size(); ++i)
      for (NodeId n : groups[i].nodes) out_.group_of[n] = i;
    out_.groups = std::move(groups);
  }

  std::vector<std::uint32_t> producers_of(std::uint32_t g) {
    std::vector<std::uint32_t> all;
    for_each_node(bodies_[g], [&](NodeId n) {
      for (const Edge& e : incoming(n))
        if (std::uint32_t p = group_of(e.from); p != g) all.push_back(p);
    });
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  Group finished(std::uint32_t g) {
    Group out{{}, out_.groups[g].prepare, out_.groups[g].kind};
    out.nodes.reserve(bodies_[g].count);
    for_each_node(bodies_[g], [&](NodeId n) { out.nodes.push_back(n); });
    std::sort(out.nodes.begin(), out.nodes.end(),
              [&](NodeId a, NodeId b) { return position_[a] < position_[b]; });
    return out;
  }

  const Graph& graph_;
  const std::vector<bool>& read_;
  const bool rows_into_products_;
  Grouping& out_;
  struct Ranked {
    bool anchored;
    std::uint32_t position, index;
    Edge edge;
  };
  std::vector<std::uint32_t> position_;                 // per node
  std::vector<Part> parts_;                             // per member
  std::vector<NodeId> members_;                         // in order
  std::vector<Body> bodies_;                            // per first group
  std::vector<NodeId> next_;                            // per node: the next node of its body
  std::vector<Edge> edges_;                             // those to one member are adjacent
  std::vector<std::uint32_t> first_edge_, edge_count_;  // per node
  std::vector<std::vector<NodeId>> sizes_;   // per node: nodes that measure its sizes; may be empty
  std::vector<Edge> only_reader_;            // per node: to its reader, if it has one use
  std::vector<std::uint32_t> uses_;          // per node: edges from it, plus one if it is read
  std::vector<Ranked> ranked_;               // of the member being joined with its producers
  std::vector<std::uint32_t> stack_, seen_;  // groups of one search
  std::map<std::uint32_t, std::uint32_t> spans_;  // positions that spanning groups cover
};

}  // namespace

void fuse(const Function& f, const std::vector<bool>& read, bool rows_into_products, Grouping& g) {
  Fuser(f, read, rows_into_products, g).run();
}

}  // namespace hone
