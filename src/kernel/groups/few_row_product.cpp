#include "kernel/groups/few_row_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "kernel/groups/words.h"
#include "kernel/nest/blocking.h"
#include "kernel/problem/group_problem.h"
#include "kernel/walk.h"

namespace hone {

namespace {

constexpr std::int64_t vector_elements = 8;
constexpr std::int64_t most_joined = 32;  // threads whose numbers are joined without group memory

// The product, and the axis along which the matrix is contiguous.
struct RowProblem {
  Dim batch = 1, n = 1, k = 1;
  std::int64_t rows = 1;
  bool along_depth = false;
  std::int64_t element_bytes = 2;  // of the matrix
  bool may_read_first = false;  // the matrix may be read before the kernel waits (read_weights.h)
};

// ---- tuning

// Along the columns: `vectors` threads hold neighbouring vectors of a row of the matrix, each slot
// of such threads has `unroll` rows at once, and the group adds up the sums of its slots. Along the
// depth: `vectors` threads hold neighbouring vectors of a column, each slot has `unroll` columns,
// and its threads combine their sums.
struct RowTiling {
  std::int64_t threads = 256, vectors = 8, unroll = 8;

  std::int64_t slots() const { return threads / vectors; }
  std::int64_t columns(bool along_depth) const {
    return along_depth ? slots() * unroll : vectors * vector_elements;
  }
  std::int64_t depth(bool along_depth) const {
    return along_depth ? vectors * vector_elements : slots() * unroll;
  }
  // Stride of the slots' sums in group memory.
  std::int64_t pitch() const { return vectors * vector_elements + 1; }
  std::int64_t adders() const { return threads / (vectors * vector_elements); }
  std::int64_t registers(std::int64_t rows, bool along_depth) const {
    return 40 + unroll * vector_elements + rows * std::max(vector_elements, unroll) +
           (along_depth ? rows * unroll : rows * vector_elements);
  }
  Tuning named() const { return {{"threads", threads}, {"vectors", vectors}, {"unroll", unroll}}; }
  bool operator==(const RowTiling&) const = default;

  bool fits(const RowProblem& p, const TargetInfo& target) const {
    constexpr std::int64_t all_registers = 60'000;
    const auto is_power = [](std::int64_t n) {
      return n >= 1 && std::has_single_bit(static_cast<std::uint64_t>(n));
    };
    if (!is_power(threads) || !is_power(vectors) || !is_power(unroll) || threads < 32 ||
        threads > target.group_threads || vectors > most_joined || unroll > 16)
      return false;
    const std::int64_t own = registers(p.rows, p.along_depth);
    if (own > 255 || own * threads > all_registers) return false;
    if (p.along_depth) return 4 * threads + 512 <= target.group_bytes;
    return adders() >= 1 && adders() <= most_joined &&
           4 * (slots() * pitch() + threads) + 512 <= target.group_bytes;
  }
};

// Predicted microseconds on an H100 by a coarse model: only for comparing tilings.
double predicted_us(const RowProblem& p, const RowTiling& t) {
  constexpr double processors = 132, start_us = 2, waiting_step_us = 0.9, held_step_us = 0.3,
                   held_bytes = 512, bytes_per_us = 2.6e6, processor_bytes_per_us = 5e4,
                   threads_at_once = 2048, registers = 65536, sector = 32;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double columns = typical(p.n), depth = typical(p.k), batch = typical(p.batch);
  const double groups = batch * std::ceil(columns / number(t.columns(p.along_depth))),
               steps = std::ceil(depth / number(t.depth(p.along_depth))),
               of_thread = steps * number(t.unroll * vector_elements * p.element_bytes);
  const double step_us =
      p.may_read_first && of_thread <= held_bytes ? held_step_us : waiting_step_us;
  const double resident = std::max(
      1.0,
      std::floor(std::min(threads_at_once / number(t.threads),
                          registers / number(t.threads * t.registers(p.rows, p.along_depth)))));
  const double side = number(t.vectors * vector_elements * p.element_bytes),
               waste = std::max(1.0, sector / side);
  const double bytes = columns * depth * batch * number(p.element_bytes) * waste,
               each = bytes / groups * std::ceil(groups / processors);
  const double joining = p.along_depth
                             ? 0.02 * number(p.rows * t.unroll)
                             : 0.3 * number(p.rows) + 0.01 * number(t.slots() / t.adders());
  return start_us + joining +
         std::max({std::ceil(groups / processors / resident) * steps * step_us,
                   each / processor_bytes_per_us, bytes / bytes_per_us});
}

// All that fit, by predicted time, best first.
std::vector<RowTiling> tilings(const RowProblem& p, const TargetInfo& target) {
  std::vector<RowTiling> out;
  for (const std::int64_t threads : {256, 128, 512, 1024, 64, 32})
    for (const std::int64_t vectors : {8, 4, 16, 2, 32, 1})
      for (const std::int64_t unroll : {8, 4, 2, 16, 1}) {
        const RowTiling t{threads, vectors, unroll};
        if (t.fits(p, target)) out.push_back(t);
      }
  std::ranges::stable_sort(out, {}, [&](const RowTiling& t) { return predicted_us(p, t); });
  return out;
}

// ---- statements

// Expressions of the operands and results, over the batch, the row or column, and the depth. The
// contiguous side has the number of the vector, and the position in it as the last index.
struct RowParts {
  Splice row, matrix, epilogue;
};

class RowWriter : GroupWords {
 public:
  RowWriter(Kernel& kernel, AnchoredGroup& group, const RowProblem& p, const RowTiling& t,
            const RowParts& parts)
      : GroupWords(kernel, group.lowering()),
        p_(p),
        t_(t),
        parts_(parts),
        columns_(t.columns(p.along_depth)),
        depth_(t.depth(p.along_depth)) {}

  void write() {
    add_memories();
    write_groups({p_.batch, ceil_div(p_.n, columns_)}, t_.threads, [&](const Dims& at) {
      batch_ = at[0], first_column_ = at[1] * Dim(columns_);
      thread();
    });
  }

 private:
  void add_memories() {
    if (!p_.along_depth)
      found_ = add_memory(DType::f32, t_.slots() * t_.pitch(), MemoryScope::group);
    row_width_ = p_.along_depth ? vector_elements : t_.unroll;
    sum_width_ = p_.along_depth ? t_.unroll : vector_elements;
    row_ = add_memory(DType::f32, p_.rows * row_width_, MemoryScope::thread);
    matrix_ = add_memory(DType::f32, t_.unroll * vector_elements, MemoryScope::thread);
    sums_ = add_memory(DType::f32, p_.rows * sum_width_, MemoryScope::thread);
    place_memory(kernel_);
  }

  // Empty if all parts of this size are whole.
  Values below(const Dim& at, const Dim& limit, std::int64_t part) const {
    return divides(part, limit) ? Values() : Values{lowering_.below(at, limit)};
  }
  void put_number(int memory, const Dim& at, Value v) {
    put(memory, at, lowering_.convert(v, DType::f32));
  }

  // ---- a group

  void thread() {
    vector_ = positions_.remainder(thread_, t_.vectors);
    slot_ = positions_.quotient(thread_, t_.vectors);
    if (BlockWriter::fetches_first(kernel_.chunks)) fetch_matrix();
    for (std::int64_t i = 0; i < p_.rows; ++i)
      lanes(sum_width_,
            [&](const Dim& lane) { put(sums_, Dim(i * sum_width_) + lane, number(0)); });
    serial(ceil_div(p_.k, depth_), [&](const Dim& turn) {
      p_.along_depth ? step_along_depth(turn * Dim(depth_))
                     : step_along_columns(turn * Dim(depth_));
    });
    for (std::int64_t i = 0; i < p_.rows; ++i) p_.along_depth ? join_threads(i) : add_slots(i);
  }

  void fetch_matrix() {
    serial(ceil_div(p_.k, depth_), [&](const Dim& turn) {
      for (std::int64_t u = 0; u < t_.unroll; ++u)
        p_.along_depth ? fetch_column(turn * Dim(depth_), u) : fetch_row(turn * Dim(depth_), u);
    });
  }
  void fetch_row(const Dim& depth, std::int64_t u) {
    const Dim row = depth + slot_ * Dim(t_.unroll) + Dim(u);
    Values there = below(row, p_.k, depth_);
    for (const Value c : below(first_column_ + vector_ * Dim(vector_elements), p_.n, columns_))
      there.push_back(c);
    const Dim number = positions_.quotient(first_column_, vector_elements) + vector_;
    branch_unless_known(there,
                        [&] { out_.fetch(spliced_at(parts_.matrix, {batch_, number, row, 0})); });
  }
  void fetch_column(const Dim& depth, std::int64_t u) {
    Values there = below(depth + vector_ * Dim(vector_elements), p_.k, depth_);
    for (const Value c : below(column_of(u), p_.n, columns_)) there.push_back(c);
    const Dim number = positions_.quotient(depth, vector_elements) + vector_;
    branch_unless_known(
        there, [&] { out_.fetch(spliced_at(parts_.matrix, {batch_, column_of(u), number, 0})); });
  }
  // Loads `count` elements from `first` on, as given by `element`; zeros past the limit.
  void bring(int memory, std::int64_t place, std::int64_t count, const Dim& first, const Dim& limit,
             std::int64_t whole, Values there,
             const std::function<Value(const Dim& lane)>& element) {
    const auto put_all = [&](const std::function<void(const Dim&, const Dim&)>& body) {
      lanes(count, [&](const Dim& lane) { body(Dim(place) + lane, lane); });
    };
    const auto clear = [&] {
      put_all([&](const Dim& to, const Dim&) { put(memory, to, number(0)); });
    };
    const bool ends_inside = !divides(count, limit);
    if (!ends_inside)
      for (const Value c : below(first, limit, whole)) there.push_back(c);
    branch_unless_known(
        there,
        [&] {
          put_all([&](const Dim& to, const Dim& lane) {
            Values one;
            if (ends_inside) one.push_back(lowering_.below(first + lane, limit));
            branch_unless_known(
                one, [&] { put_number(memory, to, element(lane)); },
                [&] { put(memory, to, number(0)); });
          });
        },
        clear);
  }
  Value spliced_at(const Splice& s, std::initializer_list<Dim> at) const {
    return spliced(lowering_.graph(), s, std::span(at.begin(), at.size()));
  }

  // Processes rows of the matrix starting at `depth`.
  void step_along_columns(const Dim& depth) {
    const Dim first = depth + slot_ * Dim(t_.unroll);
    const Dim column = first_column_ + vector_ * Dim(vector_elements),
              number = positions_.quotient(first_column_, vector_elements) + vector_;
    for (std::int64_t i = 0; i < p_.rows; ++i)
      bring(row_, i * row_width_, t_.unroll, first, p_.k, depth_, {},
            [&](const Dim& u) { return spliced_at(parts_.row, {batch_, i, first + u, 0}); });
    for (std::int64_t u = 0; u < t_.unroll; ++u)
      bring(matrix_, u * vector_elements, vector_elements, column, p_.n, columns_,
            below(first + Dim(u), p_.k, depth_), [&](const Dim& lane) {
              return spliced_at(parts_.matrix, {batch_, number, first + Dim(u), lane});
            });
    for (std::int64_t i = 0; i < p_.rows; ++i)
      lanes(vector_elements, [&](const Dim& lane) {
        const Dim at = Dim(i * sum_width_) + lane;
        const RegId sum = declare(in(sums_, at));
        for (std::int64_t u = 0; u < t_.unroll; ++u)
          accumulate(sum, ops::add,
                     apply(ops::mul, in(row_, i * row_width_ + u),
                           in(matrix_, Dim(u * vector_elements) + lane)));
        put(sums_, at, reg(sum));
      });
  }

  // Processes vectors of columns starting at `depth`.
  void step_along_depth(const Dim& depth) {
    const Dim first = depth + vector_ * Dim(vector_elements),
              number = positions_.quotient(depth, vector_elements) + vector_;
    for (std::int64_t i = 0; i < p_.rows; ++i)
      bring(row_, i * row_width_, vector_elements, first, p_.k, depth_, {},
            [&](const Dim& lane) { return spliced_at(parts_.row, {batch_, i, number, lane}); });
    for (std::int64_t u = 0; u < t_.unroll; ++u) {
      const Dim column = column_of(u);
      bring(matrix_, u * vector_elements, vector_elements, first, p_.k, depth_,
            below(column, p_.n, columns_), [&](const Dim& lane) {
              return spliced_at(parts_.matrix, {batch_, column, number, lane});
            });
    }
    for (std::int64_t i = 0; i < p_.rows; ++i)
      for (std::int64_t u = 0; u < t_.unroll; ++u) {
        const RegId sum = declare(in(sums_, i * sum_width_ + u));
        lanes(vector_elements, [&](const Dim& lane) {
          accumulate(sum, ops::add,
                     apply(ops::mul, in(row_, Dim(i * row_width_) + lane),
                           in(matrix_, Dim(u * vector_elements) + lane)));
        });
        put(sums_, i * sum_width_ + u, reg(sum));
      }
  }
  Dim column_of(std::int64_t u) const { return first_column_ + Dim(u * t_.slots()) + slot_; }

  // ---- results

  void join_threads(std::int64_t i) {
    for (std::int64_t u = 0; u < t_.unroll; ++u) {
      const RegId sum = declare(in(sums_, i * sum_width_ + u));
      join(sum, ops::add, t_.vectors);
      Values own = below(column_of(u), p_.n, columns_);
      if (t_.vectors > 1) own.push_back(lowering_.same(vector_, 0));
      branch_unless_known(own, [&] { store(i, column_of(u), reg(sum)); });
    }
  }

  void add_slots(std::int64_t i) {
    if (i > 0) barrier();
    lanes(vector_elements, [&](const Dim& lane) {
      put(found_, slot_ * Dim(t_.pitch()) + vector_ * Dim(vector_elements) + lane,
          in(sums_, Dim(i * sum_width_) + lane));
    });
    barrier();
    const Dim column = positions_.quotient(thread_, t_.adders()),
              part = positions_.remainder(thread_, t_.adders());
    const RegId sum = declare(number(0));
    serial(t_.slots() / t_.adders(), [&](const Dim& turn) {
      accumulate(sum, ops::add,
                 in(found_, (turn * Dim(t_.adders()) + part) * Dim(t_.pitch()) + column));
    });
    join(sum, ops::add, t_.adders());
    Values own = below(first_column_ + column, p_.n, columns_);
    if (t_.adders() > 1) own.push_back(lowering_.same(part, 0));
    branch_unless_known(own, [&] { store(i, first_column_ + column, reg(sum)); });
  }

  void store(std::int64_t i, const Dim& column, Value sum) {
    for (Stmt& s : spliced_stores(lowering_.graph(), parts_.epilogue,
                                  std::array{batch_, Dim(i), column}, sum))
      out_.add(std::move(s));
  }

  const RowProblem& p_;
  const RowTiling& t_;
  const RowParts& parts_;
  std::int64_t columns_, depth_;  // of a group, of a step
  std::int64_t row_width_ = 0, sum_width_ = 0;
  int found_ = 0, row_ = 0, matrix_ = 0, sums_ = 0;
  Dim batch_ = 0, first_column_ = 0, vector_ = 0, slot_ = 0;
};

// ---- candidates

// True if what is read is contiguous along the lane.
bool lies_along(Value element, const Dim& lane) {
  bool any = false;
  for (NodeId n : nodes_below(std::span(&element, 1))) {
    const Value load(&element.graph(), n);
    if (!load.is(ops::load)) continue;
    const std::optional<Dim> stride = stride_of(load.attrs().dims("offset").at(0), lane);
    if (stride == Dim(0)) continue;
    if (!(stride == Dim(1))) return false;
    any = true;
  }
  return any;
}

std::int64_t element_bytes(Value element) {
  std::int64_t out = 4;
  for (NodeId n : nodes_below(std::span(&element, 1)))
    if (const Value load(&element.graph(), n); load.is(ops::load))
      out = std::min<std::int64_t>(out, byte_size(load.dtype()));
  return out;
}

struct FoundRows {
  FoundGroupContraction found;
  RowProblem problem;
  RowParts parts;
};

// The expressions, if the matrix has that layout.
std::optional<RowParts> parts_of(AnchoredGroup& group, const GroupProblem& g, RowProblem& p) {
  Positions& positions = group.lowering().positions();
  // The only position of an axis of size 1 is 0, also where it comes from a reshape.
  const auto at = [&](const Dim& var) { return positions.extent(var) == Dim(1) ? Dim(0) : var; };
  const auto vectors = [](const Dim& d) { return ceil_div(d, vector_elements); };
  const Dim b = positions.add_loop(g.batch), m = positions.add_loop(g.m),
            n = positions.add_loop(g.n), lane = positions.add_loop(vector_elements);
  const Dim along = positions.add_loop(vectors(p.along_depth ? g.k : g.n));
  const Dim side = at(along) * Dim(vector_elements) + lane;
  const Dim other = positions.add_loop(p.along_depth ? g.n : g.k);
  const std::optional<Splice> matrix = group.element(
      g.b, p.along_depth ? g.b_at(at(b), at(other), side) : g.b_at(at(b), side, at(other)),
      p.along_depth ? std::array{b, other, along, lane} : std::array{b, along, other, lane},
      DType::f32);
  if (!matrix || !lies_along(matrix->value, lane)) return std::nullopt;
  const Dim depth = positions.add_loop(p.along_depth ? vectors(g.k) : g.k);
  const std::optional<Splice> row = group.element(
      g.a,
      g.a_at(at(b), at(m), p.along_depth ? at(depth) * Dim(vector_elements) + lane : at(depth)),
      std::array{b, m, depth, lane}, DType::f32);
  const std::optional<Splice> epilogue =
      group.epilogue(g.c_at(at(b), at(m), at(n)), std::array{b, m, n});
  if (!row || !epilogue) return std::nullopt;
  p.element_bytes = element_bytes(matrix->value);
  return RowParts{*row, *matrix, *epilogue};
}

std::optional<FoundRows> find_rows(const GroupSpec& spec, const TargetInfo& target) {
  constexpr std::int64_t most_rows = 4;
  constexpr double least_depth = 64, least_columns = 16;
  for (const bool along_depth : {false, true}) {
    std::optional<FoundGroupContraction> found = find_group_contraction(spec, target);
    if (!found || found->accumulate != DType::f32 || !found->group.anchor().is(ops::dot))
      return std::nullopt;
    const GroupProblem g = problem_of(found->group);
    if (!g.m.is_number() || g.m.number() < 1 || g.m.number() > most_rows ||
        typical(g.k) < least_depth || typical(g.n) < least_columns)
      return std::nullopt;
    RowProblem p{g.batch, g.n, g.k, g.m.number(), along_depth};
    p.may_read_first = target.overlaps_launches && found->group.is_weight(g.b);
    found->group.set_operands(std::array{g.a, g.b}, 0);
    if (std::optional<RowParts> parts = parts_of(found->group, g, p)) {
      if (tilings(p, target).empty()) return std::nullopt;
      return FoundRows{std::move(*found), std::move(p), std::move(*parts)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Candidate> few_row_product_candidate(const GroupSpec& spec, const TargetInfo& target,
                                                   const Tuning& tuning) {
  std::optional<FoundRows> rows = find_rows(spec, target);
  if (!rows) return std::nullopt;
  const RowProblem& p = rows->problem;
  const RowTiling best = tilings(p, target).front();
  RowTiling t{value_or(tuning, "threads", best.threads), value_or(tuning, "vectors", best.vectors),
              value_or(tuning, "unroll", best.unroll)};
  if (!t.fits(p, target)) t = best;
  AnchoredGroup& group = rows->found.group;
  Kernel kernel = group.kernel();
  RowWriter(kernel, group, p, t, rows->parts).write();
  Candidate out;
  out.name = "rows";
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  return out;
}

std::vector<Tuning> few_row_product_space(const GroupSpec& spec, const TargetInfo& target) {
  constexpr std::size_t most = 12;
  const std::optional<FoundRows> rows = find_rows(spec, target);
  return rows ? named(tilings(rows->problem, target), most) : std::vector<Tuning>();
}

}  // namespace hone
