#include "kernel/groups/tensor_attention_writer.h"

#include <array>
#include <numbers>

#include "kernel/groups/attention_words.h"
#include "kernel/groups/tensor_writer.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

constexpr std::int64_t copied_elements = AttentionRows::vector_width;
// Scores may exceed the maximum by which sums are currently scaled by this power of two.
constexpr double slack = 8;

class TensorAttentionWriter : AttentionWords {
 public:
  TensorAttentionWriter(Kernel& kernel, Lowering& lowering, const TensorAttention& a,
                        const AttentionTiling& t, bool has_opaque_tiles)
      : AttentionWords(kernel, lowering, a.problem, a.range, t.queries(), t.keys),
        a_(a),
        t_(t),
        query_(a.query),
        key_(a.key),
        value_(a.value),
        dtype_(a.problem.q.dtype()),
        is_opaque_(has_opaque_tiles),
        steps_(is_opaque_ ? 1 : t.rows / 8),
        own_(is_opaque_ ? 8 : 2),
        score_tiles_(t.keys / 8),
        sum_tiles_(a.value.padded / 8) {
    // Scores stay unscaled if the multiplication in the exponent scales them.
    constexpr double log2_e = std::numbers::log2e;
    is_raw_ = !changes_scores() && p_.scale >= 0;
    factor_ = is_raw_ ? p_.scale * log2_e : 1;
  }

  void write() {
    lay_out();
    write_grid(t_.threads(), [&] { thread(); });
  }

 private:
  void lay_out() {
    const std::int64_t stages = is_opaque_ ? 1 : AttentionTiling::stages;
    query_.lines = t_.queries();
    key_.lines = value_.lines = t_.keys;
    if (!is_opaque_)
      query_.memory = add_memory(dtype_, query_.lines * query_.pitch(), MemoryScope::group);
    for (TensorRows* r : {&key_, &value_})
      r->memory = add_memory(dtype_, stages * r->lines * r->pitch(), MemoryScope::group);
    if (hides_keys()) found_ = add_memory(DType::f32, found_size(), MemoryScope::group);
    // Unused by instructions that take scores from registers.
    weights_ = add_memory(dtype_, t_.queries() * weights_pitch(), MemoryScope::group);
    if (is_opaque_)
      shown_ = add_memory(DType::f32, t_.queries() * t_.shown_pitch(), MemoryScope::group);
    const auto of_thread = [&](std::int64_t n) {
      return add_memory(DType::f32, n, MemoryScope::thread);
    };
    scores_ = of_thread(steps_ * score_tiles_ * own_);
    most_ = of_thread(steps_), shift_ = of_thread(steps_), less_ = of_thread(steps_);
    totals_ = of_thread(steps_), shrink_ = of_thread(std::max(steps_, own_));
    scaled_ = of_thread(std::max<std::int64_t>(steps_ * own_, copied_elements));
    if (is_opaque_)
      for (TensorRows* r : {&query_, &key_, &value_})
        r->held = add_memory(dtype_, turns(*r, r->padded) * copied_elements, MemoryScope::thread);
    if (is_opaque_) queries_ = add_memory(dtype_, t_.rows / 8 * query_.padded, MemoryScope::thread);
    place_memory(kernel_);
    // A row of scores or sums is shown where at other times its weights lie.
    if (is_opaque_) memory(shown_).offset = memory(weights_).offset;
    kernel_.tiles.assign(static_cast<std::size_t>(score_tiles_ + sum_tiles_),
                         {DType::f32, static_cast<int>(t_.rows / 8), 2});
  }
  // True if a score is changed beyond its scaling.
  bool changes_scores() const { return p_.softcap || a_.mask; }
  std::int64_t weights_pitch() const {
    return is_opaque_ ? 2 * t_.shown_pitch() : t_.keys + TensorRows::gap;
  }
  KernelMemory& memory(int param) {
    return kernel_.memory[static_cast<std::size_t>(param) - kernel_.params.size()];
  }

  // ---- a group

  void thread() {
    const Dim lane = positions_.remainder(thread_, AttentionTiling::subgroup);
    tile_row_ = positions_.quotient(thread_, AttentionTiling::subgroup) * Dim(t_.rows) +
                positions_.quotient(lane, 4);
    tile_column_ = positions_.remainder(lane, 4) * Dim(2);
    row_ = is_opaque_ ? thread_ : tile_row_;
    column_ = is_opaque_ ? Dim(0) : tile_column_;
    begin_sums();
    const Dim count = count_of_blocks();
    if (is_opaque_) {
      hold_queries();
      out_.branch(lowering_.below(0, count), [&] { fetch_keys(0); });
      serial(count, [&](const Dim& step) { step_of_fetched(step, count); });
    } else {
      copy(query_, first_query_, 0);
      out_.branch(lowering_.below(0, count), [&] { copy_keys(0, 0); });
      out_.add({.kind = Kind::end_batch});
      serial(count, [&](const Dim& step) { step_of_copied(step, count); });
      out_.add({.kind = Kind::wait_copies, .extent = 0});
    }
    results();
  }

  // The next block is copied to other memory meanwhile.
  void step_of_copied(const Dim& step, const Dim& count) {
    out_.add({.kind = Kind::wait_copies, .extent = 0});
    barrier();
    const Dim next = step + Dim(1);
    out_.branch(lowering_.below(next, count),
                [&] { copy_keys(next, positions_.remainder(next, AttentionTiling::stages)); });
    out_.add({.kind = Kind::end_batch});
    visit_keys(step, positions_.remainder(step, AttentionTiling::stages));
  }

  // The threads hold the next block meanwhile.
  void step_of_fetched(const Dim& step, const Dim& count) {
    barrier();
    put_fetched(key_, key_.padded, key_.memory, key_.pitch());
    put_fetched(value_, value_.padded, value_.memory, value_.pitch());
    barrier();
    const Dim next = step + Dim(1);
    out_.branch(lowering_.below(next, count), [&] { fetch_keys(next); });
    visit_keys(step, 0);
  }

  void visit_keys(const Dim& step, const Dim& stage) {
    first_key_ = first_key(step);
    for (std::int64_t i = 0; i < score_tiles_; ++i) fill(i);
    multiply_scores(stage);
    read_scores();
    hide_scores();
    find_largest();
    weigh();
    mix(stage);
  }
  Dim first_key(const Dim& step) const { return (first_block_ + step) * Dim(t_.keys); }

  // ---- loads to memory

  void copy_keys(const Dim& step, const Dim& stage) {
    copy(key_, first_key(step), stage);
    copy(value_, first_key(step), stage);
  }
  void fetch_keys(const Dim& step) {
    fetch(key_, first_key(step), 0, key_.padded);
    fetch(value_, first_key(step), 0, value_.padded);
  }
  // As many columns at a time as the memory of the weights has, by way of that.
  void hold_queries() {
    const std::int64_t most = weights_pitch() / 16 * 16;
    for (std::int64_t first = 0; first < query_.padded; first += most) {
      const std::int64_t columns = std::min(most, query_.padded - first);
      fetch(query_, first_query_, first, columns);
      if (first > 0 || hides_keys()) barrier();
      put_fetched(query_, columns, weights_, weights_pitch());
      barrier();
      intrinsic(hold_matrices, [&] {
        unrolled(t_.rows / 8, [&](const Dim& r) {
          unrolled(columns, [&](const Dim& k) {
            const Dim from = (tile_row_ + r * Dim(8)) * Dim(weights_pitch()) + k;
            put(queries_, r * Dim(query_.padded) + Dim(first) + k,
                lowering_.load(weights_, dtype_, from));
          });
        });
      });
    }
  }

  std::int64_t turns(const TensorRows& r, std::int64_t columns) const {
    return ceil_ratio(r.lines * columns / copied_elements, t_.threads());
  }
  // Visits each vector that the thread moves of that many columns.
  void each_vector(const TensorRows& r, std::int64_t columns,
                   const std::function<void(Dim turn, Dim line, Dim vector)>& body) {
    const std::int64_t each = columns / copied_elements, total = r.lines * each;
    unrolled(turns(r, columns), [&](const Dim& turn) {
      const Dim i = turn * Dim(t_.threads()) + thread_;
      Values inside;
      if (total % t_.threads() != 0) inside.push_back(lowering_.below(i, total));
      branch_unless_known(
          inside, [&] { body(turn, positions_.quotient(i, each), positions_.remainder(i, each)); });
    });
  }

  // Copies rows starting at `first` to group memory, with zeros after the last one.
  void copy(const TensorRows& r, const Dim& first, const Dim& stage) {
    each_vector(r, r.padded, [&](const Dim&, const Dim& line, const Dim& vector) {
      const Dim to = (stage * Dim(r.lines) + line) * Dim(r.pitch()) + vector * Dim(copied_elements);
      copy_vector(r, first + line, vector, r.memory, to);
    });
  }

  // The same in two steps, by way of the threads, from column `from` on.
  void fetch(const TensorRows& r, const Dim& first, std::int64_t from, std::int64_t columns) {
    each_vector(r, columns, [&](const Dim& turn, const Dim& line, const Dim& vector) {
      copy_vector(r, first + line, Dim(from / copied_elements) + vector, r.held,
                  turn * Dim(copied_elements));
    });
  }
  void put_fetched(const TensorRows& r, std::int64_t columns, int memory, std::int64_t pitch) {
    each_vector(r, columns, [&](const Dim& turn, const Dim& line, const Dim& vector) {
      lanes(copied_elements, [&](const Dim& lane) {
        put(memory, line * Dim(pitch) + vector * Dim(copied_elements) + lane,
            lowering_.load(r.held, dtype_, turn * Dim(copied_elements) + lane));
      });
    });
  }

  void copy_vector(const TensorRows& r, const Dim& row, const Dim& vector, int memory,
                   const Dim& to) {
    const auto element = [&](const Dim& lane) {
      return spliced(lowering_.graph(), r.element, std::array{batch_, row, vector, lane});
    };
    const bool is_odd = r.columns % copied_elements != 0;
    Values conditions;
    if (!divides(r.lines, r.extent)) conditions.push_back(lowering_.below(row, r.extent));
    if (r.padded - r.columns >= copied_elements)
      conditions.push_back(lowering_.below(vector, ceil_ratio(r.columns, copied_elements)));
    if (r.are_copied && !is_opaque_) {
      const Value load = element(0);
      if (load.operand_count() > 0) conditions.push_back(load.operand(0));
      Stmt s{.kind = Kind::copy_async, .extent = copied_elements, .param = memory};
      s.offset = to;
      s.a.param = load_param(load);
      s.a.offset = load.attrs().dims("offset").at(0);
      s.condition = all(conditions);
      return out_.add(std::move(s));
    }
    const Value zero = lowering_.number(0, dtype_);
    const auto store = [&](const Dim& lane, Value v) { put(memory, to + lane, v); };
    branch_unless_known(
        conditions,
        [&] {
          lanes(copied_elements, [&](const Dim& lane) {
            Values there;
            if (is_odd)
              there.push_back(lowering_.below(vector * Dim(copied_elements) + lane, r.columns));
            branch_unless_known(
                there, [&] { store(lane, element(lane)); }, [&] { store(lane, zero); });
          });
        },
        [&] { lanes(copied_elements, [&](const Dim& lane) { store(lane, zero); }); });
  }

  // ---- scores

  void fill(std::int64_t tile) {
    Stmt s{.kind = Kind::tile_fill, .value = number(0)};
    s.tile = static_cast<int>(tile), s.columns = 2;
    out_.add(std::move(s));
  }

  // The thread's rows of a tile, 8 apart.
  TileWindow rows_of(int memory, const Dim& offset, std::int64_t pitch) const {
    TileWindow w{memory, offset, {}, 1};
    for (std::int64_t r = 0; r < t_.rows / 8; ++r) w.rows.push_back(8 * r * pitch);
    return w;
  }

  // Stores `count` tiles to memory that all threads of the subgroup see, one beside the other, and
  // loads them from there. That memory may have been used by threads of the subgroup only.
  void show(std::int64_t first, std::int64_t count) {
    intrinsic(store_matrices, [&] {
      for (std::int64_t i = 0; i < count; ++i)
        unrolled(t_.rows / 8, [&](const Dim& r) {
          lanes(2, [&](const Dim& c) {
            const Dim at =
                shown_place(tile_row_, 8 * i) + r * Dim(8 * t_.shown_pitch()) + tile_column_;
            put(shown_, at + c, tile_element(first + i, r, c));
          });
        });
    });
    barrier_of_subgroup();
  }
  void load_shown(std::int64_t first, std::int64_t count) {
    barrier_of_subgroup();
    intrinsic(load_matrices, [&] {
      for (std::int64_t i = 0; i < count; ++i) {
        Stmt s{.kind = Kind::tile_load};
        s.tile = static_cast<int>(first + i), s.columns = 2;
        s.a = rows_of(shown_, shown_place(tile_row_, 8 * i) + tile_column_, t_.shown_pitch());
        out_.add(std::move(s));
      }
    });
    barrier_of_subgroup();  // what follows may write there
  }
  Dim shown_place(const Dim& row, const Dim& column) const {
    return row * Dim(t_.shown_pitch()) + column;
  }
  void barrier_of_subgroup() { barrier_of(AttentionTiling::subgroup); }

  void multiply_scores(const Dim& stage) {
    intrinsic(is_opaque_ ? multiply_matrices : multiply_halves, [&] {
      for (std::int64_t i = 0; i < score_tiles_; ++i) {
        Stmt s{.kind = Kind::tile_multiply};
        s.extent = query_.padded, s.tile = static_cast<int>(i), s.columns = 2;
        s.a = is_opaque_ ? rows_of(queries_, 0, query_.padded / 8)
                         : rows_of(query_.memory, tile_row_ * Dim(query_.pitch()), query_.pitch());
        s.b.param = key_.memory;
        s.b.offset = stage * Dim(key_.lines * key_.pitch()) +
                     (tile_column_ + Dim(8 * i)) * Dim(key_.pitch());
        // All of a key is one group of k.
        s.b.stride = 0, s.k_group = static_cast<int>(key_.pitch());
        out_.add(std::move(s));
      }
    });
  }

  Dim score_place(const Dim& r, const Dim& tile, const Dim& c) const {
    return (r * Dim(score_tiles_) + tile) * Dim(own_) + c;
  }
  Dim query_of(const Dim& r) const { return first_query_ + row_ + r * Dim(8); }
  Dim key_of(const Dim& tile, const Dim& c) const {
    return first_key_ + column_ + tile * Dim(8) + c;
  }
  // Visits each of the thread's scores.
  void each_score(const std::function<void(const Dim& tile, const Dim& c)>& body) {
    unrolled(score_tiles_,
             [&](const Dim& tile) { lanes(own_, [&](const Dim& c) { body(tile, c); }); });
  }

  void read_scores() {
    if (is_opaque_) show(0, score_tiles_);
    for (std::int64_t i = 0; i < score_tiles_; ++i)
      unrolled(steps_, [&](const Dim& r) {
        words(own_, [&](const Dim& c) {
          Value s = is_opaque_ ? in(shown_, shown_place(row_, 8 * i) + c) : tile_element(i, r, c);
          // Scores that the mask changes are only scaled; others become exponents of two.
          if (changes_scores())
            s = apply(ops::mul, s, number(p_.scale));
          else if (!is_raw_)
            s = apply(ops::mul, s, number(p_.scale * std::numbers::log2e));
          put(scores_, score_place(r, i, c), s);
        });
      });
    if (changes_scores()) change_scores();
  }

  void change_scores() {
    unrolled(steps_, [&](const Dim& r) {
      Values rows;
      if (a_.mask && !divides(t_.queries(), p_.queries))
        rows.push_back(lowering_.below(query_of(r), p_.queries));
      branch_unless_known(rows, [&] {
        unrolled(score_tiles_, [&](const Dim& tile) {
          Values together;
          const bool are_together = divides(own_, p_.keys);
          if (a_.mask && are_together && !divides(t_.keys, p_.keys))
            together.push_back(lowering_.below(key_of(tile, 0), p_.keys));
          branch_unless_known(together, [&] {
            lanes(own_, [&](const Dim& c) {
              Values one;
              if (a_.mask && !are_together)
                one.push_back(lowering_.below(key_of(tile, c), p_.keys));
              branch_unless_known(one, [&] { change_score(r, tile, c); });
            });
          });
        });
      });
    });
  }

  void change_score(const Dim& r, const Dim& tile, const Dim& c) {
    const Dim at = score_place(r, tile, c);
    Value mask;
    if (a_.mask)
      mask = spliced(lowering_.graph(), *a_.mask, std::array{batch_, query_of(r), key_of(tile, c)});
    const Value s = changed_score(lowering_, p_, in(scores_, at), mask);
    put(scores_, at, apply(ops::mul, s, number(std::numbers::log2e)));
  }

  // Excludes keys past the last and those that a query may not see. Few blocks have any.
  void hide_scores() {
    const Value any = hides_some();
    if (!any) return;
    out_.branch(any, [&] {
      unrolled(steps_, [&](const Dim& r) {
        const Dim own = first_key_ + column_;
        const Dim limit = out_.keep_signed(visible_to(query_of(r)) - own);
        std::optional<Dim> first;
        if (range_.first) first = out_.keep_signed(query_of(r) + *range_.first - own);
        each_score([&](const Dim& tile, const Dim& c) {
          const Dim at = score_place(r, tile, c), key = tile * Dim(8) + c;
          Values seen = {lowering_.below(key, limit)};
          if (first) seen.push_back(out_.at_most(*first, key));
          put(scores_, at, either(all(seen), in(scores_, at), number(-infinity)));
        });
      });
    });
  }
  // ---- the softmax, in powers of two

  // Finds the largest score of each row; skips rescaling if sums are still scaled well enough by
  // the previous maximum.
  void find_largest() {
    unrolled(steps_, [&](const Dim& r) {
      const RegId most = declare(number(-infinity));
      each_score([&](const Dim& tile, const Dim& c) {
        accumulate(most, ops::maximum, in(scores_, score_place(r, tile, c)));
      });
      if (!is_opaque_) join(most, ops::maximum, 4);
      put(most_, r, factor_ == 1 ? reg(most) : apply(ops::mul, reg(most), number(factor_)));
    });
    Value is_above;
    for (std::int64_t r = 0; r < steps_; ++r) {
      Value above = apply(ops::lt, apply(ops::add, in(shift_, r), number(slack)), in(most_, r));
      is_above = is_above ? apply(ops::bit_or, is_above, above) : above;
    }
    if (!is_opaque_) return out_.branch(is_above, [&] { shrink(); });
    // A subgroup changes its matrices together.
    const RegId any = declare(lowering_.convert(is_above, DType::i32));
    join(any, ops::bit_or, AttentionTiling::subgroup, DType::i32);
    out_.branch(apply(ops::ne, lowering_.reg(any, DType::i32), lowering_.number(0, DType::i32)),
                [&] { shrink(); });
  }

  // A row with only -infinity so far is not shifted: its powers are then 0, as they should be.
  void shrink() {
    intrinsic(short_powers, [&] {
      unrolled(steps_, [&](const Dim& r) {
        const Value before = keep(in(shift_, r)),
                    now = keep(apply(ops::maximum, before, in(most_, r))),
                    shift = keep(either(apply(ops::eq, now, number(-infinity)), number(0), now)),
                    factor = keep(power_of_two(apply(ops::sub, before, shift)));
        put(shift_, r, now);
        put(less_, r, apply(ops::sub, number(0), shift));
        put(shrink_, r, factor);
        put(totals_, r, apply(ops::mul, in(totals_, r), factor));
      });
    });
    change_sums({}, [&](std::int64_t i, const Dim& r, const Dim& c) {
      return apply(ops::mul, sum(i, r, c), in(shrink_, r));
    });
  }

  // Visits the tiles of sums; if they are opaque, while those of some columns are shown.
  void each_sum_tile(const std::function<void(std::int64_t tile)>& body,
                     const std::function<void(std::int64_t first, std::int64_t count)>& then) {
    const std::int64_t most = is_opaque_ ? score_tiles_ : sum_tiles_;
    for (std::int64_t first = 0; first < sum_tiles_; first += most) {
      const std::int64_t count = std::min(most, sum_tiles_ - first);
      first_shown_ = first;
      if (is_opaque_) {
        if (first == 0 || !then) barrier_of_subgroup();
        show(score_tiles_ + first, count);
      }
      for (std::int64_t i = first; i < first + count; ++i) body(i);
      if (then) then(first, count);
    }
  }
  Value sum(std::int64_t i, const Dim& r, const Dim& c) const {
    return is_opaque_ ? in(shown_, shown_place(row_, 8 * (i - first_shown_)) + c)
                      : tile_element(score_tiles_ + i, r, c);
  }

  // Replaces each of the thread's sums; `before` comes before those of each tile.
  void change_sums(const std::function<void(std::int64_t tile)>& before,
                   const std::function<Value(std::int64_t tile, const Dim& r, const Dim& c)>& to) {
    each_sum_tile(
        [&](std::int64_t i) {
          if (before) before(i);
          if (is_opaque_)
            return words(own_, [&](const Dim& c) {
              put(shown_, shown_place(row_, 8 * (i - first_shown_)) + c, to(i, 0, c));
            });
          unrolled(steps_, [&](const Dim& r) {
            lanes(2, [&](const Dim& c) { put(scaled_, r * Dim(2) + c, to(i, r, c)); });
          });
          Stmt s{.kind = Kind::tile_load};
          s.tile = static_cast<int>(score_tiles_ + i), s.columns = 2;
          s.a = rows_of(scaled_, 0, 0);
          for (std::int64_t r = 0; r < steps_; ++r) s.a.rows[static_cast<std::size_t>(r)] = 2 * r;
          out_.add(std::move(s));
        },
        [&](std::int64_t first, std::int64_t count) {
          if (is_opaque_) load_shown(score_tiles_ + first, count);
        });
  }

  // Lanes that access f32 in group memory, in words of 16 bytes if tiles are opaque.
  void words(std::int64_t count, const Body& body) {
    const std::int64_t width = is_opaque_ ? 4 : count;
    for (std::int64_t i = 0; i < count; i += width)
      lanes(width, [&](const Dim& lane) { body(Dim(i) + lane); });
  }

  void weigh() {
    intrinsic(short_powers, [&] {
      unrolled(steps_, [&](const Dim& r) {
        const RegId sum = declare(number(0));
        const Value less = keep(in(less_, r));
        each_score([&](const Dim& tile, const Dim& c) {
          const Dim at = score_place(r, tile, c);
          const Value s =
              factor_ == 1 ? in(scores_, at) : apply(ops::mul, in(scores_, at), number(factor_));
          const Value weight = keep(power_of_two(apply(ops::add, s, less)));
          put(scores_, at, weight);
          accumulate(sum, ops::add, weight);
        });
        put(totals_, r, apply(ops::add, in(totals_, r), reg(sum)));
      });
    });
  }

  // ---- sums

  void mix(const Dim& stage) {
    const auto put_weights = [&] {
      unrolled(steps_, [&](const Dim& r) {
        each_score([&](const Dim& tile, const Dim& c) {
          const Dim at = (row_ + r * Dim(8)) * Dim(weights_pitch()) + column_ + tile * Dim(8) + c;
          put(weights_, at, lowering_.convert(in(scores_, score_place(r, tile, c)), dtype_));
        });
      });
      is_opaque_ ? barrier_of_subgroup() : barrier();
    };
    if (is_opaque_) put_weights();
    intrinsic(is_opaque_ ? multiply_matrices : multiply_held_halves, [&] {
      if (!is_opaque_) put_weights();
      for (std::int64_t i = 0; i < sum_tiles_; ++i) {
        Stmt s{.kind = Kind::tile_multiply};
        s.extent = t_.keys, s.tile = static_cast<int>(score_tiles_ + i), s.columns = 2;
        s.a = rows_of(weights_, tile_row_ * Dim(weights_pitch()), weights_pitch());
        s.b.param = value_.memory;
        s.b.offset = stage * Dim(value_.lines * value_.pitch()) + tile_column_ + Dim(8 * i);
        s.b.stride = value_.pitch();
        out_.add(std::move(s));
      }
    });
  }

  void begin_sums() {
    unrolled(steps_, [&](const Dim& r) {
      put(shift_, r, number(-infinity));
      put(less_, r, number(0));
      put(totals_, r, number(0));
    });
    for (std::int64_t i = 0; i < sum_tiles_; ++i) fill(score_tiles_ + i);
    if (!hides_keys()) return;
    if (!a_.finite) {
      const Value are_hidden =
          apply(ops::bit_or, lowering_.below(visible_, p_.keys), lowering_.below(0, first_block_));
      return out_.branch(are_hidden, [&] { count_hidden(); });
    }
    const RegId found = declare(number(0));
    const Replacement here[] = {{a_.b, batch_}};
    const Dim first = replace(a_.finite->matrix, here) * a_.finite->parts;
    serial(ceil_div(a_.finite->parts, t_.threads()), [&](const Dim& turn) {
      const Dim part = turn * Dim(t_.threads()) + thread_;
      out_.branch(lowering_.below(part, a_.finite->parts),
                  [&] { accumulate(found, ops::add, in(a_.finite->param, first + part)); });
    });
    join_group(found, ops::add);
    out_.branch(apply(ops::ne, reg(found), reg(found)), [&] { count_hidden(); });
  }

  // Keys that no query of the group sees count 0 times their value, which is NaN for an infinite
  // value, as in the operation's expansion. Each thread checks one vector of some rows.
  std::int64_t vectors() const { return value_.padded / copied_elements; }
  std::int64_t parts() const { return std::max<std::int64_t>(1, t_.threads() / vectors()); }
  // Every thread stores a vector, including those whose vector is not read.
  std::int64_t found_size() const { return t_.threads() * copied_elements; }

  void count_hidden() {
    const Dim vector = positions_.remainder(thread_, vectors()),
              part = positions_.quotient(thread_, vectors());
    Values inside;
    if (t_.threads() != parts() * vectors())
      inside.push_back(lowering_.below(thread_, parts() * vectors()));
    if (value_.padded - value_.columns >= copied_elements)
      inside.push_back(lowering_.below(vector, ceil_ratio(value_.columns, copied_elements)));
    HONE_ASSERT(vectors() <= t_.threads(), kernel_.name, ": rows of ", vectors(), " vectors");
    lanes(copied_elements, [&](const Dim& lane) { put(scaled_, lane, number(0)); });
    branch_unless_known(inside, [&] {
      count_rows(vector, part, 0, first_block_ * Dim(t_.keys));
      count_rows(vector, part, visible_, p_.keys);
    });
    words(copied_elements, [&](const Dim& lane) {
      put(found_, thread_ * Dim(copied_elements) + lane, in(scaled_, lane));
    });
    barrier();
    change_sums(
        [&](std::int64_t i) {
          lanes(own_, [&](const Dim& c) {
            const RegId sum = declare(number(0));
            serial(parts(), [&](const Dim& of) {
              const Dim at = of * Dim(value_.padded) + column_ + Dim(8 * i) + c;
              accumulate(sum, ops::add, in(found_, at));
            });
            put(shrink_, c, reg(sum));
          });
        },
        [&](std::int64_t, const Dim&, const Dim& c) { return in(shrink_, c); });
  }

  void count_rows(const Dim& vector, const Dim& part, const Dim& from, const Dim& to) {
    if (from == to) return;
    const Dim rows = out_.keep(max(Dim(0), to - from - part));
    serial(ceil_div(rows, parts()), [&](const Dim& turn) {
      const Dim row = from + part + turn * Dim(parts());
      lanes(copied_elements, [&](const Dim& lane) {
        Values there;
        if (value_.columns % copied_elements != 0)
          there.push_back(lowering_.below(vector * Dim(copied_elements) + lane, value_.columns));
        branch_unless_known(there, [&] {
          const Value v = lowering_.convert(
              spliced(lowering_.graph(), value_.element, std::array{batch_, row, vector, lane}),
              DType::f32);
          put(scaled_, lane, apply(ops::add, in(scaled_, lane), apply(ops::mul, v, number(0))));
        });
      });
    });
  }

  // The sum over no keys is 0.
  void results() {
    unrolled(steps_, [&](const Dim& r) {
      const RegId total = declare(in(totals_, r));
      if (!is_opaque_) join(total, ops::add, 4);
      Value inverse = apply(ops::div, number(1), reg(total));
      if (p_.keys.low() < 1) inverse = either(lowering_.below(0, p_.keys), inverse, number(0));
      put(totals_, r, inverse);
    });
    each_sum_tile(
        [&](std::int64_t i) {
          if (8 * i < p_.width) unrolled(steps_, [&](const Dim& r) { store_results(i, r); });
        },
        {});
  }

  void store_results(std::int64_t i, const Dim& r) {
    Values rows;
    if (!divides(t_.queries(), p_.queries))
      rows.push_back(lowering_.below(query_of(r), p_.queries));
    branch_unless_known(rows, [&] {
      lanes(own_, [&](const Dim& c) {
        const Dim e = column_ + Dim(8 * i) + c;
        Values columns;
        if (8 * i + 8 > p_.width) columns.push_back(lowering_.below(e, p_.width));
        branch_unless_known(columns, [&] {
          const Value y = apply(ops::mul, sum(i, r, c), in(totals_, r));
          const std::array at = {batch_, query_of(r), e};
          for (Stmt& s : spliced_stores(lowering_.graph(), a_.epilogue, at, y))
            out_.add(std::move(s));
        });
      });
    });
  }

  const TensorAttention& a_;
  const AttentionTiling& t_;
  TensorRows query_, key_, value_;
  DType dtype_;
  // Scores that a thread works on. If it knows its part of a tile, that: rows 8 apart, 2 columns of
  // every 8. Else all columns of one row, by way of group memory.
  bool is_opaque_;
  std::int64_t steps_, own_;  // rows; columns of every 8
  std::int64_t score_tiles_, sum_tiles_, first_shown_ = 0;
  bool is_raw_ = true;
  double factor_ = 1;
  int found_ = 0, weights_ = 0, shown_ = 0, queries_ = 0;
  int scores_ = 0, most_ = 0, shift_ = 0, less_ = 0, totals_ = 0, shrink_ = 0, scaled_ = 0;
  Dim tile_row_ = 0, tile_column_ = 0;  // of the thread's first number in a tile
  Dim row_ = 0, column_ = 0;            // of its first score
};

}  // namespace

void write_tensor_attention(Kernel& kernel, Lowering& lowering, const TensorAttention& a,
                            const AttentionTiling& t, bool has_opaque_tiles) {
  TensorAttentionWriter(kernel, lowering, a, t, has_opaque_tiles).write();
}

}  // namespace hone
