#include "pass/raise_attention.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "ops/contraction.h"

namespace hone {

namespace {

// A value whose axes are read in a different order.
struct Ordered {
  Value value;
  Axes order;

  const Dim& size(int axis) const {
    const auto n = static_cast<int>(order.size());
    return value.shape()[order[static_cast<std::size_t>(axis < 0 ? axis + n : axis)]];
  }
};

// A contraction written as [batch..., rows, k] times [batch..., columns, k].
struct Product {
  Ordered a, b;
};

Axes identity(int rank) {
  Axes order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  return order;
}

std::optional<Product> product_of(Value v) {
  if (v.attrs().has("dtype")) return std::nullopt;
  if (v.is(ops::matmul)) {
    const int rank = v.operand(0).rank();
    if (rank < 2 || v.operand(1).rank() != rank) return std::nullopt;
    Product p{{v.operand(0), identity(rank)}, {v.operand(1), identity(rank)}};
    std::swap(p.b.order.end()[-1], p.b.order.end()[-2]);
    return p;
  }
  if (!v.is(ops::dot)) return std::nullopt;
  DotAxes x = dot_axes(v.attrs(), v.operand(0).rank(), v.operand(1).rank());
  if (x.free_a.size() != 1 || x.free_b.size() != 1 || x.contract_a.size() != 1) return std::nullopt;
  auto order = [](Axes batch, int free, int contract) {
    batch.push_back(free);
    batch.push_back(contract);
    return batch;
  };
  return Product{{v.operand(0), order(x.batch_a, x.free_a[0], x.contract_a[0])},
                 {v.operand(1), order(x.batch_b, x.free_b[0], x.contract_b[0])}};
}

// The factors of x, if it is a value times a number.
std::optional<std::pair<Value, double>> times_number(Value x) {
  if (!x.is(ops::mul) && !x.is(ops::div)) return std::nullopt;
  for (std::size_t i : {1, 0}) {
    if (i == 0 && x.is(ops::div)) continue;
    std::optional<double> c = uniform_number(x.operand(i));
    if (!c || !std::isfinite(*c) || *c == 0) continue;
    return std::pair(x.operand(1 - i), x.is(ops::div) ? 1 / *c : *c);
  }
  return std::nullopt;
}

// Moves transposes into the order and factors into the scale.
void look_through(Ordered& x, double* scale) {
  for (;;) {
    if (x.value.is(ops::transpose)) {
      const Axes perm = axes_of(x.value.attrs(), "perm");
      for (int& a : x.order) a = perm[static_cast<std::size_t>(a)];
      x.value = x.value.operand(0);
    } else if (auto factor = scale ? times_number(x.value) : std::nullopt) {
      x.value = factor->first;
      *scale *= factor->second;
    } else {
      return;
    }
  }
}

struct Found {
  Ordered q, k, v;  // as [batch..., rows, row elements]
  double scale = 1;
  Value mask;  // optional
  bool is_inverted = false;
  std::optional<double> masked;
  std::vector<NodeId> nodes;  // the nodes that it replaces
};

// Skips broadcasts of a mask.
Value before_repeat(Value mask) {
  while (mask.is(ops::broadcast)) mask = mask.operand(0);
  return mask;
}

class Raiser {
 public:
  explicit Raiser(const Function& f) : f_(f), order_(live_nodes(f)) {
    const Graph& graph = f.graph();
    uses_.assign(graph.node_count(), 0);
    for (NodeId n : order_)
      for (const Value& v : graph.operands(n)) ++uses_[v.node()];
    for (const Function::Result& r : f.results()) ++uses_[r.value.node()];
  }

  Function run(RuleLog* log) const {
    const Graph& graph = f_.graph();
    const bool any = std::ranges::any_of(
        order_, [&](NodeId n) { return &graph.op(n) == &ops::softmax && uses_[n] == 1; });
    if (!any) return f_;
    bool changed = false;
    Function out = transform(f_, [&](NodeId n, Copier& copy, Function& to) -> Values {
      std::optional<Found> found = find(Value(&f_.graph(), n));
      if (!found) return {};
      if (log && !changed) log->functions.push_back(f_);
      if (log)
        log->firings.push_back(
            {"raise-attention", static_cast<std::uint32_t>(log->functions.size() - 1), n});
      changed = true;
      OriginScope scope(to.graph(), to.graph().origin_list(origins_of(*found), "raise-attention"));
      return {make(*found, copy)};
    });
    return changed ? out : f_;
  }

 private:
  std::vector<Origin> origins_of(const Found& found) const {
    std::vector<Origin> all;
    for (NodeId n : found.nodes)
      for (const Origin& o : f_.graph().origins(n))
        if (std::ranges::find(all, o) == all.end()) all.push_back(o);
    return all;
  }

  bool is_private(Value v) const { return uses_[v.node()] == 1; }

  std::optional<Found> find(Value root) const {
    std::optional<Product> mixed = product_of(root);
    if (!mixed || !mixed->a.value.is(ops::softmax)) return std::nullopt;
    const Value p = mixed->a.value;
    if (!is_private(p) || p.attrs().integer("axis") != p.rank() - 1 ||
        mixed->a.order != identity(p.rank()))
      return std::nullopt;
    Found found;
    found.nodes = {root.node(), p.node()};
    found.v = mixed->b;
    std::swap(found.v.order.end()[-1], found.v.order.end()[-2]);
    look_through(found.v, nullptr);
    std::optional<Product> scores = scores_of(p.operand(0), found);
    if (!scores) return std::nullopt;
    found.q = scores->a;
    found.k = scores->b;
    look_through(found.q, &found.scale);
    look_through(found.k, &found.scale);
    return fits(found, root) ? std::optional(found) : std::nullopt;
  }

  // From the softmax down to its contraction: an optional mask, then factors.
  std::optional<Product> scores_of(Value s, Found& found) const {
    if (!is_private(s)) return std::nullopt;
    found.nodes.push_back(s.node());
    if (auto product = product_of(s)) return product;
    if (s.is(ops::select)) {
      for (std::size_t i : {2, 1}) {
        std::optional<double> masked = uniform_number(s.operand(i));
        if (!masked || !(*masked < INFINITY)) continue;
        found.mask = before_repeat(s.operand(0));
        found.masked = *masked;
        found.is_inverted = i == 1;
        return scaled_scores(s.operand(3 - i), found);
      }
    } else if (s.is(ops::add)) {
      for (std::size_t i : {0, 1}) {
        Found attempt = found;
        attempt.mask = before_repeat(s.operand(1 - i));
        if (auto product = scaled_scores(s.operand(i), attempt)) {
          found = attempt;
          return product;
        }
      }
    }
    return scaled_scores(s, found);
  }

  std::optional<Product> scaled_scores(Value s, Found& found) const {
    while (is_private(s)) {
      found.nodes.push_back(s.node());
      if (auto product = product_of(s)) return product;
      auto factor = times_number(s);
      if (!factor) break;
      found.scale *= factor->second;
      s = factor->first;
    }
    return std::nullopt;
  }

  // Checks the operation's type rule, using sizes known to be equal.
  static bool fits(const Found& f, Value root) {
    const int rank = root.rank();
    if (rank < 2 || !is_float(root.dtype()) || !std::isfinite(f.scale)) return false;
    for (const Ordered* x : {&f.q, &f.k, &f.v})
      if (static_cast<int>(x->order.size()) != rank || x->value.rank() != rank) return false;
    for (int i = 0; i + 2 < rank; ++i) {
      const Dim &q = f.q.size(i), &k = f.k.size(i), &v = f.v.size(i);
      const bool serves = i == rank - 3 && q.is_number() && k.is_number() && k.number() > 0 &&
                          q.number() % k.number() == 0;
      if (!(k == v) || !(q == k || serves) || !(q == root.shape()[i])) return false;
    }
    return f.q.size(-1) == f.k.size(-1) && f.k.size(-2) == f.v.size(-2) &&
           f.q.size(-2) == root.shape()[-2] && f.v.size(-1) == root.shape()[-1] &&
           (!f.mask || f.mask.rank() <= rank);
  }

  static Value make(const Found& f, Copier& copy) {
    auto placed = [&](const Ordered& x) { return transpose_by(copy(x.value), x.order); };
    Values operands = {placed(f.q), placed(f.k), placed(f.v)};
    Attrs attrs{{"scale", f.scale}};
    if (f.mask) {
      Value mask = copy(f.mask);
      operands.push_back(f.is_inverted ? ops::bit_not(mask) : mask);
    }
    if (f.masked && std::isfinite(*f.masked)) attrs.set("masked", *f.masked);
    return ops::attention(operands, std::move(attrs));
  }

  const Function& f_;
  std::vector<NodeId> order_;
  std::vector<std::uint32_t> uses_;
};

}  // namespace

Function raise_attention(const Function& f, RuleLog* log) {
  return for_bodies_too(f, [&](const Function& g) { return Raiser(g).run(log); });
}

}  // namespace hone
