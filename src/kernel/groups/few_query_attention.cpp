#include "kernel/groups/few_query_attention.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/checked.h"
#include "kernel/groups/attention_rows.h"
#include "kernel/groups/attention_words.h"
#include "kernel/groups/tensor_writer.h"
#include "kernel/nest/blocking.h"
#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

constexpr std::int64_t own_elements = AttentionRows::vector_width;  // elements of a row per thread
constexpr std::int64_t most_neighbours = 32;                        // combined without group memory

std::int64_t bit_ceil(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

// Rows that read the same keys: all queries of the heads that share them.
struct SharedRows {
  std::int64_t heads = 1, queries = 1;
  std::int64_t together = 1;  // computed by one group; the last group may have fewer

  std::int64_t count() const { return heads * queries; }
  std::int64_t blocks() const { return ceil_ratio(count(), together); }
};

// Nullopt if their number is unknown.
std::optional<SharedRows> shared_rows(const AttentionProblem& p) {
  constexpr std::int64_t most_together = 8;
  SharedRows out;
  // Equal numbers are not divided: both may be 0.
  if (!p.leading.empty() && p.leading.back() != p.shared.back()) {
    const std::optional<std::int64_t> heads =
        floor_div(p.leading.back(), p.shared.back()).as_number();
    if (!heads) return std::nullopt;
    out.heads = std::max<std::int64_t>(*heads, 1);
  }
  if (!p.queries.is_number()) return std::nullopt;
  out.queries = std::max<std::int64_t>(p.queries.number(), 1);
  out.together = std::min(out.count(), most_together);
  return out;
}

// ---- tuning

struct FewQueryTiling {
  std::int64_t threads = 128, unroll = 4, parts = 1;

  // The vectors of a key are held by neighbouring threads.
  static std::int64_t vectors(const AttentionProblem& p) {
    return bit_ceil(ceil_ratio(std::max(p.depth, p.width), own_elements));
  }
  std::int64_t slots(const AttentionProblem& p) const { return threads / vectors(p); }
  std::int64_t keys_at_once(const AttentionProblem& p) const { return slots(p) * unroll; }
  Tuning named() const { return {{"threads", threads}, {"unroll", unroll}, {"parts", parts}}; }
  bool operator==(const FewQueryTiling&) const = default;

  bool fits(const AttentionProblem& p, const SharedRows& rows, const TargetInfo& target) const {
    constexpr std::int64_t registers = 60'000, others = 40, most_unroll = 8, most_parts = 64;
    const std::int64_t each = 2 * own_elements * (rows.together + unroll) +
                              rows.together * (unroll + 3) + others,
                       bytes = 4 * (slots(p) * p.width + threads) + 512;
    const bool is_known = threads >= vectors(p) && threads % 32 == 0 &&
                          std::has_single_bit(static_cast<std::uint64_t>(threads)) && unroll >= 1 &&
                          unroll <= most_unroll && parts >= 1 && parts <= most_parts;
    return is_known && threads <= target.group_threads && bytes <= target.group_bytes &&
           each <= 255 && each * threads <= registers && (parts == 1 || p.keys.low() >= 1);
  }
};

// Predicted microseconds on an H100 by a coarse model: only for comparing tilings.
double predicted_us(const AttentionProblem& p, const SharedRows& rows, const FewQueryTiling& t) {
  constexpr double processors = 132, start_us = 2.5, step_us = 1, join_us = 2.3, bytes_per_us = 6e4,
                   all_bytes_per_us = 2.5e6;
  const double groups = typical(product(p.shared)) * static_cast<double>(rows.blocks() * t.parts),
               keys = typical(p.keys) / static_cast<double>(t.parts),
               at_once = static_cast<double>(t.keys_at_once(p)),
               turns = std::ceil(groups / processors),
               bytes = keys * static_cast<double>(2 * (p.depth + p.width)),
               work = static_cast<double>(rows.together) * 0.5 + 0.5;
  const double each = std::max(std::ceil(keys / at_once) * step_us, bytes * work / bytes_per_us);
  return start_us + std::max(turns * each, groups * bytes / all_bytes_per_us) +
         static_cast<double>(t.slots(p)) * 0.015 + (t.parts > 1 ? join_us : 0);
}

// All that fit, by predicted time, best first.
std::vector<FewQueryTiling> tilings(const AttentionProblem& p, const SharedRows& rows,
                                    const TargetInfo& target) {
  std::vector<FewQueryTiling> out;
  for (const std::int64_t threads : {256, 128, 512, 1024, 64, 32})
    for (const std::int64_t unroll : {4, 2, 1})
      for (const std::int64_t parts : {1, 2, 4, 8, 16, 32, 64}) {
        const FewQueryTiling t{threads, unroll, parts};
        // A part pays only if it has at least as many keys as a group reads at once.
        if (parts > 1 && typical(p.keys) < static_cast<double>(parts * t.keys_at_once(p))) break;
        if (t.fits(p, rows, target)) out.push_back(t);
      }
  std::ranges::stable_sort(out, {},
                           [&](const FewQueryTiling& t) { return predicted_us(p, rows, t); });
  return out;
}

// ---- statements

struct FewQueryAttention {
  AttentionProblem problem;
  SharedRows rows;
  AttentionRows query, key, value;
  KeyRange range = {};
  std::optional<Splice> mask = {};      // (b, m, s); only what `range` does not cover
  std::optional<Splice> epilogue = {};  // (b, m, e), if there is one part
  int sums = 0, most = 0, totals = 0;   // parameters, if there are several parts
};

class FewQueryWriter : AttentionWords {
 public:
  FewQueryWriter(Kernel& kernel, Lowering& lowering, const FewQueryAttention& a,
                 const FewQueryTiling& t)
      : AttentionWords(kernel, lowering, a.problem, a.range, 1, t.keys_at_once(a.problem)),
        a_(a),
        t_(t),
        vectors_(FewQueryTiling::vectors(a.problem)),
        slots_(t.slots(a.problem)),
        step_(t.keys_at_once(a.problem)),
        rows_(a.rows.together) {}

  void write() {
    add_memories();
    write_groups({product(p_.shared), a_.rows.blocks(), t_.parts}, t_.threads, [&](const Dims& at) {
      matrix_ = at[0], block_ = at[1], part_ = at[2];
      thread();
    });
  }

 private:
  void add_memories() {
    const auto of_thread = [&](std::int64_t n) {
      return add_memory(DType::f32, n, MemoryScope::thread);
    };
    found_ = add_memory(DType::f32, slots_ * p_.width, MemoryScope::group);
    query_ = of_thread(rows_ * own_elements), sums_ = of_thread(rows_ * own_elements);
    key_ = of_thread(t_.unroll * own_elements), value_ = of_thread(t_.unroll * own_elements);
    scores_ = of_thread(t_.unroll);
    most_ = of_thread(rows_), totals_ = of_thread(rows_);
    place_memory(kernel_);
  }

  // ---- rows

  Dim row_of(std::int64_t r) const { return block_ * Dim(rows_) + Dim(r); }
  // The row's matrix and query.
  Dim matrix_of(std::int64_t r) const {
    return matrix_ * Dim(a_.rows.heads) + positions_.quotient(row_of(r), a_.rows.queries);
  }
  Dim query_of(std::int64_t r) const { return positions_.remainder(row_of(r), a_.rows.queries); }
  // Empty if all rows of all blocks exist.
  Values has_row(std::int64_t r) const {
    if (a_.rows.count() % rows_ == 0) return {};
    return {lowering_.below(row_of(r), a_.rows.count())};
  }
  template <class F>
  void each_row(const F& body) {
    for (std::int64_t r = 0; r < rows_; ++r) body(r);
  }

  // ---- a group

  void thread() {
    vector_ = positions_.remainder(thread_, vectors_);
    slot_ = positions_.quotient(thread_, vectors_);
    const Dim keys = part_keys();
    if (BlockWriter::fetches_first(kernel_.chunks)) fetch_keys(keys);
    each_row([&](std::int64_t r) {
      branch_unless_known(
          has_row(r), [&] { bring(a_.query, query_, r, matrix_of(r), query_of(r), {}); },
          [&] { clear(query_, r); });
      clear(sums_, r);
      put(most_, r, number(-infinity));
      put(totals_, r, number(0));
    });
    serial(ceil_div(keys, step_), [&](const Dim& turn) {
      first_key_ = part_ * keys + turn * Dim(step_);
      each_key([&](std::int64_t u, const Dim& key) { bring_key(a_.key, key_, u, key); });
      each_key([&](std::int64_t u, const Dim& key) { bring_key(a_.value, value_, u, key); });
      each_row([&](std::int64_t r) { meet(r); });
    });
    each_row([&](std::int64_t r) {
      if (r > 0) barrier();
      join_slots(r);
    });
  }

  // A single part has all keys; several parts are rounded up to whole steps.
  Dim part_keys() const {
    return t_.parts == 1 ? p_.keys : ceil_div(ceil_div(p_.keys, t_.parts), step_) * Dim(step_);
  }
  bool has_all_keys() const { return divides(t_.parts * step_, p_.keys); }

  void fetch_keys(const Dim& keys) {
    serial(ceil_div(keys, step_), [&](const Dim& turn) {
      first_key_ = part_ * keys + turn * Dim(step_);
      for (const AttentionRows* rows : {&a_.key, &a_.value})
        each_key([&](std::int64_t, const Dim& key) {
          Values there;
          if (!has_all_keys()) there.push_back(lowering_.below(key, p_.keys));
          if (vectors_ > ceil_ratio(rows->columns, own_elements))
            there.push_back(lowering_.below(vector_, ceil_ratio(rows->columns, own_elements)));
          branch_unless_known(there, [&] {
            const std::array at = {matrix_ * Dim(a_.rows.heads), key, vector_, Dim(0)};
            out_.fetch(spliced(lowering_.graph(), rows->element, at));
          });
        });
    });
  }

  // The thread's keys in this step.
  void each_key(const std::function<void(std::int64_t u, const Dim& key)>& body) {
    for (std::int64_t u = 0; u < t_.unroll; ++u) body(u, first_key_ + Dim(u * slots_) + slot_);
  }

  // ---- vectors of the thread

  void clear(int memory, std::int64_t place) {
    lanes(own_elements,
          [&](const Dim& lane) { put(memory, Dim(place * own_elements) + lane, number(0)); });
  }

  // Loads the thread's vector of a row, with zeros after the last element.
  void bring(const AttentionRows& rows, int memory, std::int64_t place, const Dim& matrix,
             const Dim& row, Values there) {
    if (vectors_ > ceil_ratio(rows.columns, own_elements))
      there.push_back(lowering_.below(vector_, ceil_ratio(rows.columns, own_elements)));
    branch_unless_known(
        there,
        [&] {
          lanes(own_elements, [&](const Dim& lane) {
            const Dim to = Dim(place * own_elements) + lane;
            Values one;
            if (rows.columns % own_elements != 0)
              one.push_back(lowering_.below(vector_ * Dim(own_elements) + lane, rows.columns));
            branch_unless_known(
                one,
                [&] {
                  const Value v = spliced(lowering_.graph(), rows.element,
                                          std::array{matrix, row, vector_, lane});
                  put(memory, to, lowering_.convert(v, DType::f32));
                },
                [&] { put(memory, to, number(0)); });
          });
        },
        [&] { clear(memory, place); });
  }
  void bring_key(const AttentionRows& rows, int memory, std::int64_t u, const Dim& key) {
    Values there;
    if (!has_all_keys()) there.push_back(lowering_.below(key, p_.keys));
    bring(rows, memory, u, matrix_ * Dim(a_.rows.heads), key, std::move(there));
  }
  Value element(int memory, std::int64_t place, const Dim& lane) const {
    return in(memory, Dim(place * own_elements) + lane);
  }

  // ---- a row against the keys

  void meet(std::int64_t r) {
    each_key([&](std::int64_t u, const Dim& key) {
      const RegId product = declare(number(0));
      lanes(own_elements, [&](const Dim& lane) {
        accumulate(product, ops::add,
                   apply(ops::mul, element(query_, r, lane), element(key_, u, lane)));
      });
      join(product, ops::add, vectors_);
      put(scores_, u, score(r, key, reg(product)));
    });
    const RegId largest = declare(in(most_, r));
    for (std::int64_t u = 0; u < t_.unroll; ++u) accumulate(largest, ops::maximum, in(scores_, u));
    intrinsic(short_powers, [&] {
      const Value shift = keep(shift_of(reg(largest)));
      const Value factor = keep(power_of_two(apply(ops::sub, in(most_, r), shift)));
      const RegId total = declare(apply(ops::mul, in(totals_, r), factor));
      for (std::int64_t u = 0; u < t_.unroll; ++u) {
        const Value weight = keep(power_of_two(apply(ops::sub, in(scores_, u), shift)));
        put(scores_, u, weight);
        accumulate(total, ops::add, weight);
      }
      put(most_, r, reg(largest));
      put(totals_, r, reg(total));
      lanes(own_elements, [&](const Dim& lane) {
        const RegId sum = declare(apply(ops::mul, element(sums_, r, lane), factor));
        for (std::int64_t u = 0; u < t_.unroll; ++u)
          accumulate(sum, ops::add, apply(ops::mul, in(scores_, u), element(value_, u, lane)));
        put(sums_, Dim(r * own_elements) + lane, reg(sum));
      });
    });
  }

  // No shift if all scores were -infinity so far: the powers are then 0, as they should be.
  Value shift_of(Value most) const {
    return either(apply(ops::eq, most, number(-infinity)), number(0), most);
  }

  // As the exponent of a power of two; -infinity for a key that does not exist or is hidden.
  Value score(std::int64_t r, const Dim& key, Value product) {
    constexpr double log2_e = std::numbers::log2e;
    Values seen;
    if (!has_all_keys()) seen.push_back(lowering_.below(key, p_.keys));
    Value s = apply(ops::mul, product, number(p_.changes_scores() ? p_.scale : p_.scale * log2_e));
    if (p_.changes_scores()) {
      const RegId changed = declare(s);
      Values there = a_.mask ? seen : Values();
      if (a_.mask)
        for (const Value row : has_row(r)) there.push_back(row);
      branch_unless_known(there, [&] {
        Value mask;
        if (a_.mask)
          mask = spliced(lowering_.graph(), *a_.mask, std::array{matrix_of(r), query_of(r), key});
        const Value c = changed_score(lowering_, p_, reg(changed), mask);
        assign(changed, apply(ops::mul, c, number(log2_e)));
      });
      s = reg(changed);
    }
    if (range_.last) seen.push_back(out_.at_most(key, query_of(r) + *range_.last));
    if (range_.first) seen.push_back(out_.at_most(query_of(r) + *range_.first, key));
    return seen.empty() ? s : either(all(seen), s, number(-infinity));
  }

  // ---- what the group found

  void join_slots(std::int64_t r) {
    const RegId most = declare(in(most_, r));
    join_group(most, ops::maximum);
    const RegId total = declare(number(0));
    intrinsic(short_powers, [&] {
      const Value factor = keep(power_of_two(apply(ops::sub, in(most_, r), shift_of(reg(most)))));
      // Every thread of a slot holds the slot's total.
      assign(total, apply(ops::mul, apply(ops::mul, in(totals_, r), factor),
                          number(1.0 / static_cast<double>(vectors_))));
      put(most_, r, factor);
    });
    join_group(total, ops::add);
    Values columns;
    if (vectors_ * own_elements > round_up(p_.width, own_elements))
      columns.push_back(lowering_.below(vector_, ceil_ratio(p_.width, own_elements)));
    branch_unless_known(columns, [&] {
      lanes(own_elements, [&](const Dim& lane) {
        const Dim e = vector_ * Dim(own_elements) + lane;
        Values one;
        if (p_.width % own_elements != 0) one.push_back(lowering_.below(e, p_.width));
        branch_unless_known(one, [&] {
          put(found_, slot_ * Dim(p_.width) + e,
              apply(ops::mul, element(sums_, r, lane), in(most_, r)));
        });
      });
    });
    barrier();
    branch_unless_known(has_row(r), [&] { store(r, reg(most), reg(total)); });
  }

  void store(std::int64_t r, Value most, Value total) {
    const Dim row = matrix_of(r) * Dim(a_.rows.queries) + query_of(r),
              place = row * Dim(t_.parts) + part_;
    if (t_.parts > 1)
      out_.branch(lowering_.same(thread_, 0), [&] {
        put(a_.most, place, most);
        put(a_.totals, place, total);
      });
    Value inverse = apply(ops::div, number(1), total);
    if (p_.keys.low() < 1) inverse = either(lowering_.below(0, p_.keys), inverse, number(0));
    inverse = keep(inverse);
    serial(ceil_ratio(p_.width, t_.threads), [&](const Dim& turn) {
      const Dim e = turn * Dim(t_.threads) + thread_;
      Values inside;
      if (p_.width % t_.threads != 0) inside.push_back(lowering_.below(e, p_.width));
      branch_unless_known(inside, [&] {
        const RegId sum = declare(number(0));
        serial(slots_, [&](const Dim& slot) {
          accumulate(sum, ops::add, in(found_, slot * Dim(p_.width) + e));
        });
        if (t_.parts > 1) return put(a_.sums, place * Dim(p_.width) + e, reg(sum));
        const std::array at = {matrix_of(r), query_of(r), e};
        for (Stmt& s : spliced_stores(lowering_.graph(), *a_.epilogue, at,
                                      apply(ops::mul, reg(sum), inverse)))
          out_.add(std::move(s));
      });
    });
  }

  const FewQueryAttention& a_;
  const FewQueryTiling& t_;
  std::int64_t vectors_, slots_, step_, rows_;
  int found_ = 0, query_ = 0, sums_ = 0, key_ = 0, value_ = 0, scores_ = 0, most_ = 0, totals_ = 0;
  Dim matrix_ = 0, block_ = 0, part_ = 0;  // of the group
  Dim vector_ = 0, slot_ = 0;              // of the thread
};

// ---- candidates

struct FoundFewQueries {
  FoundAttention attention;
  SharedRows rows;
};

std::optional<FoundFewQueries> find_few_queries(const GroupSpec& spec, const TargetInfo& target) {
  if (target.group_threads == 0) return std::nullopt;
  std::optional<FoundAttention> found = find_attention(spec);
  if (!found || has_many_queries(found->problem)) return std::nullopt;
  const std::optional<SharedRows> rows = shared_rows(found->problem);
  const bool fits = rows && FewQueryTiling::vectors(found->problem) <= most_neighbours &&
                    !tilings(found->problem, *rows, target).empty();
  if (!fits) return std::nullopt;
  return FoundFewQueries{std::move(*found), *rows};
}

// The types of the parts' results: the axis after the queries is the number of the part.
std::vector<Type> types_of_parts(const AttentionProblem& p, std::int64_t parts) {
  Dims rows = p.leading;
  rows.push_back(p.queries);
  rows.push_back(parts);
  Dims sums = rows;
  sums.push_back(p.width);
  return {Type(DType::f32, Shape(sums)), Type(DType::f32, Shape(rows)),
          Type(DType::f32, Shape(rows))};
}

// Combines the parts' sums, largest scores and totals into the attention. Without reductions: each
// thread reads all parts of its elements at once, instead of waiting for other threads.
Value joined_parts(std::span<const Value> left, DType dtype) {
  const Value sums = left[0], most = left[1], totals = left[2];
  const int axis = most.rank() - 1;
  const std::int64_t parts = most.shape()[axis].number();
  Dims row_dims = sums.shape().dims;
  row_dims.erase(row_dims.begin() + axis);
  const Shape rows(row_dims);  // of the result
  const auto part = [&](Value v, std::int64_t i) {
    const Value one = slice_axis(v, axis, i, 1);
    if (v == sums) return reshape_to(one, row_dims);
    return broadcast_to(one, rows);
  };
  Value largest = part(most, 0);
  for (std::int64_t i = 1; i < parts; ++i) largest = ops::maximum(largest, part(most, i));
  const Value none = constant_like(largest, -std::numeric_limits<double>::infinity());
  const Value shift = where(ops::eq(largest, none), constant_like(largest, 0), largest);
  Value total, sum;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Value factor = ops::exp((part(most, i) - shift) * std::numbers::ln2);
    const Value of_total = part(totals, i) * factor, of_sum = part(sums, i) * factor;
    total = i == 0 ? of_total : total + of_total;
    sum = i == 0 ? of_sum : sum + of_sum;
  }
  return cast_to(sum / total, dtype);
}

std::optional<FewQueryAttention> spliced_into(AnchoredGroup& group, const AttentionProblem& p,
                                              const SharedRows& rows, std::int64_t parts) {
  Values read = {p.q, p.k, p.v};
  if (p.mask) read.push_back(p.mask);
  if (parts > 1)
    group.set_inputs(read, 3);
  else
    group.set_operands(read, 0);
  const AttentionPlaces at(p, group.lowering().positions());
  std::optional<AttentionRows> query = attention_rows(group, p.q, at, at.lead, at.m),
                               key = attention_rows(group, p.k, at, at.shared, at.s),
                               value = attention_rows(group, p.v, at, at.shared, at.s);
  if (!query || !key || !value) return std::nullopt;
  FewQueryAttention a{.problem = p,
                      .rows = rows,
                      .query = std::move(*query),
                      .key = std::move(*key),
                      .value = std::move(*value)};
  if (p.mask) {
    a.mask = mask_element(group, p, at);
    if (!a.mask) return std::nullopt;
  }
  a.range = key_range(p, a.mask);
  if (a.range.is_all) a.mask.reset(), a.problem.mask = {};
  if (parts == 1) {
    a.epilogue = group.epilogue(at(at.lead, at.m, at.e), std::array{at.b, at.m, at.e});
    if (!a.epilogue) return std::nullopt;
  } else {
    const std::vector<Type> types = types_of_parts(p, parts);
    a.sums = group.set_temporary(0, types[0]);
    a.most = group.set_temporary(1, types[1]);
    a.totals = group.set_temporary(2, types[2]);
  }
  return a;
}

}  // namespace

std::optional<Candidate> few_query_attention_candidate(const GroupSpec& spec,
                                                       const TargetInfo& target,
                                                       const Tuning& tuning,
                                                       const NestMaker& make_nest) {
  std::optional<FoundFewQueries> found = find_few_queries(spec, target);
  if (!found) return std::nullopt;
  AnchoredGroup& group = found->attention.group;
  const AttentionProblem& p = found->attention.problem;
  const FewQueryTiling best = tilings(p, found->rows, target).front();
  FewQueryTiling t{value_or(tuning, "threads", best.threads),
                   value_or(tuning, "unroll", best.unroll), value_or(tuning, "parts", best.parts)};
  if (!t.fits(p, found->rows, target)) t = best;
  const std::optional<FewQueryAttention> a = spliced_into(group, p, found->rows, t.parts);
  if (!a) return std::nullopt;
  Kernel kernel = group.kernel();
  Candidate out;
  out.name = "attention-few";
  if (t.parts > 1)
    for (const int i : {a->sums, a->most, a->totals})
      kernel.params[static_cast<std::size_t>(i)].written = true;
  FewQueryWriter(kernel, group.lowering(), *a, t).write();
  out.steps.push_back({std::move(kernel), group.operands(), {}, false});
  if (t.parts == 1) return out;
  std::vector<Left> left;
  for (const Type& type : types_of_parts(p, t.parts)) {
    left.push_back({type, static_cast<int>(left.size())});
    out.temporaries.push_back({type, false});
  }
  const DType dtype = group.anchor().dtype();
  add_rest(
      out, spec, group, left,
      [&](std::span<const Value> parts) { return joined_parts(parts, dtype); }, make_nest);
  return out;
}

std::vector<Tuning> few_query_attention_space(const GroupSpec& spec, const TargetInfo& target) {
  constexpr std::size_t most = 12;
  const std::optional<FoundFewQueries> found = find_few_queries(spec, target);
  return found ? named(tilings(found->attention.problem, found->rows, target), most)
               : std::vector<Tuning>();
}

}  // namespace hone
