#include "kernel/tensor_attention_writer.h"

#include <array>
#include <numbers>

#include "kernel/attention_words.h"
#include "kernel/tensor_writer.h"
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
                        const AttentionTiling& t)
      : AttentionWords(kernel, lowering, a.problem, a.range, t.queries(), t.keys),
        a_(a),
        t_(t),
        query_(a.query),
        key_(a.key),
        value_(a.value),
        dtype_(a.problem.q.dtype()),
        steps_(t.rows / 8),
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
    query_.lines = t_.queries();
    key_.lines = value_.lines = t_.keys;
    query_.memory = add_memory(dtype_, query_.lines * query_.pitch(), MemoryScope::group);
    for (TensorRows* r : {&key_, &value_})
      r->memory =
          add_memory(dtype_, AttentionTiling::stages * r->lines * r->pitch(), MemoryScope::group);
    if (hides_keys()) found_ = add_memory(DType::f32, found_size(), MemoryScope::group);
    // Unused by instructions that take scores from registers.
    weights_ = add_memory(dtype_, t_.queries() * weights_pitch(), MemoryScope::group);
    const auto of_thread = [&](std::int64_t n) {
      return add_memory(DType::f32, n, MemoryScope::thread);
    };
    scores_ = of_thread(steps_ * score_tiles_ * 2);
    most_ = of_thread(steps_), shift_ = of_thread(steps_), less_ = of_thread(steps_);
    totals_ = of_thread(steps_), shrink_ = of_thread(steps_);
    scaled_ = of_thread(std::max<std::int64_t>(steps_ * 2, copied_elements));
    place_memory(kernel_);
    kernel_.tiles.assign(static_cast<std::size_t>(score_tiles_ + sum_tiles_),
                         {DType::f32, static_cast<int>(steps_), 2});
  }
  // True if a score is changed beyond its scaling.
  bool changes_scores() const { return p_.softcap || a_.mask; }
  std::int64_t weights_pitch() const { return t_.keys + TensorRows::gap; }

  // ---- a group

  void thread() {
    const Dim lane = positions_.remainder(thread_, AttentionTiling::subgroup);
    row_ = positions_.quotient(thread_, AttentionTiling::subgroup) * Dim(t_.rows) +
           positions_.quotient(lane, 4);
    column_ = positions_.remainder(lane, 4) * Dim(2);
    begin_sums();
    const Dim count = count_of_blocks();
    bring(query_, first_query_, 0);
    out_.branch(lowering_.below(0, count), [&] { bring_keys(0, 0); });
    out_.add({.kind = Kind::end_batch});
    serial(count, [&](const Dim& step) { step_of(step, count); });
    out_.add({.kind = Kind::wait_copies, .extent = 0});
    results();
  }

  void step_of(const Dim& step, const Dim& count) {
    out_.add({.kind = Kind::wait_copies, .extent = 0});
    barrier();
    const Dim next = step + Dim(1);
    out_.branch(lowering_.below(next, count),
                [&] { bring_keys(next, positions_.remainder(next, AttentionTiling::stages)); });
    out_.add({.kind = Kind::end_batch});
    first_key_ = (first_block_ + step) * Dim(t_.keys);
    const Dim stage = positions_.remainder(step, AttentionTiling::stages);
    for (std::int64_t i = 0; i < score_tiles_; ++i) fill(i);
    multiply_scores(stage);
    read_scores();
    hide_scores();
    find_largest();
    weigh();
    mix(stage);
  }

  // ---- loads to memory

  void bring_keys(const Dim& step, const Dim& stage) {
    const Dim first = (first_block_ + step) * Dim(t_.keys);
    bring(key_, first, stage);
    bring(value_, first, stage);
  }

  // Loads rows starting at `first`, with zeros after the last one.
  void bring(const TensorRows& r, const Dim& first, const Dim& stage) {
    const std::int64_t each = r.padded / copied_elements, total = r.lines * each;
    unrolled(ceil_ratio(total, t_.threads()), [&](const Dim& turn) {
      const Dim i = turn * Dim(t_.threads()) + thread_, line = positions_.quotient(i, each),
                vector = positions_.remainder(i, each);
      const Dim to =
          stage * Dim(r.lines * r.pitch()) + line * Dim(r.pitch()) + vector * Dim(copied_elements);
      Values inside;
      if (total % t_.threads() != 0) inside.push_back(lowering_.below(i, total));
      branch_unless_known(inside, [&] { bring_vector(r, first + line, vector, to); });
    });
  }

  void bring_vector(const TensorRows& r, const Dim& row, const Dim& vector, const Dim& to) {
    const auto element = [&](const Dim& lane) {
      return spliced(lowering_.graph(), r.element, std::array{batch_, row, vector, lane});
    };
    const bool is_odd = r.columns % copied_elements != 0;
    Values conditions;
    if (!divides(r.lines, r.extent)) conditions.push_back(lowering_.below(row, r.extent));
    if (r.padded - r.columns >= copied_elements)
      conditions.push_back(lowering_.below(vector, ceil_ratio(r.columns, copied_elements)));
    if (r.are_copied) {
      const Value load = element(0);
      if (load.operand_count() > 0) conditions.push_back(load.operand(0));
      Stmt s{.kind = Kind::copy_async, .extent = copied_elements, .param = r.memory};
      s.offset = to;
      s.a.param = load_param(load);
      s.a.offset = load.attrs().dims("offset").at(0);
      s.condition = all(conditions);
      return out_.add(std::move(s));
    }
    const Value zero = lowering_.number(0, dtype_);
    const auto store = [&](const Dim& lane, Value v) { put(r.memory, to + lane, v); };
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

  // All rows of the thread, 8 apart.
  TileWindow rows_of(int memory, const Dim& offset, std::int64_t pitch, std::int64_t stride) const {
    TileWindow w{memory, offset, {}, stride};
    for (std::int64_t r = 0; r < steps_; ++r) w.rows.push_back(8 * r * pitch);
    return w;
  }

  void multiply_scores(const Dim& stage) {
    intrinsic(multiply_halves, [&] {
      for (std::int64_t i = 0; i < score_tiles_; ++i) {
        Stmt s{.kind = Kind::tile_multiply};
        s.extent = query_.padded, s.tile = static_cast<int>(i), s.columns = 2;
        s.a = rows_of(query_.memory, row_ * Dim(query_.pitch()), query_.pitch(), 1);
        s.b.param = key_.memory;
        s.b.offset =
            stage * Dim(key_.lines * key_.pitch()) + (column_ + Dim(8 * i)) * Dim(key_.pitch());
        // All of a key is one group of k.
        s.b.stride = 0, s.k_group = static_cast<int>(key_.pitch());
        out_.add(std::move(s));
      }
    });
  }

  Dim score_place(const Dim& r, const Dim& tile, const Dim& c) const {
    return (r * Dim(score_tiles_) + tile) * Dim(2) + c;
  }
  Dim query_of(const Dim& r) const { return first_query_ + row_ + r * Dim(8); }
  Dim key_of(const Dim& tile, const Dim& c) const {
    return first_key_ + column_ + tile * Dim(8) + c;
  }
  // Visits each of the thread's scores.
  void each_score(const std::function<void(const Dim& tile, const Dim& c)>& body) {
    unrolled(score_tiles_,
             [&](const Dim& tile) { lanes(2, [&](const Dim& c) { body(tile, c); }); });
  }

  void read_scores() {
    for (std::int64_t i = 0; i < score_tiles_; ++i)
      unrolled(steps_, [&](const Dim& r) {
        lanes(2, [&](const Dim& c) {
          Value s = tile_element(i, r, c);
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
          Values pairs;
          const bool is_even = divides(2, p_.keys);
          if (a_.mask && is_even && !divides(t_.keys, p_.keys))
            pairs.push_back(lowering_.below(key_of(tile, 0), p_.keys));
          branch_unless_known(pairs, [&] {
            lanes(2, [&](const Dim& c) {
              Values one;
              if (a_.mask && !is_even) one.push_back(lowering_.below(key_of(tile, c), p_.keys));
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
      join(most, ops::maximum, 4);
      put(most_, r, factor_ == 1 ? reg(most) : apply(ops::mul, reg(most), number(factor_)));
    });
    Value is_above;
    for (std::int64_t r = 0; r < steps_; ++r) {
      Value above = apply(ops::lt, apply(ops::add, in(shift_, r), number(slack)), in(most_, r));
      is_above = is_above ? apply(ops::bit_or, is_above, above) : above;
    }
    out_.branch(is_above, [&] { shrink(); });
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
    for (std::int64_t i = 0; i < sum_tiles_; ++i)
      change_sums(i, [&](const Dim& r, const Dim& c) {
        return apply(ops::mul, tile_element(score_tiles_ + i, r, c), in(shrink_, r));
      });
  }

  // Replaces each number of a tile of sums.
  void change_sums(std::int64_t i, const std::function<Value(const Dim&, const Dim&)>& to) {
    unrolled(steps_, [&](const Dim& r) {
      lanes(2, [&](const Dim& c) { put(scaled_, r * Dim(2) + c, to(r, c)); });
    });
    Stmt s{.kind = Kind::tile_load};
    s.tile = static_cast<int>(score_tiles_ + i), s.columns = 2;
    s.a = {scaled_, 0, {}, 1};
    for (std::int64_t r = 0; r < steps_; ++r) s.a.rows.push_back(2 * r);
    out_.add(std::move(s));
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
    intrinsic(multiply_held_halves, [&] {
      unrolled(steps_, [&](const Dim& r) {
        each_score([&](const Dim& tile, const Dim& c) {
          const Dim at = (row_ + r * Dim(8)) * Dim(weights_pitch()) + column_ + tile * Dim(8) + c;
          put(weights_, at, lowering_.convert(in(scores_, score_place(r, tile, c)), dtype_));
        });
      });
      barrier();
      for (std::int64_t i = 0; i < sum_tiles_; ++i) {
        Stmt s{.kind = Kind::tile_multiply};
        s.extent = t_.keys, s.tile = static_cast<int>(score_tiles_ + i), s.columns = 2;
        s.a = rows_of(weights_, row_ * Dim(weights_pitch()), weights_pitch(), 1);
        s.b.param = value_.memory;
        s.b.offset = stage * Dim(value_.lines * value_.pitch()) + column_ + Dim(8 * i);
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
    out_.add({.kind = Kind::reduce_group, .reg = found, .combine = &ops::add, .value = reg(found)});
    out_.branch(apply(ops::ne, reg(found), reg(found)), [&] { count_hidden(); });
  }

  // Keys that no query of the group sees count 0 times their value, which is NaN for an infinite
  // value, as in the operation's expansion. Each thread checks one vector of some rows.
  std::int64_t vectors() const { return value_.padded / copied_elements; }
  std::int64_t parts() const { return std::max<std::int64_t>(1, t_.threads() / vectors()); }
  std::int64_t found_size() const { return parts() * value_.padded; }

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
    lanes(copied_elements, [&](const Dim& lane) {
      put(found_, thread_ * Dim(copied_elements) + lane, in(scaled_, lane));
    });
    barrier();
    for (std::int64_t i = 0; i < sum_tiles_; ++i) {
      lanes(2, [&](const Dim& c) {
        const RegId sum = declare(number(0));
        serial(parts(), [&](const Dim& of) {
          accumulate(sum, ops::add, in(found_, of * Dim(value_.padded) + column_ + Dim(8 * i) + c));
        });
        put(shrink_, c, reg(sum));
      });
      change_sums(i, [&](const Dim&, const Dim& c) { return in(shrink_, c); });
    }
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
      join(total, ops::add, 4);
      Value inverse = apply(ops::div, number(1), reg(total));
      if (p_.keys.low() < 1) inverse = either(lowering_.below(0, p_.keys), inverse, number(0));
      put(totals_, r, inverse);
    });
    for (std::int64_t i = 0; i < sum_tiles_; ++i)
      if (8 * i < p_.width) unrolled(steps_, [&](const Dim& r) { store_results(i, r); });
  }

  void store_results(std::int64_t i, const Dim& r) {
    Values rows;
    if (!divides(t_.queries(), p_.queries))
      rows.push_back(lowering_.below(query_of(r), p_.queries));
    branch_unless_known(rows, [&] {
      lanes(2, [&](const Dim& c) {
        const Dim e = column_ + Dim(8 * i) + c;
        Values columns;
        if (8 * i + 8 > p_.width) columns.push_back(lowering_.below(e, p_.width));
        branch_unless_known(columns, [&] {
          const Value y = apply(ops::mul, tile_element(score_tiles_ + i, r, c), in(totals_, r));
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
  std::int64_t steps_;  // rows of a thread, 8 apart
  std::int64_t score_tiles_, sum_tiles_;
  bool is_raw_ = true;
  double factor_ = 1;
  int found_ = 0, weights_ = 0;
  int scores_ = 0, most_ = 0, shift_ = 0, less_ = 0, totals_ = 0, shrink_ = 0, scaled_ = 0;
  Dim row_ = 0, column_ = 0;  // of the thread's first number in a tile
};

}  // namespace

void write_tensor_attention(Kernel& kernel, Lowering& lowering, const TensorAttention& a,
                            const AttentionTiling& t) {
  TensorAttentionWriter(kernel, lowering, a, t).write();
}

}  // namespace hone
