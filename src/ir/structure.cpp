// Hashes and equality by structure: of attributes, some of which are functions, and of functions,
// whose nodes have attributes.
#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "ir/function.h"

namespace hone {

std::uint64_t hash(const Attr& a) {
  struct Visitor {
    std::uint64_t operator()(std::int64_t n) const { return static_cast<std::uint64_t>(n); }
    std::uint64_t operator()(double x) const { return std::bit_cast<std::uint64_t>(x); }
    std::uint64_t operator()(const std::string& s) const { return hash_text(s); }
    std::uint64_t operator()(DType t) const { return static_cast<std::uint64_t>(t); }
    std::uint64_t operator()(const Dims& dims) const {
      std::uint64_t h = dims.size();
      for (const Dim& d : dims) h = mix(h, d.hash());
      return h;
    }
    std::uint64_t operator()(const FunctionRef& f) const { return f->hash(); }
    std::uint64_t operator()(const Array& a) const {
      return mix(a.storage().hash(), a.type().hash());
    }
  };
  return mix(a.index(), std::visit(Visitor{}, a));
}

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = std::get_if<double>(&a))
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(std::get<double>(b));
  if (auto* f = std::get_if<FunctionRef>(&a)) {
    const FunctionRef& g = std::get<FunctionRef>(b);
    return *f == g || same_structure(**f, *g);
  }
  if (auto* x = std::get_if<Array>(&a)) {
    const Array& y = std::get<Array>(b);
    return x->dtype() == y.dtype() && x->dims() == y.dims() && x->storage() == y.storage();
  }
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, FunctionRef> || std::is_same_v<T, Array>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

std::uint64_t Attrs::hash() const {
  std::uint64_t h = entries_.size();
  for (const Entry& e : entries_) h = mix(mix(h, e.first.id()), hone::hash(e.second));
  return h;
}

bool Attrs::operator==(const Attrs& other) const {
  return std::equal(entries_.begin(), entries_.end(), other.entries_.begin(), other.entries_.end(),
                    [](const Entry& a, const Entry& b) {
                      return a.first == b.first && equal(a.second, b.second);
                    });
}

namespace {

struct Numbering {
  std::vector<NodeId> order;
  std::vector<std::uint32_t> of;  // node id -> position in order
};

Numbering number_nodes(const Function& f) {
  Numbering n{live_nodes(f), std::vector<std::uint32_t>(f.graph().node_count(), ~0u)};
  for (std::size_t i = 0; i < n.order.size(); ++i) n.of[n.order[i]] = static_cast<std::uint32_t>(i);
  return n;
}

std::uint64_t reference(const Numbering& n, Value v) {
  return (std::uint64_t{n.of[v.node()]} << 16) ^ v.index();
}

}  // namespace

std::uint64_t Function::hash() const {
  Numbering n = number_nodes(*this);
  std::uint64_t h = mix(params().size(), results().size());
  for (NodeId id : n.order) {
    h = mix(mix(h, hash_text(graph_->op(id).name)), graph_->attrs(id).hash());
    for (const Value& v : graph_->operands(id)) h = mix(h, reference(n, v));
    for (std::size_t i = 0; i < graph_->result_count(id); ++i)
      h = mix(h, graph_->type(id, i).hash());
  }
  for (const Result& r : results()) {
    h = mix(h, reference(n, r.value));
    if (r.stored_to) h = mix(h, *r.stored_to + 1);
  }
  return h;
}

bool same_structure(const Function& f, const Function& g) {
  if (f.params().size() != g.params().size() || f.results().size() != g.results().size())
    return false;
  Numbering a = number_nodes(f), b = number_nodes(g);
  if (a.order.size() != b.order.size()) return false;
  for (std::size_t i = 0; i < a.order.size(); ++i) {
    NodeId x = a.order[i], y = b.order[i];
    if (&f.graph().op(x) != &g.graph().op(y) || !(f.graph().attrs(x) == g.graph().attrs(y)) ||
        f.graph().result_types(x) != g.graph().result_types(y))
      return false;
    std::span<const Value> p = f.graph().operands(x), q = g.graph().operands(y);
    if (p.size() != q.size()) return false;
    for (std::size_t k = 0; k < p.size(); ++k)
      if (reference(a, p[k]) != reference(b, q[k])) return false;
  }
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (reference(a, f.result(i)) != reference(b, g.result(i)) ||
        f.results()[i].stored_to != g.results()[i].stored_to)
      return false;
  return true;
}

}  // namespace hone
