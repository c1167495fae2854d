#include "kernel/nest/cost.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernel/nest/blocking.h"
#include "kernel/nest/lower.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

// Costs are counted in vector instructions, one of which a core of this target starts per cycle; a
// multiply-add is one.
double instructions_per_ms(const TargetInfo& t) { return t.fma_gflops * 1e6 / (2 * t.lanes(4)); }

// How often code runs in the loops around it, and for how many elements at once.
struct Context {
  double times = 1;
  std::optional<VarId> lane_var;
  int lanes = 1;
};

// Elements that are not contiguous are accessed one by one.
double access_cost(const Dim& place, const Context& c) {
  if (!c.lane_var) return 1;
  for (const Dim& s : place.symbols())
    if (loop_of(s) == c.lane_var) return stride_of(place, s) == Dim(1) ? 1 : c.lanes;
  return 1;
}

double expression_cost(std::span<const Value> roots, const Context& c) {
  double cost = 0;
  for (NodeId n : nodes_below(roots)) {
    const Graph& graph = roots[0].graph();
    if (&graph.op(n) == &ops::load)
      cost += access_cost(graph.attrs(n).dims("offset").at(0), c);
    else
      cost += graph.op(n).cost;
  }
  return cost;
}

// Walks the statements with numbers in place of positions. Blocks of tiles differ in size, so loops
// around tiles are sampled: a few iterations are walked, and each stands for several.
class Costs {
 public:
  Costs(const Kernel& kernel, const TargetInfo& target) : kernel_(kernel), target_(target) {}

  double of(const Block& block, const Context& c) {
    double cost = 0;
    for (const Stmt& s : block) cost += of(s, c);
    return cost;
  }

 private:
  bool has_tiles() const { return !kernel_.tiles.empty(); }

  // A position for the current values of variables, with typical sizes.
  std::int64_t number(const Dim& d) const {
    if (d.is_number()) return d.number();
    std::unordered_map<std::string, std::int64_t> values;
    for (const Dim& s : d.symbols()) {
      auto it = now_.find(s.name());
      const bool is_own = loop_of(s) || register_of(s);
      values[s.name()] = it != now_.end() ? it->second
                         : is_own         ? 0
                                          : std::clamp<std::int64_t>(64, s.low(), s.high());
    }
    return d.eval([&](std::string_view name) { return values.at(std::string(name)); });
  }

  double of(const Stmt& s, const Context& c) {
    using Kind = Stmt::Kind;
    if (s.kind == Kind::loop) return of_loop(s, c);
    if (s.kind == Kind::tile_multiply) return c.times * multiply_cost(s);
    if (s.kind == Kind::tile_load || s.kind == Kind::tile_store) return c.times * vectors(s);
    if (s.kind == Kind::tile_fill) return 0;
    if (s.kind == Kind::branch && has_tiles()) return of_branch(s, c);
    if (s.kind == Kind::declare)
      if (const std::optional<Dims> first = contents_of(s.value))
        now_[register_symbol(s.reg, 0, 0).name()] = number(first->at(0));
    std::vector<Value> values = values_of(s);
    double cost = values.empty() ? 0 : expression_cost(values, c);
    if (s.kind == Kind::store) cost += access_cost(s.offset, c);
    return c.times * (cost + 1) + of(s.body, c);
  }

  double vectors(const Stmt& s) const {
    const KernelTile& t = kernel_.tiles[static_cast<std::size_t>(s.tile)];
    return t.rows *
           std::ceil(static_cast<double>(number(s.columns)) / target_.lanes(byte_size(t.dtype)));
  }

  double multiply_cost(const Stmt& s) const {
    const std::int64_t rows = kernel_.tiles[static_cast<std::size_t>(s.tile)].rows;
    const TileShape tile{rows, static_cast<std::int64_t>(vectors(s)) / rows};
    return static_cast<double>(number(s.extent)) * tile.cycles();
  }

  // The side that runs, if positions decide; else the more expensive one.
  double of_branch(const Stmt& s, const Context& c) {
    const Value& v = s.condition;
    const double own = 2 * c.times;
    const bool compares = v.is(ops::lt) || v.is(ops::le) || v.is(ops::eq);
    if (!compares || !v.operand(0).is(ops::dims) || !v.operand(1).is(ops::dims))
      return own + std::max(of(s.body, c), of(s.otherwise, c));
    const std::int64_t a = number(v.operand(0).attrs().dims("dims").at(0)),
                       b = number(v.operand(1).attrs().dims("dims").at(0));
    const bool holds = v.is(ops::lt) ? a < b : v.is(ops::le) ? a <= b : a == b;
    return own + of(holds ? s.body : s.otherwise, c);
  }

  double of_loop(const Stmt& s, const Context& c) {
    const auto extent = static_cast<double>(number(s.extent));
    Context inner = c;
    inner.times *= extent;
    if (s.loop == LoopKind::lanes) {
      inner.lane_var = s.var;
      inner.lanes = target_.lanes(4);
      inner.times = c.times * std::ceil(extent / inner.lanes);
    }
    // A loop costs one or two instructions per iteration.
    double cost = 2 * inner.times;
    const std::vector<std::int64_t> turns = samples(s);
    const std::string name = loop_symbol(s.var, s.extent).name();
    if (turns.empty()) return cost + of(s.body, inner);
    // Each sampled iteration of a grid counts for an equal share; in other loops the last one
    // counts once.
    const bool is_even = s.loop == LoopKind::grid;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      Context part = inner;
      const double share = is_even                ? 1 / static_cast<double>(turns.size())
                           : i + 1 < turns.size() ? (extent - 1) / extent
                                                  : 1 / extent;
      part.times *= turns.size() == 1 ? 1 : share;
      now_[name] = turns[i];
      cost += of(s.body, part);
    }
    now_.erase(name);
    return cost;
  }

  // Iterations to sample; empty: all cost the same.
  std::vector<std::int64_t> samples(const Stmt& s) const {
    constexpr std::int64_t of_grid = 4;
    const std::int64_t last = number(s.extent) - 1;
    if (!has_tiles() || last < 1) return {};
    std::vector<std::int64_t> out;
    if (s.loop == LoopKind::grid) {
      for (std::int64_t i = 0; i < std::min(of_grid, last + 1); ++i)
        out.push_back(last * i / (std::min(of_grid, last + 1) - 1));
      return out;
    }
    const bool decides = std::ranges::any_of(s.body, [&](const Stmt& inner) {
      const Value& v = inner.kind == Stmt::Kind::branch ? inner.condition : inner.value;
      return v && inner.kind != Stmt::Kind::store && dependences(v).loops.contains(s.var);
    });
    return decides ? std::vector<std::int64_t>{0, last} : std::vector<std::int64_t>{};
  }

  const Kernel& kernel_;
  const TargetInfo& target_;
  std::unordered_map<std::string, std::int64_t> now_;
};

// Elements that a nest loads from and stores to each parameter.
void count_accesses(const Block& block, double times, std::vector<double>& counts) {
  auto note = [&](std::int64_t param) {
    if (const auto p = static_cast<std::size_t>(param); p < counts.size()) counts[p] += times;
  };
  for (const Stmt& s : block) {
    if (s.kind == Stmt::Kind::store) note(s.param);
    const std::vector<Value> values = values_of(s);
    for (NodeId n : values.empty() ? std::vector<NodeId>() : nodes_below(values))
      if (const Graph& graph = values[0].graph(); &graph.op(n) == &ops::load)
        note(graph.attrs(n).integer("param"));
    const bool repeats = s.kind == Stmt::Kind::loop;
    count_accesses(s.body, repeats ? times * typical(s.extent) : times, counts);
    count_accesses(s.otherwise, times, counts);
  }
}

// For each parameter at most its size, and for a nest at most what it accesses. Repeated accesses
// are moved again if the part of a chunk does not fit in the L2 cache.
double bytes_of(const Kernel& k, const TargetInfo& target) {
  std::vector<double> counts(k.params.size(), INFINITY);
  if (k.tiles.empty()) {
    counts.assign(k.params.size(), 0);
    count_accesses(k.body, 1, counts);
  }
  const double kept = static_cast<double>(target.l2_bytes) * std::max(typical(k.chunks), 1.0);
  double bytes = 0;
  for (std::size_t p = 0; p < k.params.size(); ++p) {
    const KernelParam& param = k.params[p];
    double n = 1;
    for (std::size_t i = 0; i < param.dims.size(); ++i)
      if (!(param.strides[i] == Dim(0))) n *= typical(param.dims[i]);
    const double size = byte_size(param.dtype);
    const bool is_moved_again = std::isfinite(counts[p]) && n * size > kept;
    bytes += (is_moved_again ? counts[p] : std::min(n, counts[p])) * size;
  }
  return bytes;
}

}  // namespace

bool is_expensive(const Op& op) { return op.cost >= 10; }

bool has_expensive(Value v) {
  return std::ranges::any_of(nodes_below(std::span(&v, 1)),
                             [&](NodeId n) { return is_expensive(v.graph().op(n)); });
}

double predicted_ms(const Kernel& k, const TargetInfo& target) {
  const double instructions = Costs(k, target).of(k.body, {});
  const double bytes = bytes_of(k, target);
  const double rate =
      bytes < static_cast<double>(target.l2_bytes) ? target.cache_gbytes : target.memory_gbytes;
  const double ms = std::max(instructions / instructions_per_ms(target), bytes / (rate * 1e6));
  // Rates are for one thread, and a kernel of several chunks runs on at least two threads: of three
  // chunks, one thread takes two.
  constexpr double worth_dividing_ms = 0.05;
  if (ms <= worth_dividing_ms) return ms;
  const double chunks = std::max(typical(k.chunks), 1.0);
  return chunks < static_cast<double>(enough_chunks) ? ms * 2 * std::ceil(chunks / 2) / chunks : ms;
}

double predicted_ms(const Candidate& c, const TargetInfo& target) {
  double ms = 0;
  for (const Candidate::Step& s : c.steps) {
    if (s.prepare) continue;
    const auto* kernel = std::get_if<Kernel>(&s.what);
    HONE_ASSERT(kernel, "a library call has no predicted time");
    ms += predicted_ms(*kernel, target) + target.launch_us * 1e-3;
  }
  return ms;
}

}  // namespace hone
