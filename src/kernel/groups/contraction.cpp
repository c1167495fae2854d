#include "kernel/groups/contraction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernel/nest/blocking.h"
#include "kernel/nest/cost.h"
#include "kernel/nest/loops.h"
#include "kernel/problem/anchored.h"
#include "kernel/problem/group_problem.h"
#include "kernel/walk.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// Elements that a thread may fetch at once for a step.
constexpr std::int64_t most_fetched = 8;

// The tile of a group is m x n, in steps of k; that of a thread is rows x columns. With two stages
// the tiles of a step are loaded into registers while the previous step is multiplied.
struct Tiling {
  std::int64_t m = 64, n = 64, k = 16, rows = 4, columns = 4, stages = 1;

  std::int64_t threads() const { return m / rows * (n / columns); }
  std::int64_t bytes(DType t) const { return stages * (m + n) * k * byte_size(t); }
  bool fits(const TargetInfo& target, DType t) const {
    return m % rows == 0 && n % columns == 0 && threads() <= target.group_threads &&
           bytes(t) <= target.group_bytes && (stages == 1 || is_fetched_at_once());
  }
  bool is_fetched_at_once() const {
    return stages == 2 && ceil_ratio(std::max(m, n) * k, threads()) <= most_fetched;
  }
  Tuning named() const {
    return {{"tile_m", m},  {"tile_n", n},        {"tile_k", k},
            {"rows", rows}, {"columns", columns}, {"stages", stages}};
  }
};

std::int64_t tile_size(const Dim& d, std::int64_t most) {
  const auto size = static_cast<std::uint64_t>(tiling_size(d));
  return std::min(most, static_cast<std::int64_t>(std::bit_ceil(size)));
}

Tiling one_stage_tiling(const GroupProblem& p, const TargetInfo& target, DType t) {
  Tiling x;
  // With 8 x 8 sums a thread does four multiplications per element that it reads.
  constexpr Tiling large{128, 128, 8, 8, 8};
  constexpr double enough_tiles = 128;
  if (typical(p.batch) * std::floor(typical(p.m) / 128) * std::floor(typical(p.n) / 128) >=
          enough_tiles &&
      large.fits(target, t))
    return large;
  x.m = tile_size(p.m, 64), x.n = tile_size(p.n, 64), x.k = tile_size(p.k, 16);
  // Fewer large tiles would leave most of the machine idle.
  constexpr double least_tiles = 64;
  constexpr std::int64_t least_side = 16;
  const auto tiles = [&] {
    return typical(p.batch) * std::ceil(typical(p.m) / static_cast<double>(x.m)) *
           std::ceil(typical(p.n) / static_cast<double>(x.n));
  };
  while (tiles() < least_tiles && std::max(x.m, x.n) > least_side) (x.m > x.n ? x.m : x.n) /= 2;
  x.rows = std::clamp<std::int64_t>(x.m / 8, 1, 8);
  x.columns = std::clamp<std::int64_t>(x.n / 8, 1, 4);
  while (x.bytes(t) > target.group_bytes && x.k > 1) x.k /= 2;
  while (x.bytes(t) > target.group_bytes && x.m + x.n > 2) (x.m > x.n ? x.m : x.n) /= 2;
  x.rows = std::min(x.rows, x.m), x.columns = std::min(x.columns, x.n);
  while (x.threads() > target.group_threads) {
    if (x.rows <= x.columns && x.rows < x.m)
      x.rows *= 2;
    else
      x.columns *= 2;
  }
  // Each step waits for memory, so threads that read little should read more at once.
  constexpr std::int64_t most_k = 64, most_read = 4;
  while (x.k * 2 <= std::min(most_k, tile_size(p.k, most_k)) &&
         std::max(x.m, x.n) * x.k * 2 <= most_read * x.threads() &&
         x.bytes(t) * 2 <= target.group_bytes)
    x.k *= 2;
  return x;
}

// If a step's tiles fit in registers, loading them during the previous multiplication is faster.
Tiling default_tiling(const GroupProblem& p, const TargetInfo& target, DType t) {
  const Tiling one = one_stage_tiling(p, target, t);
  Tiling two = one;
  two.stages = 2;
  return two.fits(target, t) ? two : one;
}

Tiling tiling_of(const GroupProblem& p, const TargetInfo& target, DType t, const Tuning& tuning) {
  const Tiling usual = default_tiling(p, target, t);
  Tiling x{value_or(tuning, "tile_m", usual.m),        value_or(tuning, "tile_n", usual.n),
           value_or(tuning, "tile_k", usual.k),        value_or(tuning, "rows", usual.rows),
           value_or(tuning, "columns", usual.columns), value_or(tuning, "stages", usual.stages)};
  const bool is_positive = std::min({x.m, x.n, x.k, x.rows, x.columns}) > 0;
  return is_positive && x.fits(target, t) ? x : usual;
}

// Writes the statements of one kernel.
class GroupContractionWriter {
 public:
  GroupContractionWriter(Kernel& kernel, AnchoredGroup& group, const GroupProblem& p,
                         const Tiling& t, DType accumulate)
      : kernel_(kernel),
        lowering_(group.lowering()),
        positions_(group.lowering().positions()),
        p_(p),
        t_(t),
        accumulate_(accumulate),
        a_memory_(static_cast<int>(kernel.params.size())),
        b_memory_(a_memory_ + 1) {}

  // The operands and results as expressions of the indices below.
  struct Parts {
    Dim b = 0, m = 0, n = 0, k = 0;
    Value a_value, b_value, element;
    Block stores;
  };

  void write(const Parts& parts) {
    const std::int64_t size = byte_size(accumulate_);
    const auto whole_lines = [&](std::int64_t elements) {
      return ceil_ratio(elements * size, 64) * 64;
    };
    const std::int64_t a_elements = t_.stages * t_.m * t_.k, b_elements = t_.stages * t_.k * t_.n;
    kernel_.memory = {{accumulate_, a_elements, 0, MemoryScope::group},
                      {accumulate_, b_elements, whole_lines(a_elements), MemoryScope::group}};
    if (t_.stages > 1) {
      const std::int64_t a = turns(t_.m * t_.k), b = turns(t_.k * t_.n);
      kernel_.memory.push_back({accumulate_, a, 0, MemoryScope::thread});
      kernel_.memory.push_back({accumulate_, b, whole_lines(a), MemoryScope::thread});
      kernel_.scratch_bytes = whole_lines(a) + whole_lines(b);
    }
    kernel_.tiles = {{accumulate_, static_cast<int>(t_.rows), static_cast<int>(t_.columns)}};
    const Dim row_blocks = ceil_div(p_.m, t_.m), column_blocks = ceil_div(p_.n, t_.n);
    kernel_.chunks = p_.batch * row_blocks * column_blocks;
    const Dim chunk = positions_.add_loop(kernel_.chunks);
    const Dims block = positions_.split(chunk, Dims{p_.batch, row_blocks, column_blocks});
    batch_ = block[0];
    first_m_ = block[1] * Dim(t_.m), first_n_ = block[2] * Dim(t_.n);
    thread_ = positions_.add_loop(t_.threads());
    const Dim across = t_.n / t_.columns;
    thread_m_ = positions_.quotient(thread_, across) * Dim(t_.rows);
    thread_n_ = positions_.remainder(thread_, across) * Dim(t_.columns);
    Stmt group = loop(LoopKind::group, thread_);
    group.body = steps(parts);
    for (Stmt& s : results(parts)) group.body.push_back(std::move(s));
    Stmt grid = loop(LoopKind::grid, chunk);
    grid.body.push_back(std::move(group));
    Block body;
    body.push_back(std::move(grid));
    find_sizes(kernel_, body);
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = std::move(body);
  }

 private:
  Stmt loop(LoopKind kind, const Dim& var) const {
    Stmt s{.kind = Kind::loop, .loop = kind, .var = *loop_of(var)};
    s.extent = positions_.extent(var);
    return s;
  }

  Block steps(const Parts& parts) {
    Block out;
    out.push_back({.kind = Kind::tile_fill, .value = number(0)});
    out[0].tile = 0, out[0].columns = t_.columns;
    const Dim step = positions_.add_loop(ceil_div(p_.k, t_.k));
    Stmt steps = loop(LoopKind::serial, step);
    const Dim stage = t_.stages > 1 ? positions_.remainder(step, 2) : Dim(0);
    if (t_.stages == 1) {
      fill(parts, step, Through::nothing, steps.body);
      steps.body.push_back({.kind = Kind::barrier});
    } else {
      const Dim next = step + Dim(1), count = positions_.extent(step);
      Block first, fetch;
      fill(parts, 0, Through::registers, first);
      if (count.low() > 0)
        std::ranges::move(first, std::back_inserter(out));
      else
        out.push_back(branch(lowering_.below(0, count), std::move(first), {}));
      put(parts, stage, steps.body);
      steps.body.push_back({.kind = Kind::barrier});
      fill(parts, next, Through::registers, fetch);
      steps.body.push_back(branch(lowering_.below(next, count), std::move(fetch), {}));
    }
    const Dim first_k = step * Dim(t_.k);
    Stmt multiply{.kind = Kind::tile_multiply};
    multiply.tile = 0, multiply.columns = t_.columns;
    multiply.extent = divides(t_.k, p_.k) ? Dim(t_.k) : min(t_.k, p_.k - first_k);
    multiply.a.param = a_memory_;
    multiply.a.offset = stage * Dim(t_.m * t_.k) + thread_m_ * Dim(t_.k);
    for (std::int64_t r = 0; r < t_.rows; ++r) multiply.a.rows.push_back(r * t_.k);
    multiply.b.param = b_memory_;
    multiply.b.offset = stage * Dim(t_.k * t_.n) + thread_n_;
    multiply.b.stride = t_.n;
    steps.body.push_back(std::move(multiply));
    // With two stages the next step is stored elsewhere.
    if (t_.stages == 1) steps.body.push_back({.kind = Kind::barrier});
    out.push_back(std::move(steps));
    return out;
  }

  static bool divides(std::int64_t part, const Dim& whole) { return mod(whole, part) == Dim(0); }

  Value number(double x) const { return lowering_.number(x, accumulate_); }

  std::int64_t turns(std::int64_t elements) const { return ceil_ratio(elements, t_.threads()); }

  // Element i of a tile is written by thread i mod threads, in one of its iterations.
  Stmt filled(std::int64_t elements,
              const std::function<Block(const Dim& i, const Dim& turn)>& element) {
    const std::int64_t threads = t_.threads();
    const Dim turn = positions_.add_loop(turns(elements));
    const Dim i = turn * Dim(threads) + thread_;
    // If unrolled, all reads of a thread are in flight at once.
    const bool is_short = positions_.extent(turn).number() <= most_fetched;
    Stmt s = loop(is_short ? LoopKind::unrolled : LoopKind::serial, turn);
    s.body = element(i, turn);
    if (elements % threads != 0)
      s.body = Block{branch(lowering_.below(i, elements), std::move(s.body), {})};
    return s;
  }

  static Stmt branch(Value condition, Block body, Block otherwise) {
    Stmt s{.kind = Kind::branch, .condition = condition};
    s.body = std::move(body);
    s.otherwise = std::move(otherwise);
    return s;
  }

  Value all(const Values& conditions) const {
    Value out;
    for (Value c : conditions) out = out ? lowering_.apply(ops::bit_and, {out, c}) : c;
    return out;
  }

  // Stores the element if it is inside, else 0.
  Block guarded(int memory, const Dim& at, Value element, const Values& conditions) {
    Stmt store{.kind = Kind::store, .param = memory, .offset = at, .value = element};
    if (conditions.empty()) return {store};
    Stmt zero{.kind = Kind::store, .param = memory, .offset = at, .value = number(0)};
    return {branch(all(conditions), {store}, {zero})};
  }

  // m, n or k of the problem: its index in Parts, and the part of it in a tile.
  struct Axis {
    Dim var, first, extent;
    std::int64_t tile;
  };

  // The tiles of a step are stored to group memory at once, or held in registers until put().
  enum class Through : std::uint8_t { nothing, registers };
  void fill(const Parts& parts, const Dim& step, Through through, Block& out) {
    const Axis m{parts.m, first_m_, p_.m, t_.m}, n{parts.n, first_n_, p_.n, t_.n},
        k{parts.k, step * Dim(t_.k), p_.k, t_.k};
    out.push_back(fill(a_memory_, parts, parts.a_value, m, k, through));
    out.push_back(fill(b_memory_, parts, parts.b_value, k, n, through));
  }
  void put(const Parts& parts, const Dim& stage, Block& out) {
    const auto held = [&](int memory, Value element, const Dim& rows_var, std::int64_t rows,
                          const Dim& columns_var, std::int64_t columns) {
      const bool along_rows = lies_along_rows(element, rows_var, columns_var);
      out.push_back(filled(rows * columns, [&](const Dim& i, const Dim& turn) {
        const auto [row, column] = place(i, rows, columns, along_rows);
        Stmt store{.kind = Kind::store, .param = memory};
        store.offset = stage * Dim(rows * columns) + row * Dim(columns) + column;
        store.value = lowering_.load(memory + 2, accumulate_, turn);
        return Block{store};
      }));
    };
    held(a_memory_, parts.a_value, parts.m, t_.m, parts.k, t_.k);
    held(b_memory_, parts.b_value, parts.k, t_.k, parts.n, t_.n);
  }

  // Neighbouring threads read adjacent elements.
  static bool lies_along_rows(Value element, const Dim& rows, const Dim& columns) {
    return stride_of_loads(element, rows) == 1 && stride_of_loads(element, columns) != 1;
  }
  std::pair<Dim, Dim> place(const Dim& i, std::int64_t rows, std::int64_t columns,
                            bool along_rows) {
    const Dim by = along_rows ? rows : columns;
    const Dim outer = positions_.quotient(i, by), inner = positions_.remainder(i, by);
    return along_rows ? std::pair(inner, outer) : std::pair(outer, inner);
  }

  // Fills the tile of an operand, stored row by row.
  Stmt fill(int memory, const Parts& parts, Value element, const Axis& rows, const Axis& columns,
            Through through) {
    const bool along_rows = lies_along_rows(element, rows.var, columns.var);
    return filled(rows.tile * columns.tile, [&](const Dim& i, const Dim& turn) {
      const auto [row, column] = place(i, rows.tile, columns.tile, along_rows);
      Values conditions;
      std::vector<Replacement> places = {{parts.b, batch_}};
      for (const auto& [axis, at] : {std::pair(rows, row), std::pair(columns, column)}) {
        const Dim place = axis.first + at;
        if (!divides(axis.tile, axis.extent))
          conditions.push_back(lowering_.below(place, axis.extent));
        places.push_back({axis.var, place});
      }
      const bool is_held = through == Through::registers;
      return guarded(is_held ? memory + 2 : memory,
                     is_held ? turn : row * Dim(columns.tile) + column,
                     Rewriter(lowering_.graph(), std::move(places))(element), conditions);
    });
  }

  static std::optional<std::int64_t> stride_of_loads(Value v, const Dim& var) {
    for (NodeId n : nodes_below(std::span(&v, 1))) {
      const Value load(&v.graph(), n);
      if (!load.is(ops::load)) continue;
      if (auto stride = stride_along(load, var); stride && *stride != 0) return stride;
    }
    return std::nullopt;
  }

  // Each thread stores its tile of the results.
  Block results(const Parts& parts) {
    const Dim r = positions_.add_loop(t_.rows), c = positions_.add_loop(t_.columns);
    const Dim m = first_m_ + thread_m_ + r, n = first_n_ + thread_n_ + c;
    const Type type(accumulate_, Shape());
    Value element = lowering_.graph().intern_typed(
        ops::tile_element, {},
        {{"index", std::int64_t{0}}, {"dtype", accumulate_}, {"offset", Dims{r, c}}},
        std::span(&type, 1));
    if (parts.element.dtype() != accumulate_)
      element = lowering_.convert(element, parts.element.dtype());
    Block stores = parts.stores;
    Rewriter rewriter(lowering_.graph(), {{parts.b, batch_}, {parts.m, m}, {parts.n, n}});
    rewriter.set(parts.element, element);
    rewriter(stores);
    Values conditions;
    if (!divides(t_.m, p_.m)) conditions.push_back(lowering_.below(m, p_.m));
    if (!divides(t_.n, p_.n)) conditions.push_back(lowering_.below(n, p_.n));
    if (!conditions.empty()) stores = Block{branch(all(conditions), std::move(stores), {})};
    // Unrolling an expensive body for each element slows down compilers.
    const bool is_long = std::ranges::any_of(values_of(stores), has_expensive);
    Stmt columns = loop(LoopKind::unrolled, c),
         rows = loop(is_long ? LoopKind::serial : LoopKind::unrolled, r);
    columns.body = std::move(stores);
    rows.body.push_back(std::move(columns));
    Block out;
    out.push_back(std::move(rows));
    return out;
  }

  Kernel& kernel_;
  Lowering& lowering_;
  Positions& positions_;
  const GroupProblem& p_;
  const Tiling& t_;
  DType accumulate_;
  int a_memory_, b_memory_;
  Dim batch_ = 0, first_m_ = 0, first_n_ = 0, thread_ = 0, thread_m_ = 0, thread_n_ = 0;
};

std::optional<GroupContractionWriter::Parts> parts_of(AnchoredGroup& group, const GroupProblem& p,
                                                      DType accumulate) {
  group.set_operands(std::array{p.a, p.b}, 0);
  Positions& positions = group.lowering().positions();
  GroupContractionWriter::Parts parts;
  parts.b = positions.add_loop(p.batch), parts.m = positions.add_loop(p.m);
  parts.n = positions.add_loop(p.n), parts.k = positions.add_loop(p.k);
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  auto at = [&](const Dim& var) { return positions.extent(var) == Dim(1) ? Dim(0) : var; };
  const Dim b = at(parts.b), m = at(parts.m), n = at(parts.n), k = at(parts.k);
  const auto left =
      group.element(p.a, p.a_at(b, m, k), std::array{parts.b, parts.m, parts.k}, accumulate);
  const auto right =
      group.element(p.b, p.b_at(b, n, k), std::array{parts.b, parts.k, parts.n}, accumulate);
  const auto epilogue = group.epilogue(p.c_at(b, m, n), std::array{parts.b, parts.m, parts.n});
  if (!left || !right || !epilogue) return std::nullopt;
  parts.a_value = left->value, parts.b_value = right->value;
  parts.stores = epilogue->stores;
  parts.element = epilogue->element;
  return parts;
}

}  // namespace

std::optional<Candidate> group_contraction_candidate(const GroupSpec& spec,
                                                     const TargetInfo& target,
                                                     const Tuning& tuning) {
  std::optional<FoundGroupContraction> found = find_group_contraction(spec, target);
  if (!found) return std::nullopt;
  AnchoredGroup& group = found->group;
  const GroupProblem p = problem_of(group);
  const std::optional<GroupContractionWriter::Parts> parts = parts_of(group, p, found->accumulate);
  if (!parts) return std::nullopt;
  const Tiling t = tiling_of(p, target, found->accumulate, tuning);
  Kernel kernel = group.kernel();
  GroupContractionWriter(kernel, group, p, t, found->accumulate).write(*parts);
  Candidate out;
  out.name = "generated";
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

std::vector<Tuning> group_contraction_space(const GroupSpec& spec, const TargetInfo& target) {
  std::optional<FoundGroupContraction> found = find_group_contraction(spec, target);
  if (!found) return {};
  const GroupProblem p = problem_of(found->group);
  std::vector<Tuning> out = {default_tiling(p, target, found->accumulate).named()};
  for (Tiling t : {Tiling{128, 128, 8, 8, 8}, Tiling{128, 64, 16, 8, 4}, Tiling{64, 64, 16, 4, 4},
                   Tiling{64, 64, 16, 8, 4}, Tiling{64, 64, 8, 8, 8}, Tiling{32, 64, 16, 2, 4},
                   Tiling{32, 32, 16, 4, 4}, Tiling{32, 32, 16, 2, 2}, Tiling{32, 32, 32, 4, 4},
                   Tiling{16, 16, 16, 1, 1}}) {
    for (t.stages = 1; t.stages <= 2; ++t.stages) {
      const Tuning named = t.named();
      if (t.fits(target, found->accumulate) && std::ranges::find(out, named) == out.end())
        out.push_back(named);
    }
  }
  return out;
}

}  // namespace hone
