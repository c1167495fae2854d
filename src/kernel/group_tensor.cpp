#include "kernel/group_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernel/blocking.h"
#include "kernel/group_problem.h"
#include "kernel/loops.h"
#include "kernel/walk.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

constexpr std::int64_t vector_width = 8;  // elements of 16 bytes
constexpr std::int64_t subgroup = 32;
// Rows of a tile in memory begin at different banks.
constexpr std::int64_t row_gap = 8;

// The tile of a group is m x n, in steps of k; that of a subgroup rows x columns.
struct TensorTiling {
  std::int64_t m = 64, n = 64, k = 32, rows = 32, columns = 32;

  std::int64_t threads() const { return m / rows * (n / columns) * subgroup; }
  bool fits(const TargetInfo& target) const {
    return std::min({m, n, k, rows, columns}) >= 16 && m % rows == 0 && n % columns == 0 &&
           rows % 16 == 0 && columns % 16 == 0 && k % 16 == 0 &&
           m * k % (vector_width * threads()) == 0 && n * k % (vector_width * threads()) == 0 &&
           threads() <= target.group_threads &&
           ((m + row_gap) * (k + row_gap) + (k + row_gap) * (n + row_gap)) * 2 <=
               target.group_bytes;
  }
  Tuning named() const {
    return {{"tile_m", m}, {"tile_n", n}, {"tile_k", k}, {"rows", rows}, {"columns", columns}};
  }
};

// Large tiles read each operand seldom; small ones keep the whole machine busy.
constexpr TensorTiling tensor_tilings[] = {
    {128, 128, 32, 64, 32}, {128, 64, 32, 32, 32}, {64, 128, 32, 32, 32}, {64, 64, 32, 32, 32},
    {64, 64, 64, 32, 32},   {32, 64, 64, 16, 32},  {64, 32, 64, 32, 16},  {32, 32, 64, 16, 16},
    {16, 64, 64, 16, 16},   {16, 32, 64, 16, 16},  {32, 16, 64, 16, 16},  {16, 16, 64, 16, 16},
    {16, 16, 32, 16, 16}};

double tiles_of(const GroupProblem& p, const TensorTiling& t) {
  return typical(p.batch) * std::ceil(typical(p.m) / static_cast<double>(t.m)) *
         std::ceil(typical(p.n) / static_cast<double>(t.n));
}

// The largest with so many tiles that no part of the machine is idle, which wastes little.
TensorTiling default_tensor_tiling(const GroupProblem& p, const TargetInfo& target) {
  constexpr double enough_tiles = 200;
  const auto waste = [&](const TensorTiling& t) {
    return tiles_of(p, t) * static_cast<double>(t.m * t.n) /
           (typical(p.batch) * typical(p.m) * typical(p.n));
  };
  const TensorTiling* last = nullptr;
  for (const TensorTiling& t : tensor_tilings) {
    if (!t.fits(target)) continue;
    if (!last || waste(t) < waste(*last) || tiles_of(p, t) > tiles_of(p, *last)) last = &t;
    if (tiles_of(p, t) >= enough_tiles && waste(t) < 1.5) return t;
  }
  return last ? *last : tensor_tilings[std::size(tensor_tilings) - 1];
}

// How an operand is read: its element at (free, depth), of which one may be given as so many
// vectors and the place in a vector.
struct Side {
  Value element;
  bool along_depth = true;  // what is neighbouring there lies side by side, in memory and in tiles
  std::int64_t width = 1;   // elements that are read at once
  Dim free, depth;          // variables; of the one that is read in vectors, their number
  Dim lane = 0;             // in a vector
};

class GroupTensorWriter {
 public:
  GroupTensorWriter(Kernel& kernel, AnchoredGroup& group, const GroupProblem& p,
                    const TensorTiling& t)
      : kernel_(kernel),
        lowering_(group.lowering()),
        positions_(group.lowering().positions()),
        p_(p),
        t_(t),
        dtype_(p.a.dtype()) {}

  struct Parts {
    Dim b = 0, m = 0, n = 0;
    Side left, right;
    Value element;
    Block stores;
  };

  void write(const Parts& parts) {
    const int first = static_cast<int>(kernel_.params.size());
    a_ = {parts.left, first, first + 2, t_.m};
    b_ = {parts.right, first + 1, first + 3, t_.n};
    for (Operand* o : {&a_, &b_})
      kernel_.memory.push_back({dtype_, o->lines(t_.k) * o->pitch(t_.k), 0, MemoryScope::group});
    for (Operand* o : {&a_, &b_})
      kernel_.memory.push_back({dtype_, o->tile * t_.k / t_.threads(), 0, MemoryScope::thread});
    lay_out();
    kernel_.tiles.assign(static_cast<std::size_t>(t_.columns / 8),
                         {DType::f32, static_cast<int>(t_.rows / 8), 2});
    const Dim row_blocks = ceil_div(p_.m, t_.m), column_blocks = ceil_div(p_.n, t_.n);
    kernel_.chunks = p_.batch * row_blocks * column_blocks;
    const Dim chunk = positions_.add_loop(kernel_.chunks);
    const Dims block = positions_.split(chunk, Dims{p_.batch, column_blocks, row_blocks});
    batch_ = block[0];
    a_.first = block[2] * Dim(t_.m), b_.first = block[1] * Dim(t_.n);
    a_.extent = p_.m, b_.extent = p_.n;
    thread_ = positions_.add_loop(t_.threads());
    const Dim lane = positions_.remainder(thread_, subgroup),
              number = positions_.quotient(thread_, subgroup), across = t_.n / t_.columns;
    thread_m_ = positions_.quotient(number, across) * Dim(t_.rows) + positions_.quotient(lane, 4);
    thread_n_ = positions_.remainder(number, across) * Dim(t_.columns) +
                positions_.remainder(lane, 4) * Dim(2);
    Stmt threads = loop(LoopKind::group, thread_);
    threads.body = steps(parts);
    for (std::size_t i = 0; i < kernel_.tiles.size(); ++i)
      threads.body.push_back(results(parts, static_cast<int>(i)));
    Stmt grid = loop(LoopKind::grid, chunk);
    grid.body.push_back(std::move(threads));
    Block body;
    body.push_back(std::move(grid));
    find_sizes(kernel_, body);
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = std::move(body);
  }

 private:
  // One of the two, its tile and what of that a thread holds.
  struct Operand {
    Side side;
    int memory = 0, held = 0;
    std::int64_t tile = 0;  // along the free axis
    Dim first = 0, extent = 0;

    std::int64_t lines(std::int64_t k) const { return side.along_depth ? tile : k; }
    std::int64_t line(std::int64_t k) const { return side.along_depth ? k : tile; }
    std::int64_t pitch(std::int64_t k) const { return line(k) + row_gap; }
  };

  // Places within what a group shares, and within what a thread has.
  void lay_out() {
    Dim places[2] = {0, 0};
    for (KernelMemory& m : kernel_.memory) {
      Dim& place = places[m.scope == MemoryScope::group ? 0 : 1];
      m.offset = place;
      place = place + ceil_div(m.elements * Dim(byte_size(m.dtype)), 64) * Dim(64);
    }
    kernel_.scratch_bytes = places[1];
  }

  Stmt loop(LoopKind kind, const Dim& var) const {
    Stmt s{.kind = Kind::loop, .loop = kind, .var = *loop_of(var)};
    s.extent = positions_.extent(var);
    return s;
  }
  static Stmt branch(Value condition, Block body, Block otherwise = {}) {
    Stmt s{.kind = Kind::branch, .condition = condition};
    s.body = std::move(body);
    s.otherwise = std::move(otherwise);
    return s;
  }
  static bool divides(std::int64_t part, const Dim& whole) { return mod(whole, part) == Dim(0); }
  Value all(const Values& conditions) const {
    Value out;
    for (Value c : conditions) out = out ? lowering_.apply(ops::bit_and, {out, c}) : c;
    return out;
  }

  // The tiles of step i are fetched while those of the step before it are multiplied.
  Block steps(const Parts& parts) {
    Block out;
    for (std::size_t i = 0; i < kernel_.tiles.size(); ++i) {
      Stmt fill{.kind = Kind::tile_fill, .value = lowering_.number(0, DType::f32)};
      fill.tile = static_cast<int>(i), fill.columns = 2;
      out.push_back(std::move(fill));
    }
    fetch(parts, 0, out);
    const Dim count = ceil_div(p_.k, t_.k), step = positions_.add_loop(count);
    Stmt each = loop(LoopKind::serial, step);
    put(a_, each.body);
    put(b_, each.body);
    each.body.push_back({.kind = Kind::barrier});
    Block next;
    fetch(parts, step + Dim(1), next);
    each.body.push_back(branch(lowering_.below(step + Dim(1), count), std::move(next)));
    each.body.push_back(multiply());
    each.body.push_back({.kind = Kind::barrier});
    out.push_back(std::move(each));
    return out;
  }

  // Vector i of a tile, in order of lines, is that of thread i mod threads.
  struct Place {
    Dim line, start;  // of its first element
  };
  Place place_of(const Operand& o, const Dim& turn) {
    const Dim each = o.line(t_.k) / vector_width, i = turn * Dim(t_.threads()) + thread_;
    return {positions_.quotient(i, each), positions_.remainder(i, each) * Dim(vector_width)};
  }
  Dim turns(const Operand& o) { return o.tile * t_.k / (vector_width * t_.threads()); }

  void fetch(const Parts& parts, const Dim& step, Block& out) {
    for (const Operand* o : {&a_, &b_}) {
      const Dim turn = positions_.add_loop(turns(*o));
      Stmt all_turns = loop(LoopKind::unrolled, turn);
      const Place at = place_of(*o, turn);
      const Dim first_k = step * Dim(t_.k);
      const Dim along = o->side.along_depth ? first_k + at.start : o->first + at.start,
                across = o->side.along_depth ? o->first + at.line : first_k + at.line;
      const Dim extent_along = o->side.along_depth ? p_.k : o->extent,
                extent_across = o->side.along_depth ? o->extent : p_.k;
      const Dim lane = positions_.add_loop(vector_width);
      const Dim to = turn * Dim(vector_width) + lane;
      // As many as are read at once are all inside, or none is.
      const Dim one = o->side.width > 1 ? along : along + lane;
      Values conditions;
      if (!divides(o->side.along_depth ? o->tile : t_.k, extent_across))
        conditions.push_back(lowering_.below(across, extent_across));
      if (!divides(o->side.along_depth ? t_.k : o->tile, extent_along))
        conditions.push_back(lowering_.below(one, extent_along));
      Dim free = o->side.along_depth ? across : along + lane,
          depth = o->side.along_depth ? along + lane : across;
      std::vector<Replacement> places = {{parts.b, batch_}};
      if (o->side.width > 1) {
        places.push_back({o->side.lane, lane});
        (o->side.along_depth ? depth : free) = positions_.quotient(along, vector_width);
      }
      places.push_back({o->side.free, free});
      places.push_back({o->side.depth, depth});
      Stmt store{.kind = Kind::store, .param = o->held, .offset = to};
      store.value = Rewriter(lowering_.graph(), std::move(places))(o->side.element);
      Stmt zero{.kind = Kind::store, .param = o->held, .offset = to};
      zero.value = lowering_.number(0, dtype_);
      all_turns.body =
          guarded(std::move(store), std::move(zero), conditions, lane, o->side.width > 1);
      out.push_back(std::move(all_turns));
    }
  }

  Block guarded(Stmt store, Stmt zero, const Values& conditions, const Dim& lane, bool outside) {
    const auto lanes = [&](Stmt inner) {
      Stmt s = loop(LoopKind::lanes, lane);
      s.body.push_back(std::move(inner));
      return s;
    };
    Block out;
    if (conditions.empty())
      out.push_back(lanes(std::move(store)));
    else if (outside)
      out.push_back(branch(all(conditions), {lanes(std::move(store))}, {lanes(std::move(zero))}));
    else
      out.push_back(lanes(branch(all(conditions), {std::move(store)}, {std::move(zero)})));
    return out;
  }

  void put(const Operand& o, Block& out) {
    const Dim turn = positions_.add_loop(turns(o)), lane = positions_.add_loop(vector_width);
    const Place at = place_of(o, turn);
    Stmt store{.kind = Kind::store, .param = o.memory};
    store.offset = at.line * Dim(o.pitch(t_.k)) + at.start + lane;
    store.value = lowering_.load(o.held, dtype_, turn * Dim(vector_width) + lane);
    Stmt lanes = loop(LoopKind::lanes, lane), each = loop(LoopKind::unrolled, turn);
    lanes.body.push_back(std::move(store));
    each.body.push_back(std::move(lanes));
    out.push_back(std::move(each));
  }

  Stmt multiply() {
    Stmt out{.kind = Kind::intrinsic};
    out.name = multiply_halves;
    for (std::size_t i = 0; i < kernel_.tiles.size(); ++i) {
      Stmt s{.kind = Kind::tile_multiply};
      s.tile = static_cast<int>(i), s.columns = 2, s.extent = t_.k;
      const std::int64_t a_pitch = a_.pitch(t_.k), b_pitch = b_.pitch(t_.k),
                         a_line = a_.side.along_depth ? a_pitch : 1;
      s.a.param = a_.memory;
      s.a.offset = thread_m_ * Dim(a_line);
      for (std::int64_t r = 0; r < t_.rows / 8; ++r) s.a.rows.push_back(8 * r * a_line);
      s.a.stride = a_.side.along_depth ? 1 : a_pitch;
      s.b.param = b_.memory;
      const Dim column = thread_n_ + Dim(8 * static_cast<std::int64_t>(i));
      // All of a column's depth is one group of k.
      if (b_.side.along_depth) {
        s.b.offset = column * Dim(b_pitch);
        s.b.stride = 0, s.k_group = static_cast<int>(b_pitch);
      } else {
        s.b.offset = column;
        s.b.stride = b_pitch;
      }
      out.body.push_back(std::move(s));
    }
    return out;
  }

  // Each thread stores what its tile holds of the results, two neighbours at once.
  Stmt results(const Parts& parts, int tile) {
    const Dim r = positions_.add_loop(t_.rows / 8), c = positions_.add_loop(2);
    const Dim m = a_.first + thread_m_ + r * Dim(8),
              start = b_.first + thread_n_ + Dim(8 * std::int64_t{tile}), n = start + c;
    const Type type(DType::f32, Shape());
    Value element = lowering_.graph().intern_typed(
        ops::tile_element, {},
        {{"index", std::int64_t{tile}}, {"dtype", DType::f32}, {"offset", Dims{r, c}}},
        std::span(&type, 1));
    if (parts.element.dtype() != DType::f32)
      element = lowering_.convert(element, parts.element.dtype());
    Block stores = parts.stores;
    Rewriter rewriter(lowering_.graph(), {{parts.b, batch_}, {parts.m, m}, {parts.n, n}});
    rewriter.set(parts.element, element);
    rewriter(stores);
    const bool is_even = divides(2, p_.n);
    if (!is_even) stores = Block{branch(lowering_.below(n, p_.n), std::move(stores))};
    Stmt rows = loop(LoopKind::unrolled, r), columns = loop(LoopKind::lanes, c);
    columns.body = std::move(stores);
    Values conditions;
    if (!divides(t_.m, p_.m)) conditions.push_back(lowering_.below(m, p_.m));
    if (is_even && !divides(t_.n, p_.n)) conditions.push_back(lowering_.below(start, p_.n));
    if (conditions.empty())
      rows.body.push_back(std::move(columns));
    else
      rows.body.push_back(branch(all(conditions), {std::move(columns)}));
    return rows;
  }

  Kernel& kernel_;
  Lowering& lowering_;
  Positions& positions_;
  const GroupProblem& p_;
  const TensorTiling& t_;
  DType dtype_;
  Operand a_, b_;
  Dim batch_ = 0, thread_ = 0, thread_m_ = 0, thread_n_ = 0;
};

// ---- operands

// Whether all that is read lies side by side along the lane, in vectors at multiples of them, and
// what decides whether it is read does not depend on the lane.
bool reads_vectors(const Side& s) {
  bool any = false;
  for (NodeId n : nodes_below(std::span(&s.element, 1))) {
    const Value load(&s.element.graph(), n);
    if (!load.is(ops::load)) continue;
    const Dim offset = load.attrs().dims("offset").at(0);
    const std::optional<Dim> stride = stride_of(offset, s.lane);
    if (stride == Dim(0)) continue;
    const Replacement none[] = {{s.lane, 0}};
    if (!(stride == Dim(1)) || !(mod(replace(offset, none), vector_width) == Dim(0))) return false;
    if (load.operand_count() > 0 && dependences(load.operand(0)).loops.contains(*loop_of(s.lane)))
      return false;
    any = true;
  }
  return any;
}

// Weights of a convolution that neither depth nor columns run through in order are laid out as
// rows of depth, once.
struct PackedRight {
  Type type;
  Candidate::Step step;
};

std::optional<PackedRight> packed_right(const GroupSpec& spec, const AnchoredGroup& group,
                                        const GroupProblem& p, const NestMaker& make_nest) {
  const bool is_plain = p.b.is(ops::param) && group.is_weight(p.b) && p.batch == Dim(1) &&
                        p.k.is_number() && p.n.is_number() && p.n.number() % vector_width == 0;
  if (!group.anchor().is(ops::conv) || !is_plain) return std::nullopt;
  if (group.anchor().attrs().integer_or("channels_last", 0) == 0) return std::nullopt;
  const auto param = static_cast<std::size_t>(p.b.attrs().integer("index"));
  const Dims& strides = spec.param_strides[param];
  if (strides.back() == Dim(1) || strides[strides.size() - 2] == Dim(1)) return std::nullopt;
  GroupSpec packing;
  const Value w = packing.function.add_param(p.b.type(), "w");
  const Value packed = reshape_to(w, {p.k, p.n});
  packing.function.add_result(packed, "packed");
  packing.param_strides = {strides};
  packing.result_strides = {dense_strides(packed.shape())};
  packing.param_is_weight = {true};
  Candidate nest = make_nest(packing);
  if (nest.steps.size() != 1 || !nest.temporaries.empty()) return std::nullopt;
  PackedRight out{packed.type(), std::move(nest.steps[0])};
  out.step.prepare = true;
  for (Candidate::Operand& o : out.step.operands)
    o = o.kind == Candidate::Operand::Kind::param
            ? Candidate::Operand{Candidate::Operand::Kind::param, static_cast<int>(param)}
            : Candidate::Operand{Candidate::Operand::Kind::temporary, 0};
  return out;
}

class TensorOperands {
 public:
  TensorOperands(AnchoredGroup& group, const GroupProblem& p,
                 const std::optional<PackedRight>& packed)
      : group_(group), p_(p), packed_(packed), positions_(group.lowering().positions()) {}

  std::optional<GroupTensorWriter::Parts> find() {
    if (packed_)
      group_.set_operands(std::array{p_.a}, 1);
    else
      group_.set_operands(std::array{p_.a, p_.b}, 0);
    GroupTensorWriter::Parts parts;
    parts.b = positions_.add_loop(p_.batch);
    parts.m = positions_.add_loop(p_.m), parts.n = positions_.add_loop(p_.n);
    const std::optional<Side> left = side(parts.b, p_.a, p_.a_at, p_.m),
                              right =
                                  packed_ ? rows_of_depth() : side(parts.b, p_.b, p_.b_at, p_.n);
    const auto epilogue = group_.epilogue(p_.c_at(at(parts.b), at(parts.m), at(parts.n)),
                                          std::array{parts.b, parts.m, parts.n});
    if (!left || !right || !epilogue) return std::nullopt;
    parts.left = *left, parts.right = *right;
    parts.stores = epilogue->stores;
    parts.element = epilogue->element;
    return parts;
  }

 private:
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  Dim at(const Dim& var) const { return positions_.extent(var) == Dim(1) ? Dim(0) : var; }

  Side rows_of_depth() {
    Side s{.along_depth = false, .width = vector_width};
    s.free = positions_.add_loop(floor_div(p_.n, vector_width));
    s.depth = positions_.add_loop(p_.k), s.lane = positions_.add_loop(vector_width);
    s.element = group_.lowering().load(group_.set_temporary(0, packed_->type), p_.b.dtype(),
                                       s.depth * p_.n + s.free * Dim(vector_width) + s.lane);
    return s;
  }

  std::optional<Side> side(const Dim& b, Value v, const GroupProblem::Where& where,
                           const Dim& extent) {
    std::optional<Side> plain;
    for (const bool along_depth : {true, false}) {
      const Dim& along = along_depth ? p_.k : extent;
      if (!(mod(along, vector_width) == Dim(0))) continue;
      Side s{.along_depth = along_depth, .width = vector_width};
      s.free = positions_.add_loop(along_depth ? extent : floor_div(extent, vector_width));
      s.depth = positions_.add_loop(along_depth ? floor_div(p_.k, vector_width) : p_.k);
      s.lane = positions_.add_loop(vector_width);
      const Dim free = along_depth ? at(s.free) : at(s.free) * Dim(vector_width) + s.lane,
                depth = along_depth ? at(s.depth) * Dim(vector_width) + s.lane : at(s.depth);
      if (!element(s, b, v, where, free, depth)) return std::nullopt;
      if (reads_vectors(s)) return s;
    }
    Side s;
    s.free = positions_.add_loop(extent), s.depth = positions_.add_loop(p_.k);
    if (!element(s, b, v, where, at(s.free), at(s.depth))) return std::nullopt;
    s.along_depth = !(stride_of_loads(s.element, s.free) == 1);
    return s;
  }

  bool element(Side& s, const Dim& b, Value v, const GroupProblem::Where& where, const Dim& free,
               const Dim& depth) {
    const auto splice =
        group_.element(v, where(at(b), free, depth), std::array{b, s.free, s.depth}, DType::f32);
    if (!splice) return false;
    s.element = splice->value;
    if (s.element.dtype() != p_.a.dtype())
      s.element = group_.lowering().convert(s.element, p_.a.dtype());
    return true;
  }

  static std::optional<std::int64_t> stride_of_loads(Value v, const Dim& var) {
    for (NodeId n : nodes_below(std::span(&v, 1))) {
      const Value load(&v.graph(), n);
      if (!load.is(ops::load)) continue;
      if (auto stride = stride_along(load, var); stride && *stride != 0) return stride;
    }
    return std::nullopt;
  }

  AnchoredGroup& group_;
  const GroupProblem& p_;
  const std::optional<PackedRight>& packed_;
  Positions& positions_;
};

bool is_half_float(DType t) { return t == DType::f16 || t == DType::bf16; }

std::optional<FoundGroupContraction> find_tensor(const GroupSpec& spec, const TargetInfo& target) {
  if (!target.multiplies_halves) return std::nullopt;
  std::optional<FoundGroupContraction> found = find_group_contraction(spec, target);
  if (!found || found->accumulate != DType::f32) return std::nullopt;
  const Value anchor = found->group.anchor();
  for (std::size_t i = 0; i < 2; ++i)
    if (!is_half_float(anchor.operand(i).dtype()) || anchor.operand(i).dtype() != anchor.dtype())
      return std::nullopt;
  return found;
}

// Too little of a tile would be used.
bool is_worth_it(const GroupProblem& p) {
  constexpr double least = 8;
  return typical(p.m) >= least && typical(p.n) >= least && typical(p.k) >= least;
}

}  // namespace

std::optional<Candidate> group_tensor_candidate(const GroupSpec& spec, const TargetInfo& target,
                                                const Tuning& tuning, const NestMaker& make_nest) {
  std::optional<FoundGroupContraction> found = find_tensor(spec, target);
  if (!found) return std::nullopt;
  AnchoredGroup& group = found->group;
  const GroupProblem p = problem_of(group);
  if (!is_worth_it(p)) return std::nullopt;
  std::optional<PackedRight> packed = packed_right(spec, group, p, make_nest);
  const auto parts = TensorOperands(group, p, packed).find();
  if (!parts) return std::nullopt;
  const TensorTiling usual = default_tensor_tiling(p, target);
  TensorTiling t{value_or(tuning, "tile_m", usual.m), value_or(tuning, "tile_n", usual.n),
                 value_or(tuning, "tile_k", usual.k), value_or(tuning, "rows", usual.rows),
                 value_or(tuning, "columns", usual.columns)};
  if (!t.fits(target)) t = usual;
  Kernel kernel = group.kernel();
  GroupTensorWriter(kernel, group, p, t).write(*parts);
  Candidate out;
  out.name = "tensor";
  if (packed) {
    out.temporaries.push_back({packed->type, true});
    out.steps.push_back(std::move(packed->step));
  }
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

std::vector<Tuning> group_tensor_space(const GroupSpec& spec, const TargetInfo& target) {
  std::optional<FoundGroupContraction> found = find_tensor(spec, target);
  if (!found) return {};
  const GroupProblem p = problem_of(found->group);
  if (!is_worth_it(p)) return {};
  std::vector<Tuning> out = {default_tensor_tiling(p, target).named()};
  for (const TensorTiling& t : tensor_tilings)
    if (t.fits(target) && std::ranges::find(out, t.named()) == out.end()) out.push_back(t.named());
  return out;
}

}  // namespace hone
