#include "kernel/groups/tensor_writer.h"

#include <algorithm>

#include "kernel/nest/blocking.h"
#include "kernel/nest/keep_values.h"
#include "kernel/nest/loops.h"
#include "kernel/walk.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

constexpr std::int64_t vector_width = TensorTiling::vector_width, row_gap = TensorTiling::row_gap;

class TensorWriter {
 public:
  TensorWriter(Kernel& kernel, AnchoredGroup& group, const GroupProblem& p, const TensorTiling& t,
               bool has_opaque_tiles)
      : kernel_(kernel),
        lowering_(group.lowering()),
        positions_(group.lowering().positions()),
        p_(p),
        t_(t),
        is_opaque_(has_opaque_tiles),
        dtype_(p.a.dtype()) {}

  void write(const TensorParts& parts) {
    const int first = static_cast<int>(kernel_.params.size());
    b_variable_ = parts.b;
    const bool in_vectors = stores_vectors(p_, parts), in_rows = in_vectors || is_opaque_;
    HONE_ASSERT(in_rows || t_.depths == 1, kernel_.name, ": parts of a step meet in rows alone");
    a_ = {parts.left, first, first + 2, t_.m};
    b_ = {parts.right, first + 1, first + (is_copied() ? 2 : 3), t_.n};
    for (Operand* o : {&a_, &b_}) {
      // Stages begin at multiples of 64 bytes.
      o->stage = ceil_ratio(o->lines(t_.k) * o->pitch(t_.k), 32) * 32;
      kernel_.memory.push_back({dtype_, t_.stages * o->stage, 0, MemoryScope::group});
    }
    if (!is_copied())
      for (Operand* o : {&a_, &b_})
        kernel_.memory.push_back({dtype_, t_.ahead * held_of(*o), 0, MemoryScope::thread});
    place_memory(kernel_);
    // Reuses the memory of the operands.
    result_memory_ = first + static_cast<int>(kernel_.memory.size());
    if (in_rows)
      kernel_.memory.push_back({DType::f32, t_.depths * result_plane(), 0, MemoryScope::group});
    kernel_.tiles.assign(static_cast<std::size_t>(t_.columns / 8),
                         {DType::f32, static_cast<int>(t_.rows / 8), 2});
    const Dim chunk = place_group();
    thread_ = positions_.add_loop(t_.threads());
    const Dim lane = positions_.remainder(thread_, TensorTiling::subgroup),
              across = t_.n / t_.columns;
    Dim number = positions_.quotient(thread_, TensorTiling::subgroup);
    if (t_.depths > 1) {
      const Dim of_each = t_.threads() / TensorTiling::subgroup / t_.depths;
      depth_ = positions_.quotient(number, of_each);
      number = positions_.remainder(number, of_each);
    }
    const Dim down = positions_.quotient(number, across), line = positions_.quotient(lane, 4);
    thread_m_ = down * Dim(t_.rows) + line;
    thread_put_ = down * Dim(t_.put_rows()) + line;
    thread_n_ = positions_.remainder(number, across) * Dim(t_.columns) +
                positions_.remainder(lane, 4) * Dim(2);
    Block early, results;
    if (in_rows)
      for (std::int64_t first = 0; first < t_.rows; first += t_.put_rows())
        for (Stmt& s : results_in_rows(parts, first, in_vectors ? result_width() : 1, early))
          results.push_back(std::move(s));
    else
      for (std::size_t i = 0; i < kernel_.tiles.size(); ++i)
        results.push_back(store_tile(parts, static_cast<int>(i)));
    Stmt threads = loop(LoopKind::group, thread_);
    threads.body = std::move(early);
    std::ranges::move(is_copied() ? copied_steps() : steps(), std::back_inserter(threads.body));
    std::ranges::move(results, std::back_inserter(threads.body));
    Stmt grid = loop(LoopKind::grid, chunk);
    grid.body.push_back(std::move(threads));
    Block body;
    body.push_back(std::move(grid));
    find_sizes(kernel_, body);
    kernel_.graph = lowering_.shared_graph();
    kernel_.body = std::move(body);
  }

 private:
  // One of the two operands, its tile and the part that a thread holds.
  struct Operand {
    TensorSide side;
    int memory = 0, held = 0;
    std::int64_t tile = 0;   // along the free axis
    std::int64_t stage = 0;  // elements of one stage in memory
    Dim first = 0, extent = 0;

    std::int64_t lines(std::int64_t k) const { return side.along_depth ? tile : k; }
    std::int64_t line(std::int64_t k) const { return side.along_depth ? k : tile; }
    std::int64_t pitch(std::int64_t k) const { return line(k) + row_gap; }
  };
  bool is_copied() const { return t_.stages > 2; }
  std::int64_t held_of(const Operand& o) const { return o.tile * t_.k / t_.threads(); }
  std::int64_t result_pitch() const { return t_.n + row_gap; }
  std::int64_t put_lines() const { return t_.m / t_.rows * t_.put_rows(); }
  std::int64_t result_plane() const { return put_lines() * result_pitch(); }  // per part of a step
  // Neighbouring results that a thread stores at once: as many as make a vector, but fewer where
  // some threads would have none.
  std::int64_t result_width() const {
    std::int64_t width = vector_width;
    while (!is_opaque_ && width > 2 && put_lines() * t_.n / width < t_.threads()) width /= 2;
    return width;
  }

  // Neighbouring groups read the same rows and columns, so that caches hold the shared data.
  Dim place_group() {
    const Dim row_blocks = ceil_div(p_.m, t_.m), column_blocks = ceil_div(p_.n, t_.n);
    kernel_.chunks = Dim(t_.parts) * p_.batch * row_blocks * column_blocks;
    const Dim chunk = positions_.add_loop(kernel_.chunks);
    std::int64_t near = 1;
    if (row_blocks.is_number())
      for (const std::int64_t rows : {16, 8})
        if (near == 1 && row_blocks.number() > rows && row_blocks.number() % rows == 0) near = rows;
    const Dims block = positions_.split(
        chunk, near > 1 ? Dims{t_.parts, p_.batch, floor_div(row_blocks, near), column_blocks, near}
                        : Dims{t_.parts, p_.batch, 1, column_blocks, row_blocks});
    part_ = block[0], batch_ = block[1];
    const Dim row_block = near > 1 ? block[2] * Dim(near) + block[4] : block[4];
    a_.first = row_block * Dim(t_.m), b_.first = block[3] * Dim(t_.n);
    a_.extent = p_.m, b_.extent = p_.n;
    return chunk;
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

  // ---- the depth

  Dim step_count() const { return ceil_div(p_.k, t_.k); }
  Dim steps_of_part() const { return ceil_div(step_count(), t_.parts); }

  Block zeros() {
    Block out;
    for (std::size_t i = 0; i < kernel_.tiles.size(); ++i) {
      Stmt fill{.kind = Kind::tile_fill, .value = lowering_.number(0, DType::f32)};
      fill.tile = static_cast<int>(i), fill.columns = 2;
      out.push_back(std::move(fill));
    }
    return out;
  }

  // The tiles of the next steps are loaded while those of one are multiplied. With memory for two
  // steps no thread waits until all have multiplied, because the next step goes elsewhere. With
  // opaque tiles and one step ahead the first iteration multiplies zeros, so that the loading code
  // exists only once: drivers take long to compile positions in images. With several ahead there
  // are few iterations, and an additional one would cost too much.
  Block steps() {
    Block out = zeros();
    const bool starts_with_zeros = is_opaque_ && t_.ahead == 1;
    const Dim count = steps_of_part(), rounds = floor_div(count, t_.ahead),
              round = positions_.add_loop(starts_with_zeros ? rounds + Dim(1) : rounds);
    if (starts_with_zeros)
      for (const Operand* o : {&a_, &b_}) out.push_back(nothing_held(*o));
    else
      for (std::int64_t i = 0; i < t_.ahead; ++i) {
        Block first;
        fetch(i, i, first);
        if (count.low() > i)
          std::ranges::move(first, std::back_inserter(out));
        else
          out.push_back(branch(lowering_.below(i, count), std::move(first)));
      }
    Stmt each = loop(LoopKind::serial, round);
    for (std::int64_t i = 0; i < t_.ahead; ++i) {
      const Dim step = round * Dim(t_.ahead) + Dim(i),
                next = starts_with_zeros ? step : step + Dim(t_.ahead),
                stage = t_.stages == 2 ? positions_.remainder(step, 2) : Dim(0);
      put(a_, stage, i, each.body);
      put(b_, stage, i, each.body);
      each.body.push_back({.kind = Kind::barrier});
      Block fetched;
      fetch(next, i, fetched);
      each.body.push_back(branch(lowering_.below(next, count), std::move(fetched)));
      each.body.push_back(multiply(stage));
      if (t_.stages == 1) each.body.push_back({.kind = Kind::barrier});
    }
    out.push_back(std::move(each));
    return out;
  }

  Stmt nothing_held(const Operand& o) {
    const Dim turn = positions_.add_loop(turns(o)), lane = positions_.add_loop(vector_width);
    Stmt zero{.kind = Kind::store, .param = o.held, .offset = turn * Dim(vector_width) + lane};
    zero.value = lowering_.number(0, dtype_);
    Stmt lanes = loop(LoopKind::lanes, lane), each = loop(LoopKind::unrolled, turn);
    lanes.body.push_back(std::move(zero));
    each.body.push_back(std::move(lanes));
    return each;
  }

  // The tiles of the next steps are in flight while those of one are multiplied. Each step's copies
  // are a batch, which is empty after the last step, so that the count of batches tells which tiles
  // have arrived.
  Block copied_steps() {
    Block out = zeros();
    const std::int64_t ahead = t_.stages - 1;
    const Dim stage = positions_.add_loop(ahead);
    Stmt first = loop(LoopKind::serial, stage);
    copy_batch(stage, stage, first.body);
    out.push_back(std::move(first));
    const Dim count = steps_of_part(), step = positions_.add_loop(count);
    Stmt each = loop(LoopKind::serial, step);
    each.body.push_back({.kind = Kind::wait_copies, .extent = ahead - 1});
    each.body.push_back({.kind = Kind::barrier});
    copy_batch(step + Dim(ahead), positions_.remainder(step + Dim(ahead), t_.stages), each.body);
    each.body.push_back(multiply(positions_.remainder(step, t_.stages)));
    out.push_back(std::move(each));
    out.push_back({.kind = Kind::wait_copies, .extent = 0});
    return out;
  }

  // Vector i of a tile, in order of lines, belongs to thread i mod threads.
  struct Place {
    Dim line, start;  // of its first element
  };
  Place place_of(const Operand& o, const Dim& turn) {
    const Dim each = o.line(t_.k) / vector_width, i = turn * Dim(t_.threads()) + thread_;
    return {positions_.quotient(i, each), positions_.remainder(i, each) * Dim(vector_width)};
  }
  std::int64_t turns(const Operand& o) const {
    return o.tile * t_.k / (vector_width * t_.threads());
  }

  // The position of a tile's vector in the operand, and the conditions for it to be inside.
  struct Source {
    std::vector<Replacement> places;
    Values conditions;
  };
  Source source_of(const Operand& o, const Place& at, const Dim& step, const Dim& lane) {
    Source out;
    // Each part begins where the previous one ends; the last ones may be shorter.
    const Dim first_k = (part_ * steps_of_part() + step) * Dim(t_.k);
    const bool is_whole = divides(t_.parts, step_count());
    const Dim along = o.side.along_depth ? first_k + at.start : o.first + at.start,
              across = o.side.along_depth ? o.first + at.line : first_k + at.line;
    const Dim extent_along = o.side.along_depth ? p_.k : o.extent,
              extent_across = o.side.along_depth ? o.extent : p_.k;
    const bool whole_depth = divides(t_.k, p_.k) && is_whole,
               whole_free = divides(o.tile, o.extent);
    // Elements that are read at once are either all inside or all outside.
    const Dim one = o.side.width > 1 ? along : along + lane;
    if (!(o.side.along_depth ? whole_free : whole_depth))
      out.conditions.push_back(lowering_.below(across, extent_across));
    if (!(o.side.along_depth ? whole_depth : whole_free))
      out.conditions.push_back(lowering_.below(one, extent_along));
    Dim free = o.side.along_depth ? across : along + lane,
        depth = o.side.along_depth ? along + lane : across;
    out.places = {{b_variable_, batch_}};
    if (o.side.width > 1) {
      out.places.push_back({o.side.lane, lane});
      (o.side.along_depth ? depth : free) = positions_.quotient(along, vector_width);
    }
    out.places.push_back({o.side.free, free});
    out.places.push_back({o.side.depth, depth});
    return out;
  }

  void copy_batch(const Dim& step, const Dim& stage, Block& out) {
    Block copies;
    copy(step, stage, copies);
    if (!positions_.proves_below(step, steps_of_part()))
      copies = Block{branch(lowering_.below(step, steps_of_part()), std::move(copies))};
    std::ranges::move(copies, std::back_inserter(out));
    out.push_back({.kind = Kind::end_batch});
  }

  void copy(const Dim& step, const Dim& stage, Block& out) {
    for (const Operand* o : {&a_, &b_}) {
      const Dim turn = positions_.add_loop(turns(*o));
      Stmt all_turns = loop(LoopKind::unrolled, turn);
      const Place at = place_of(*o, turn);
      Source from = source_of(*o, at, step, 0);
      const Value load = Rewriter(lowering_.graph(), std::move(from.places))(o->side.element);
      if (load.operand_count() > 0) from.conditions.push_back(load.operand(0));
      Stmt s{.kind = Kind::copy_async, .extent = vector_width, .param = o->memory};
      s.offset = stage * Dim(o->stage) + at.line * Dim(o->pitch(t_.k)) + at.start;
      s.a.param = load_param(load);
      s.a.offset = load.attrs().dims("offset").at(0);
      s.condition = all(from.conditions);
      all_turns.body.push_back(std::move(s));
      out.push_back(std::move(all_turns));
    }
  }

  // A thread's registers hold `ahead` steps, one after another. fetch() fills those of step `held`,
  // put() stores them to group memory.
  void fetch(const Dim& step, std::int64_t held, Block& out) {
    for (const Operand* o : {&a_, &b_}) {
      const Dim turn = positions_.add_loop(turns(*o));
      Stmt all_turns = loop(LoopKind::unrolled, turn);
      const Place at = place_of(*o, turn);
      const Dim lane = positions_.add_loop(vector_width);
      const Dim to = Dim(held * held_of(*o)) + turn * Dim(vector_width) + lane;
      Source from = source_of(*o, at, step, lane);
      Stmt store{.kind = Kind::store, .param = o->held, .offset = to};
      store.value = Rewriter(lowering_.graph(), std::move(from.places))(o->side.element);
      Stmt zero{.kind = Kind::store, .param = o->held, .offset = to};
      zero.value = lowering_.number(0, dtype_);
      all_turns.body =
          guarded(std::move(store), std::move(zero), from.conditions, lane, o->side.width > 1);
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

  void put(const Operand& o, const Dim& stage, std::int64_t held, Block& out) {
    const Dim turn = positions_.add_loop(turns(o)), lane = positions_.add_loop(vector_width);
    const Place at = place_of(o, turn);
    Stmt store{.kind = Kind::store, .param = o.memory};
    store.offset = stage * Dim(o.stage) + at.line * Dim(o.pitch(t_.k)) + at.start + lane;
    store.value =
        lowering_.load(o.held, dtype_, Dim(held * held_of(o)) + turn * Dim(vector_width) + lane);
    Stmt lanes = loop(LoopKind::lanes, lane), each = loop(LoopKind::unrolled, turn);
    lanes.body.push_back(std::move(store));
    each.body.push_back(std::move(lanes));
    out.push_back(std::move(each));
  }

  Stmt multiply(const Dim& stage) {
    Stmt out{.kind = Kind::intrinsic};
    out.name = is_opaque_ ? multiply_matrices : multiply_halves;
    for (std::size_t i = 0; i < kernel_.tiles.size(); ++i) {
      Stmt s{.kind = Kind::tile_multiply};
      s.tile = static_cast<int>(i), s.columns = 2, s.extent = t_.k / t_.depths;
      const Dim first_k = depth_ * Dim(t_.k / t_.depths);
      const std::int64_t a_pitch = a_.pitch(t_.k), b_pitch = b_.pitch(t_.k),
                         a_line = a_.side.along_depth ? a_pitch : 1;
      s.a.param = a_.memory;
      s.a.offset = stage * Dim(a_.stage) + thread_m_ * Dim(a_line) +
                   first_k * Dim(a_.side.along_depth ? 1 : a_pitch);
      for (std::int64_t r = 0; r < t_.rows / 8; ++r) s.a.rows.push_back(8 * r * a_line);
      s.a.stride = a_.side.along_depth ? 1 : a_pitch;
      s.b.param = b_.memory;
      const Dim column = thread_n_ + Dim(8 * static_cast<std::int64_t>(i));
      // All of a column's depth is one group of k.
      if (b_.side.along_depth) {
        s.b.offset = stage * Dim(b_.stage) + column * Dim(b_pitch) + first_k;
        s.b.stride = 0, s.k_group = static_cast<int>(b_pitch);
      } else {
        s.b.offset = stage * Dim(b_.stage) + column + first_k * Dim(b_pitch);
        s.b.stride = b_pitch;
      }
      out.body.push_back(std::move(s));
    }
    return out;
  }

  // ---- results

  Value tile_element(int tile, const Dim& row, const Dim& column) {
    const Type type(DType::f32, Shape());
    return lowering_.graph().intern_typed(
        ops::tile_element, {},
        {{"index", std::int64_t{tile}}, {"dtype", DType::f32}, {"offset", Dims{row, column}}},
        std::span(&type, 1));
  }

  Block stores_at(const TensorParts& parts, const Dim& m, const Dim& n, Value element) {
    if (parts.element.dtype() != DType::f32)
      element = lowering_.convert(element, parts.element.dtype());
    std::vector<Replacement> places = {{parts.b, batch_}, {parts.m, m}, {parts.n, n}};
    if (parts.part) places.push_back({*parts.part, part_});
    Rewriter rewriter(lowering_.graph(), std::move(places));
    rewriter.set(parts.element, element);
    Block stores = parts.stores;
    rewriter(stores);
    return stores;
  }

  // Each thread stores its tile's results, two neighbours at once.
  Stmt store_tile(const TensorParts& parts, int tile) {
    const Dim r = positions_.add_loop(t_.rows / 8), c = positions_.add_loop(2);
    const Dim m = a_.first + thread_m_ + r * Dim(8),
              start = b_.first + thread_n_ + Dim(8 * std::int64_t{tile}), n = start + c;
    Block stores = stores_at(parts, m, n, tile_element(tile, r, c));
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

  // Stores rows of all subgroups' tiles, starting at `first` in each, to group memory.
  Block put_results(std::int64_t first) {
    Block out;
    for (std::size_t i = 0; i < kernel_.tiles.size(); ++i) {
      const Dim r = positions_.add_loop(t_.put_rows() / 8), c = positions_.add_loop(2);
      Stmt store{.kind = Kind::store, .param = result_memory_};
      store.offset = depth_ * Dim(result_plane()) +
                     (thread_put_ + r * Dim(8)) * Dim(result_pitch()) + thread_n_ +
                     Dim(8 * static_cast<std::int64_t>(i)) + c;
      store.value = tile_element(static_cast<int>(i), r + Dim(first / 8), c);
      Stmt rows = loop(LoopKind::unrolled, r), columns = loop(LoopKind::lanes, c);
      columns.body.push_back(std::move(store));
      rows.body.push_back(std::move(columns));
      out.push_back(std::move(rows));
    }
    if (!is_opaque_) return out;
    Stmt all{.kind = Kind::intrinsic};
    all.name = store_matrices;
    all.body = std::move(out);
    Block one;
    one.push_back(std::move(all));
    return one;
  }

  // The group stores rows of its tile to group memory, and its threads take `width` neighbours
  // each, so that other operands and results are accessed in whole lines. `early` gets loads of
  // other operands that come before all products.
  Block results_in_rows(const TensorParts& parts, std::int64_t first, std::int64_t width,
                        Block& early) {
    Block out;
    out.push_back({.kind = Kind::barrier});
    for (Stmt& s : put_results(first)) out.push_back(std::move(s));
    out.push_back({.kind = Kind::barrier});
    const std::int64_t vectors = put_lines() * t_.n / width,
                       count = ceil_ratio(vectors, t_.threads());
    // The loads of this many iterations come before their stores, so that they overlap.
    constexpr std::int64_t most_at_once = 4;
    const bool is_divided = count > most_at_once && count % most_at_once == 0;
    const Dim now = positions_.add_loop(is_divided ? most_at_once : count),
              later = is_divided ? positions_.add_loop(count / most_at_once) : Dim(0),
              turn = later * Dim(most_at_once) + now,
              lane = width > 1 ? positions_.add_loop(width) : Dim(0);
    const Dim i = turn * Dim(t_.threads()) + thread_, each = t_.n / width;
    const Dim line = positions_.quotient(i, each),
              start = positions_.remainder(i, each) * Dim(width);
    const Dim row = t_.put_rows() == t_.rows
                        ? line
                        : positions_.quotient(line, t_.put_rows()) * Dim(t_.rows) + Dim(first) +
                              positions_.remainder(line, t_.put_rows());
    const Dim m = a_.first + row, n = b_.first + start;
    Value sum;
    for (std::int64_t d = 0; d < t_.depths; ++d) {
      const Value one =
          lowering_.load(result_memory_, DType::f32,
                         Dim(d * result_plane()) + line * Dim(result_pitch()) + start + lane);
      sum = sum ? lowering_.apply(ops::add, {sum, one}) : one;
    }
    Values conditions;
    if (vectors % t_.threads() != 0) conditions.push_back(lowering_.below(i, vectors));
    if (!divides(t_.m, p_.m)) conditions.push_back(lowering_.below(m, p_.m));
    if (!divides(t_.n, p_.n)) conditions.push_back(lowering_.below(n, p_.n));
    const Turns of_thread{.turn = now, .lane = lane, .width = width, .conditions = conditions};
    Block stores = stores_at(parts, m, n + lane, sum);
    if (width > 1 && !is_divided && !is_opaque_)
      std::ranges::move(loads_before(stores, of_thread), std::back_inserter(early));
    const LoopKind kind = width > 1 ? LoopKind::unrolled : LoopKind::serial;
    Stmt these = in_turns(kind, of_thread, std::move(stores));
    Block at_once;
    at_once.push_back(std::move(these));
    store_last(at_once, kernel_, lowering_);
    if (is_divided) {
      Stmt all_turns = loop(kind, later);
      all_turns.body = std::exchange(at_once, {});
      at_once.push_back(std::move(all_turns));
    }
    std::ranges::move(at_once, std::back_inserter(out));
    return out;
  }

  // A thread's iterations over its results: `turn` counts them, `lane` the neighbours in one.
  struct Turns {
    Dim turn, lane;
    std::int64_t width = 1;
    Values conditions;  // for a result to exist
  };
  Stmt in_turns(LoopKind kind, const Turns& t, Block body) const {
    if (t.width > 1) {
      Stmt lanes = loop(LoopKind::lanes, t.lane);
      lanes.body = std::exchange(body, {});
      body.push_back(std::move(lanes));
    }
    if (!t.conditions.empty()) body = Block{branch(all(t.conditions), std::move(body))};
    Stmt out = loop(kind, t.turn);
    out.body = std::move(body);
    return out;
  }

  // Returns statements that load other operands of `stores` into memory of the thread, from where
  // `stores` then takes them. Empty if registers would not hold them beside the tiles.
  Block loads_before(Block& stores, const Turns& t) {
    constexpr std::int64_t most_elements = 32;
    const std::int64_t each = positions_.extent(t.turn).number() * t.width;
    std::vector<Value> loads, values = values_of(stores);
    for (NodeId n : nodes_below(values))
      if (const Value v(&lowering_.graph(), n); v.is(ops::load) && is_known_before(v))
        loads.push_back(v);
    if (loads.empty() || std::ssize(loads) * each > most_elements) return {};
    Turns before = t;
    before.turn = positions_.add_loop(positions_.extent(t.turn));
    before.lane = positions_.add_loop(t.width);
    const Replacement places[] = {{t.turn, before.turn}, {t.lane, before.lane}};
    Rewriter moved(lowering_.graph(), {std::begin(places), std::end(places)}),
        taken(lowering_.graph(), {});
    for (Value& c : before.conditions) c = moved(c);
    const auto place = [&](const Turns& at) { return at.turn * Dim(t.width) + at.lane; };
    Block body;
    for (const Value& load : loads) {
      const auto memory = static_cast<int>(kernel_.params.size() + kernel_.memory.size());
      kernel_.memory.push_back({load.dtype(), each, 0, MemoryScope::thread});
      Stmt s{.kind = Kind::store, .param = memory, .offset = place(before)};
      s.value = moved(load);
      body.push_back(std::move(s));
      taken.set(load, lowering_.load(memory, load.dtype(), place(t)));
    }
    taken(stores);
    Block out;
    out.push_back(in_turns(LoopKind::unrolled, before, std::move(body)));
    return out;
  }
  // True for what depends on positions and parameters only.
  bool is_known_before(Value v) const {
    return std::ranges::all_of(nodes_below(std::span(&v, 1)), [&](NodeId n) {
      const Value each(&lowering_.graph(), n);
      return !each.is(ops::tile_element) &&
             (!each.is(ops::load) || !memory_named(kernel_, load_param(each))) &&
             dependences(each).registers.empty();
    });
  }

  Kernel& kernel_;
  Lowering& lowering_;
  Positions& positions_;
  const GroupProblem& p_;
  const TensorTiling& t_;
  const bool is_opaque_;
  DType dtype_;
  Operand a_, b_;
  int result_memory_ = 0;
  Dim b_variable_ = 0, part_ = 0, batch_ = 0, depth_ = 0, thread_ = 0, thread_m_ = 0, thread_n_ = 0,
      thread_put_ = 0;
};

}  // namespace

bool stores_vectors(const GroupProblem& p, const TensorParts& parts) {
  if (parts.part || !(mod(p.n, vector_width) == Dim(0))) return false;
  return std::ranges::all_of(parts.stores, [&](const Stmt& s) {
    return s.kind == Kind::store && stride_of(s.offset, parts.n) == Dim(1);
  });
}

void write_tensor_kernel(Kernel& kernel, AnchoredGroup& group, const GroupProblem& p,
                         const TensorTiling& t, const TensorParts& parts, bool has_opaque_tiles) {
  TensorWriter(kernel, group, p, t, has_opaque_tiles).write(parts);
}

}  // namespace hone
