#include "test/random/generate.h"

#include <algorithm>

#include "grad/gradients.h"
#include "ops/common.h"
#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

Dim some_symbol(Random& random, std::string name) {
  std::int64_t low = random.of({0, 1, 1, 1, 2, 4});
  std::int64_t high = low + random.of({1, 4, 8, 8, 33, 60});
  return Dim::symbol(std::move(name), low, high);
}

// Values are small, so that thousands of functions run in a minute; one function in twenty is large
// enough for blocks and threads.
Style some_style(Random& random) {
  Style s;
  const bool large = random.chance(5);
  if (large) s.limit = 60000, s.work = 4000000;
  for (int i = random.between(3, 5); i > 0; --i)
    s.sizes.push_back(Dim(random.of({1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 17, 20, 33})));
  if (large) s.sizes.push_back(Dim(random.of({64, 65, 100, 128, 130, 200})));
  if (random.chance(4)) s.sizes.push_back(0);
  if (random.chance(45)) {
    s.symbols.push_back(some_symbol(random, "n"));
    if (random.chance(35)) s.symbols.push_back(some_symbol(random, "m"));
    for (const Dim& d : s.symbols) {
      s.sizes.push_back(d);
      s.sample[d.name()] = std::clamp<std::int64_t>(random.between(1, 6), d.low(), d.high());
    }
  }
  s.real = random.of({DType::f32, DType::f32, DType::f32, DType::f32, DType::f32, DType::f32,
                      DType::f16, DType::f16, DType::bf16, DType::f64});
  s.whole = random.of({DType::i64, DType::i64, DType::i64, DType::i32, DType::i32, DType::u8,
                       DType::i8, DType::u32, DType::i16, DType::u64, DType::u16});
  s.checks = random.chance(3);
  return s;
}

void add_params(Builder& b) {
  // Every symbol is the full size of an axis of some parameter.
  for (const Dim& d : b.style.symbols) {
    Shape s = b.shape(b.random.of({1, 2, 3}));
    s[b.random.below(s.rank())] = d;
    b.param({b.style.real, b.fits(s) ? s : Shape{d}});
  }
  for (int i = b.random.between(b.style.symbols.empty() ? 1 : 0, 3); i > 0; --i) {
    Shape s = b.shape();
    b.param({b.random.chance(80) ? b.style.real : b.dtype(), s});
  }
}

// Mostly values that nothing reads, so that few nodes are dead; sometimes also a random value,
// which may be a duplicate or a parameter.
Values some_results(Builder& b) {
  std::vector<bool> read(b.graph().node_count(), false);
  for (const Value& v : b.pool())
    for (const Value& o : b.graph().operands(v.node())) read[o.node()] = true;
  Values ends;
  for (const Value& v : b.pool())
    if (!read[v.node()] && !v.is(ops::param)) ends.push_back(v);
  Values results;
  const std::size_t most = static_cast<std::size_t>(b.random.of({1, 1, 2, 3, 4, 6}));
  while (!ends.empty() && results.size() < most) {
    results.push_back(ends.back());
    ends.pop_back();
  }
  if (results.empty()) results.push_back(b.pool().back());
  if (b.random.chance(15)) results.push_back(b.random.of(b.pool()));
  return results;
}

// Donates some parameters whose type equals that of a result.
Function with_donation(const Function& f, Random& random) {
  Function out;
  Values params;
  for (const Function::Param& p : f.params()) {
    bool fits = false;
    for (const Function::Result& r : f.results()) fits = fits || r.value.type() == p.value.type();
    params.push_back(out.add_param(p.value.type(), p.name, fits && random.chance(30)));
  }
  Copier copy(f, out);
  for (NodeId n : live_nodes(f))
    if (!copy.has(n)) copy.copy(n);
  for (const Function::Result& r : f.results()) out.add_result(copy(r.value), r.name);
  for (const DimCheck& c : f.graph().checks()) out.graph().add_check(c);
  return out;
}

bool holds(const Function& f, const Sizing& sizes) {
  try {
    check_sizes(f, sizes);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// Runs at the sample sizes, at both bounds, and at a random size between them.
std::vector<CaseRun> some_runs(const Function& f, const Style& style, Random& random) {
  std::vector<Sizing> sizes = {style.sample};
  if (!style.symbols.empty()) {
    Sizing low, high, between;
    for (const Dim& d : style.symbols) {
      low[d.name()] = d.low();
      high[d.name()] = d.high();
      between[d.name()] = random.between(static_cast<int>(d.low()), static_cast<int>(d.high()));
    }
    sizes.insert(sizes.end(), {low, high, between});
  }
  std::vector<CaseRun> runs;
  for (const Sizing& s : sizes)
    if (holds(f, s)) runs.push_back({s, random.next() % 100000, CaseNumbers::ordinary});
  if (random.chance(40) && holds(f, style.sample))
    runs.push_back({style.sample, random.next() % 100000, CaseNumbers::extreme});
  return runs;
}

// The operators that the results depend on.
std::vector<std::string_view> live_operators(Builder& b, const Values& results) {
  const Graph& g = b.function().graph();
  std::vector<bool> live(g.node_count(), false);
  for (const Value& v : results) live[v.node()] = true;
  for (NodeId n = static_cast<NodeId>(live.size()); n-- > 0;)
    if (live[n])
      for (const Value& v : g.operands(n)) live[v.node()] = true;
  std::vector<std::string_view> out;
  for (const auto& [op, node] : b.operators)
    if (live[node]) out.push_back(op);
  return out;
}

Generated finished(Builder& b) {
  Values results = some_results(b);
  Function f = rebuilt(b.function(), results, b.random.chance(85));
  f = with_donation(f, b.random);
  return {{f, some_runs(f, b.style, b.random)}, live_operators(b, results)};
}

// Throws UserError where an operation has no derivative.
void add_derivatives(Function& f) {
  Values ys, dys, xs;
  for (const Function::Result& r : f.results())
    if (is_float(r.value.dtype())) {
      ys.push_back(r.value);
      dys.push_back(constant_like(r.value, 1));
    }
  for (const Function::Param& p : f.params())
    if (is_float(p.value.dtype())) xs.push_back(p.value);
  if (ys.empty() || xs.empty()) throw UserError("nothing has a derivative");
  for (const Value& d : gradients(ys, dys, xs)) f.add_result(d, cat("d", f.results().size()));
}

}  // namespace

Generated generate(std::uint64_t seed, int nodes, bool with_derivatives) {
  Random random(seed);
  for (;;) {
    const Style style = some_style(random);
    Builder b(random, style);
    add_params(b);
    int wanted = nodes ? nodes : random.between(2, random.of({8, 16, 16, 30, 30, 60}));
    grow(b, static_cast<int>(b.pool().size()) + wanted);
    try {
      Generated c = finished(b);
      if (with_derivatives) {
        add_derivatives(c.function);
        // The derivative of a scatter refuses an empty axis.
        std::erase_if(c.runs, [&](const CaseRun& r) { return !holds(c.function, r.sizes); });
      }
      if (!c.runs.empty()) return c;
    } catch (const UserError&) {
      // A result cannot be typed again without the checks of dropped nodes, or has no derivative.
    }
  }
}

Generated generate_motif(std::string_view name, std::uint64_t seed) {
  Random random(seed);
  for (const Motif& m : motifs()) {
    if (m.name != name) continue;
    for (;;) {
      const Style style = some_style(random);
      Builder b(random, style);
      add_params(b);
      try {
        if (!b.keep(m.make(b))) continue;
        grow(b, static_cast<int>(b.pool().size()) + random.below(4));
        if (Generated c = finished(b); !c.runs.empty()) return c;
      } catch (const UserError&) {
        // The parameters do not fit this recipe; try others.
      }
    }
  }
  throw UserError("there is no recipe '", name, "'");
}

}  // namespace hone::fuzz
