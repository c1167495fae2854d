#include "plan/footprint.h"

#include <type_traits>
#include <unordered_set>

namespace hone {

namespace {

class Footprint {
 public:
  std::size_t bytes = 0;

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void add(const T&) {}
  void add(const std::string& s) { bytes += heap_bytes(s); }
  template <class T, std::uint32_t inside>
  void add(const Few<T, inside>& list) {
    if (!list.is_inside()) bytes += heap_block(list.capacity() * sizeof(T));
    for (const T& e : list) add(e);
  }
  template <class A, class B>
  void add(const std::pair<A, B>& p) {
    all(p.first, p.second);
  }
  template <class T>
  void add(const std::vector<T>& v) {
    bytes += heap_bytes(v);
    for (const T& e : v) add(e);
  }

  // Shared expressions and shared candidates of groups count once.
  void add(const Dim& d) {
    const DimExpr* e = d.expr();
    if (!e || !seen_.insert(e).second) return;
    bytes += heap_block(sizeof(DimExpr));
    all(e->name, e->terms, e->a, e->b);
  }
  void add(const DimExpr::Term& t) { add(t.atoms); }
  void add(const Shape& s) { add(s.dims); }
  void add(const Type& t) { all(t.shape, t.element); }
  void add(const Array& a) { add(a.dims()); }

  void add(const PlanBuffer& b) { all(b.offset, b.bytes); }
  void add(const View& v) { all(v.offset, v.dims, v.strides); }
  void add(const Step& s) {
    all(s.name, s.operands, s.written, s.scalars, s.chunks, s.scratch_bytes, s.settings, s.body,
        s.otherwise);
  }
  void add(const PlanKernel& k) { add(k.entry); }
  void add(const Binary& b) { all(b.target, b.code, b.entries, b.helpers); }
  void add(const Binary::Entry& e) { add(e.name); }
  void add(const CandidateRecord& c) { all(c.name, c.refused); }
  void add(const GroupRecord& g) {
    all(g.name, g.origins, g.chosen, g.reason, g.bytes, g.flops);
    if (!g.considered || !seen_.insert(g.considered.get()).second) return;
    constexpr std::size_t counts = 16;  // of std::make_shared
    bytes += heap_block(sizeof(*g.considered) + counts);
    add(*g.considered);
  }
  void add(const DimBound& b) { all(b.symbol, b.most); }
  void add(const Guard& g) { all(g.a, g.b); }
  void add(const Variant& v) {
    all(v.devices, v.guards, v.buffers, v.steps, v.prepare, v.groups, v.results, v.measured,
        v.result_bytes);
  }
  void add(const PlanDevice& d) { all(d.name, d.target, d.arena_bytes, d.arena_lower_bound); }
  void add(const StrategyRecord& s) { all(s.name, s.failure); }
  void add(const PlanParam& p) { all(p.name, p.type); }
  void add(const PlanWeight& w) { all(w.name, w.data); }
  void add(const PreparedBuffer& p) { all(p.name, p.type); }
  void add(const PlanCheck& c) { all(c.a, c.b, c.message); }
  void add(const SelfTestInput& in) {
    add(in.dims);
    if (in.given) add(*in.given);
  }
  void add(const SelfTestResult& r) { all(r.dims, r.places, r.values); }
  void add(const SelfTest& t) { all(t.inputs, t.results, t.missing); }
  void add(const PlanState& s) {
    all(s.name, s.group, s.type);
    if (s.start) add(*s.start);
  }
  void add(const PlanEntry& e) {
    all(e.name, e.params, e.results, e.result_alias, e.states, e.checks, e.variants, e.strategies,
        e.graph, e.graph_arrays, e.self_tests);
  }
  void add(const Plan& p) {
    all(p.name, p.strategy, p.verification, p.states, p.entries, p.kernels, p.binaries, p.weights,
        p.prepared, p.machine);
  }

  void add(const Json& j) {
    if (j.is_text()) add(j.text_value());
    if (j.is_array()) add(j.array());
    if (j.is_object()) add(j.object());
  }

 private:
  template <class... T>
  void all(const T&... parts) {
    (add(parts), ...);
  }
  std::unordered_set<const void*> seen_;  // shared objects that were counted
};

template <class T>
std::size_t footprint(const T& whole) {
  Footprint f;
  f.add(whole);
  return f.bytes;
}

}  // namespace

std::size_t heap_bytes(const Plan& p) { return footprint(p); }
std::size_t heap_bytes(const Json& j) { return footprint(j); }

}  // namespace hone
