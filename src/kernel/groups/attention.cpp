#include "kernel/groups/attention.h"

#include <algorithm>

#include "base/checked.h"
#include "kernel/groups/attention_words.h"
#include "kernel/groups/tensor_writer.h"
#include "kernel/nest/blocking.h"

namespace hone {

namespace {

// Threads form rows of `across`, each with a tile of `tile_rows` rows.
constexpr std::int64_t across = 8, tile_rows = 4;

struct GroupAttentionTiling {
  std::int64_t threads = 128, keys = 32;

  std::int64_t queries() const { return threads / across * tile_rows; }
  // Threads that share the scores of a query.
  std::int64_t of_query() const { return threads / queries(); }
  // Lines of odd length begin at different banks.
  static std::int64_t pitch(std::int64_t elements) { return elements | 1; }
  Tuning named() const { return {{"threads", threads}, {"keys", keys}}; }
  bool operator==(const GroupAttentionTiling&) const = default;

  bool fits(const AttentionProblem& p, const TargetInfo& target) const {
    if (threads < 32 || threads % 32 != 0 || threads > target.group_threads || keys < across ||
        keys % across != 0)
      return false;
    const std::int64_t width = round_up(p.width, across),
                       elements = queries() * (pitch(p.depth) + pitch(keys) + 1) +
                                  p.depth * pitch(keys) + keys * width;
    // Reductions over neighbours may need one element per thread.
    constexpr std::int64_t most_columns = 32;
    return 4 * (elements + threads) + 512 <= target.group_bytes && width / across <= most_columns;
  }
};

std::vector<GroupAttentionTiling> tilings(const AttentionProblem& p, const TargetInfo& target) {
  std::vector<GroupAttentionTiling> out;
  for (const std::int64_t threads : {128, 256, 64, 32})
    for (const std::int64_t keys : {32, 64, 16, 8})
      if (const GroupAttentionTiling t{threads, keys}; t.fits(p, target)) out.push_back(t);
  return out;
}

struct GroupAttention {
  AttentionProblem problem;
  KeyRange range;
  Splice query, key, value, epilogue;  // (b, m, d), (b, s, d), (b, s, e), (b, m, e)
  std::optional<Splice> mask;          // (b, m, s); only what the range does not cover
};

class GroupAttentionWriter : AttentionWords {
 public:
  GroupAttentionWriter(Kernel& kernel, Lowering& lowering, const GroupAttention& a,
                       const GroupAttentionTiling& t)
      : AttentionWords(kernel, lowering, a.problem, a.range, t.queries(), t.keys),
        a_(a),
        t_(t),
        width_(round_up(a.problem.width, across)) {}

  void write() {
    lay_out();
    write_grid(t_.threads, [&] { thread(); });
  }

 private:
  enum Tile { scores_tile, sums_tile };

  void lay_out() {
    const auto shared = [&](std::int64_t n) {
      return add_memory(DType::f32, n, MemoryScope::group);
    };
    queries_ = shared(t_.queries() * query_pitch());
    keys_ = shared(p_.depth * key_pitch());
    values_ = shared(std::max(t_.keys, parts()) * width_);
    scores_ = shared(t_.queries() * key_pitch());
    factors_ = shared(t_.queries());
    changed_ = add_memory(DType::f32, tile_rows * sum_columns(), MemoryScope::thread);
    place_memory(kernel_);
    kernel_.tiles = {{DType::f32, tile_rows, static_cast<int>(score_columns())},
                     {DType::f32, tile_rows, static_cast<int>(sum_columns())}};
  }
  std::int64_t query_pitch() const { return t_.pitch(p_.depth); }
  std::int64_t key_pitch() const { return t_.pitch(t_.keys); }
  std::int64_t score_columns() const { return t_.keys / across; }
  std::int64_t sum_columns() const { return width_ / across; }
  Dim own_query() const { return first_query_ + own_row_; }

  void thread() {
    row_ = positions_.quotient(thread_, across) * Dim(tile_rows);
    column_ = positions_.remainder(thread_, across);
    own_row_ = positions_.quotient(thread_, t_.of_query());
    own_part_ = positions_.remainder(thread_, t_.of_query());
    largest_ = declare(number(-infinity));
    total_ = declare(number(0));
    fill(sums_tile, sum_columns());
    if (hides_keys()) {
      const Value are_hidden =
          apply(ops::bit_or, lowering_.below(visible_, p_.keys), lowering_.below(0, first_block_));
      out_.branch(are_hidden, [&] { count_hidden(); });
    }
    bring_queries();
    serial(count_of_blocks(), [&](const Dim& step) { step_of(step); });
    results();
  }

  void step_of(const Dim& step) {
    first_key_ = (first_block_ + step) * Dim(t_.keys);
    barrier();
    bring_keys();
    barrier();
    multiply_scores();
    barrier();
    weigh();
    barrier();
    scale_sums();
    mix();
  }

  // ---- what the group shares

  // Runs `body` for the thread's share of `total` elements.
  void each_of(std::int64_t total, const Body& body) {
    serial(ceil_ratio(total, t_.threads), [&](const Dim& turn) {
      const Dim i = turn * Dim(t_.threads) + thread_;
      Values inside;
      if (total % t_.threads != 0) inside.push_back(lowering_.below(i, total));
      branch_unless_known(inside, [&] { body(i); });
    });
  }
  // Stores the element if the row, one of blocks of `rows`, exists, else 0.
  void put_element(int memory, const Dim& to, const Splice& of, const Dim& row, std::int64_t rows,
                   const Dim& extent, const Dim& column, const Values& more) {
    Values there = more;
    if (!divides(rows, extent)) there.push_back(lowering_.below(row, extent));
    branch_unless_known(
        there,
        [&] {
          const Value v = spliced(lowering_.graph(), of, std::array{batch_, row, column});
          put(memory, to, lowering_.convert(v, DType::f32));
        },
        [&] { put(memory, to, number(0)); });
  }

  void bring_queries() {
    each_of(t_.queries() * p_.depth, [&](const Dim& i) {
      const Dim line = positions_.quotient(i, p_.depth), d = positions_.remainder(i, p_.depth);
      put_element(queries_, line * Dim(query_pitch()) + d, a_.query, first_query_ + line,
                  t_.queries(), p_.queries, d, {});
    });
  }

  // Keys are stored transposed, so that neighbouring keys are adjacent.
  void bring_keys() {
    each_of(t_.keys * p_.depth, [&](const Dim& i) {
      const Dim line = positions_.quotient(i, p_.depth), d = positions_.remainder(i, p_.depth);
      put_element(keys_, d * Dim(key_pitch()) + line, a_.key, first_key_ + line, t_.keys, p_.keys,
                  d, {});
    });
    each_of(t_.keys * width_, [&](const Dim& i) {
      const Dim line = positions_.quotient(i, width_), e = positions_.remainder(i, width_);
      Values inside;
      if (width_ != p_.width) inside.push_back(lowering_.below(e, p_.width));
      put_element(values_, i, a_.value, first_key_ + line, t_.keys, p_.keys, e, inside);
    });
  }

  // ---- tiles

  void fill(Tile tile, std::int64_t columns) {
    Stmt s{.kind = Kind::tile_fill, .value = number(0)};
    s.tile = tile, s.columns = columns;
    out_.add(std::move(s));
  }
  TileWindow rows_of(int memory, const Dim& first, std::int64_t pitch) const {
    TileWindow w{memory, first, {}, 1};
    for (std::int64_t r = 0; r < tile_rows; ++r) w.rows.push_back(r * pitch);
    return w;
  }
  void multiply(Tile tile, std::int64_t columns, std::int64_t extent, TileWindow a, TileWindow b) {
    Stmt s{.kind = Kind::tile_multiply};
    s.tile = tile, s.columns = columns, s.extent = extent;
    s.a = std::move(a), s.b = std::move(b);
    out_.add(std::move(s));
  }

  void multiply_scores() {
    fill(scores_tile, score_columns());
    const Dim first = column_ * Dim(score_columns());
    multiply(scores_tile, score_columns(), p_.depth,
             rows_of(queries_, row_ * Dim(query_pitch()), query_pitch()),
             {keys_, first, {}, key_pitch()});
    Stmt s{.kind = Kind::tile_store};
    s.tile = scores_tile, s.columns = score_columns();
    s.a = rows_of(scores_, row_ * Dim(key_pitch()) + first, key_pitch());
    out_.add(std::move(s));
  }

  void mix() {
    multiply(sums_tile, sum_columns(), t_.keys,
             rows_of(scores_, row_ * Dim(key_pitch()), key_pitch()),
             {values_, column_ * Dim(sum_columns()), {}, width_});
  }

  // Replaces each number of the tile of sums.
  void change_sums(const std::function<Value(const Dim& r, const Dim& c)>& to) {
    unrolled(tile_rows, [&](const Dim& r) {
      lanes(sum_columns(),
            [&](const Dim& c) { put(changed_, r * Dim(sum_columns()) + c, to(r, c)); });
    });
    Stmt s{.kind = Kind::tile_load};
    s.tile = sums_tile, s.columns = sum_columns();
    s.a = rows_of(changed_, 0, sum_columns());
    out_.add(std::move(s));
  }
  void scale_sums() {
    change_sums([&](const Dim& r, const Dim& c) {
      return apply(ops::mul, tile_element(sums_tile, r, c), in(factors_, row_ + r));
    });
  }

  // ---- the softmax of the block's scores, in powers of two

  void weigh() {
    const Dim row = out_.keep(own_row_ * Dim(key_pitch()));
    const std::int64_t own = t_.keys / t_.of_query();
    const auto each_key = [&](const std::function<void(const Dim& key, const Dim& place)>& body) {
      serial(own, [&](const Dim& i) {
        const Dim key = i * Dim(t_.of_query()) + own_part_;
        body(key, row + key);
      });
    };
    const RegId most = declare(number(-infinity));
    each_key([&](const Dim& key, const Dim& place) {
      const Value s = keep(score(key, in(scores_, place)));
      put(scores_, place, s);
      accumulate(most, ops::maximum, s);
    });
    if (const Value any = hides_some()) out_.branch(any, [&] { hide(most, each_key); });
    join(most, ops::maximum, t_.of_query());
    const RegId sum = declare(number(0));
    intrinsic(short_powers, [&] {
      const Value before = keep(reg(largest_)), now = keep(apply(ops::maximum, before, reg(most))),
                  // A row with only -infinity so far is not shifted.
          shift = keep(either(apply(ops::eq, now, number(-infinity)), number(0), now)),
                  factor = keep(power_of_two(apply(ops::sub, before, shift)));
      each_key([&](const Dim&, const Dim& place) {
        const Value weight = keep(power_of_two(apply(ops::sub, in(scores_, place), shift)));
        put(scores_, place, weight);
        accumulate(sum, ops::add, weight);
      });
      assign(largest_, now);
      assign(total_, apply(ops::add, apply(ops::mul, reg(total_), factor), reg(sum)));
      // Threads that share a query have the same factor.
      out_.branch(lowering_.same(own_part_, 0), [&] { put(factors_, own_row_, factor); });
    });
  }

  template <class EachKey>
  void hide(RegId most, const EachKey& each_key) {
    assign(most, number(-infinity));
    const Dim limit = out_.keep_signed(visible_to(own_query()) - first_key_);
    std::optional<Dim> first;
    if (range_.first) first = out_.keep_signed(own_query() + *range_.first - first_key_);
    each_key([&](const Dim& key, const Dim& place) {
      Values seen = {lowering_.below(key, limit)};
      if (first) seen.push_back(out_.at_most(*first, key));
      const Value s = keep(either(all(seen), in(scores_, place), number(-infinity)));
      put(scores_, place, s);
      accumulate(most, ops::maximum, s);
    });
  }

  // A score as the exponent of a power of two; the mask is applied only where query and key exist.
  Value score(const Dim& key, Value s) {
    constexpr double log2_e = std::numbers::log2e;
    if (!p_.softcap && !a_.mask) return apply(ops::mul, s, number(p_.scale * log2_e));
    const RegId out = declare(apply(ops::mul, s, number(p_.scale)));
    Values there;
    if (a_.mask)
      there = {lowering_.below(own_query(), p_.queries),
               lowering_.below(first_key_ + key, p_.keys)};
    branch_unless_known(there, [&] {
      Value mask;
      if (a_.mask)
        mask =
            spliced(lowering_.graph(), *a_.mask, std::array{batch_, own_query(), first_key_ + key});
      assign(out, changed_score(lowering_, p_, reg(out), mask));
    });
    return apply(ops::mul, reg(out), number(log2_e));
  }

  // ---- what no query of the group sees

  // Hidden keys count 0 times their value, which is NaN for an infinite value, as in the
  // operation's expansion. Summed in the memory of the values, which are not loaded yet.
  std::int64_t parts() const { return std::max<std::int64_t>(1, t_.threads / width_); }

  void count_hidden() {
    each_of(parts() * width_, [&](const Dim& i) {
      const Dim e = positions_.remainder(i, width_), part = positions_.quotient(i, width_);
      const RegId sum = declare(number(0));
      Values inside;
      if (width_ != p_.width) inside.push_back(lowering_.below(e, p_.width));
      branch_unless_known(inside, [&] {
        count_rows(sum, e, part, 0, first_block_ * Dim(t_.keys));
        count_rows(sum, e, part, visible_, p_.keys);
      });
      put(values_, i, reg(sum));
    });
    barrier();
    change_sums([&](const Dim&, const Dim& c) {
      Value sum;
      for (std::int64_t part = 0; part < parts(); ++part) {
        const Value one = in(values_, Dim(part * width_) + column_ * Dim(sum_columns()) + c);
        sum = sum ? apply(ops::add, sum, one) : one;
      }
      return sum;
    });
  }
  void count_rows(RegId sum, const Dim& e, const Dim& part, const Dim& from, const Dim& to) {
    if (from == to) return;
    const Dim rows = out_.keep(max(Dim(0), to - from - part));
    serial(ceil_div(rows, parts()), [&](const Dim& turn) {
      const std::array at = {batch_, from + part + turn * Dim(parts()), e};
      const Value v = lowering_.convert(spliced(lowering_.graph(), a_.value, at), DType::f32);
      accumulate(sum, ops::add, apply(ops::mul, v, number(0)));
    });
  }

  // ---- results

  // The sum over no keys is 0.
  void results() {
    join(total_, ops::add, t_.of_query());
    barrier();
    Value inverse = apply(ops::div, number(1), reg(total_));
    if (p_.keys.low() < 1) inverse = either(lowering_.below(0, p_.keys), inverse, number(0));
    inverse = keep(inverse);
    out_.branch(lowering_.same(own_part_, 0), [&] { put(factors_, own_row_, inverse); });
    barrier();
    unrolled(tile_rows, [&](const Dim& r) {
      const Dim query = first_query_ + row_ + r;
      Values rows;
      if (!divides(t_.queries(), p_.queries)) rows.push_back(lowering_.below(query, p_.queries));
      branch_unless_known(rows, [&] {
        lanes(sum_columns(), [&](const Dim& c) {
          const Dim e = column_ * Dim(sum_columns()) + c;
          Values columns;
          if (width_ != p_.width) columns.push_back(lowering_.below(e, p_.width));
          branch_unless_known(columns, [&] {
            const Value y = apply(ops::mul, tile_element(sums_tile, r, c), in(factors_, row_ + r));
            for (Stmt& s :
                 spliced_stores(lowering_.graph(), a_.epilogue, std::array{batch_, query, e}, y))
              out_.add(std::move(s));
          });
        });
      });
    });
  }

  const GroupAttention& a_;
  const GroupAttentionTiling& t_;
  std::int64_t width_;  // of values in memory, in whole tiles
  int queries_ = 0, keys_ = 0, values_ = 0, scores_ = 0, factors_ = 0, changed_ = 0;
  RegId largest_ = 0, total_ = 0;   // of the thread's query
  Dim row_ = 0, column_ = 0;        // of the thread's tiles
  Dim own_row_ = 0, own_part_ = 0;  // the thread's query in the block, and its share of the keys
};

std::optional<FoundAttention> find_group_attention(const GroupSpec& spec,
                                                   const TargetInfo& target) {
  if (target.group_threads == 0) return std::nullopt;
  std::optional<FoundAttention> found = find_attention(spec);
  if (!found || !has_many_queries(found->problem) || tilings(found->problem, target).empty())
    return std::nullopt;
  return found;
}

std::optional<GroupAttention> spliced_into(AnchoredGroup& group, const AttentionProblem& p) {
  GroupAttention a{.problem = p};
  Values read = {p.q, p.k, p.v};
  if (p.mask) read.push_back(p.mask);
  group.set_operands(read, 0);
  const AttentionPlaces at(p, group.lowering().positions());
  const auto element = [&](Value v, const Dims& matrix, const Dim& row, const Dim& column) {
    return group.element(v, at(matrix, row, column), std::array{at.b, row, column}, DType::f32);
  };
  std::optional<Splice> query = element(p.q, at.lead, at.m, at.d),
                        key = element(p.k, at.shared, at.s, at.d),
                        value = element(p.v, at.shared, at.s, at.e),
                        epilogue =
                            group.epilogue(at(at.lead, at.m, at.e), std::array{at.b, at.m, at.e});
  if (!query || !key || !value || !epilogue) return std::nullopt;
  a.query = std::move(*query), a.key = std::move(*key), a.value = std::move(*value);
  a.epilogue = std::move(*epilogue);
  if (p.mask) {
    a.mask = mask_element(group, p, at);
    if (!a.mask) return std::nullopt;
  }
  a.range = key_range(p, a.mask);
  if (a.range.is_all) a.mask.reset();
  return a;
}

}  // namespace

std::optional<Candidate> group_attention_candidate(const GroupSpec& spec, const TargetInfo& target,
                                                   const Tuning& tuning) {
  std::optional<FoundAttention> found = find_group_attention(spec, target);
  if (!found) return std::nullopt;
  const std::optional<GroupAttention> a = spliced_into(found->group, found->problem);
  if (!a) return std::nullopt;
  const GroupAttentionTiling best = tilings(found->problem, target).front();
  GroupAttentionTiling t{value_or(tuning, "threads", best.threads),
                         value_or(tuning, "keys", best.keys)};
  if (!t.fits(found->problem, target)) t = best;
  Kernel kernel = found->group.kernel();
  GroupAttentionWriter(kernel, found->group.lowering(), *a, t).write();
  Candidate out;
  out.name = "attention-f32";
  out.steps.push_back({std::move(kernel), found->group.operands(), {}, false});
  return out;
}

std::vector<Tuning> group_attention_space(const GroupSpec& spec, const TargetInfo& target) {
  const std::optional<FoundAttention> found = find_group_attention(spec, target);
  return found ? named(tilings(found->problem, target)) : std::vector<Tuning>();
}

}  // namespace hone
