#include "kernel/problem/attention_problem.h"

#include <limits>

#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

// Longer rows of queries or values do not fit in the memory of a chunk or a group.
constexpr std::int64_t longest_attention_row = 512;

std::optional<AttentionProblem> problem_of(Value a) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  AttentionProblem p;
  p.q = a.operand(0), p.k = a.operand(1), p.v = a.operand(2);
  if (a.operand_count() > 3) p.mask = a.operand(3);
  const Dims &q = p.q.shape().dims, &k = p.k.shape().dims;
  p.leading.assign(q.begin(), q.end() - 2);
  p.shared.assign(k.begin(), k.end() - 2);
  p.queries = q.end()[-2];
  p.keys = k.end()[-2];
  const std::optional<std::int64_t> depth = q.back().as_number(),
                                    width = p.v.shape()[-1].as_number();
  auto fits = [](const std::optional<std::int64_t>& n) {
    return n && *n >= 1 && *n <= longest_attention_row;
  };
  if (accumulator(a.dtype()) != DType::f32 || !fits(depth) || !fits(width)) return std::nullopt;
  p.depth = *depth;
  p.width = *width;
  p.scale = a.attrs().real("scale");
  p.masked = a.attrs().real_or("masked", -infinity);
  if (a.attrs().has("softcap")) p.softcap = a.attrs().real("softcap");
  if (a.attrs().has("causal")) p.last_key = a.attrs().dims("causal")[0];
  return p;
}

}  // namespace

std::optional<FoundAttention> find_attention(const GroupSpec& spec) {
  std::optional<AnchoredGroup> group = AnchoredGroup::find(spec, &ops::attention);
  if (!group) return std::nullopt;
  std::optional<AttentionProblem> problem = problem_of(group->anchor());
  if (!problem) return std::nullopt;
  return FoundAttention{std::move(*group), std::move(*problem)};
}

bool has_many_queries(const AttentionProblem& p) {
  constexpr std::int64_t least = 8;
  return !p.queries.is_number() || p.queries.number() >= least;
}

AttentionPlaces::AttentionPlaces(const AttentionProblem& p, Positions& positions)
    : b(positions.add_loop(product(p.leading))),
      m(positions.add_loop(p.queries)),
      s(positions.add_loop(p.keys)),
      d(positions.add_loop(p.depth)),
      e(positions.add_loop(p.width)),
      positions_(&positions) {
  lead = positions.split(at(b), p.leading);
  shared = lead;
  if (!shared.empty() && p.leading.back() != p.shared.back())
    shared.back() = positions.quotient(lead.back(), floor_div(p.leading.back(), p.shared.back()));
  matrix = Positions::linear(shared, p.shared);
}

Dims AttentionPlaces::operator()(Dims of_matrix, const Dim& row, const Dim& column) const {
  of_matrix.push_back(at(row));
  of_matrix.push_back(at(column));
  return of_matrix;
}

std::optional<Splice> mask_element(AnchoredGroup& group, const AttentionProblem& p,
                                   const AttentionPlaces& places) {
  Dims at = places(places.lead, places.m, places.s);
  at.erase(at.begin(), at.end() - p.mask.rank());
  for (int i = 0; i < p.mask.rank(); ++i)
    if (p.mask.shape()[i] == Dim(1)) at[static_cast<std::size_t>(i)] = 0;
  Splice out{{places.b, places.m, places.s}, group.lowering().element(p.mask, at), {}, {}};
  if (!group.lowering().take().empty()) return std::nullopt;
  return out;
}

namespace {

// An integer, as a position.
std::optional<Dim> position_of(Value v) {
  if (v.is(ops::dims)) return v.attrs().dims("dims").at(0);
  if (is_float(v.dtype()) || v.dtype() == DType::b1) return std::nullopt;
  if (v.is(ops::constant)) return Dim(v.attrs().get<Array>("value").integer(0));
  const bool is_sum = v.is(ops::add), is_difference = v.is(ops::sub);
  if ((!is_sum && !is_difference) || byte_size(v.dtype()) < 8) return std::nullopt;
  const std::optional<Dim> a = position_of(v.operand(0)), b = position_of(v.operand(1));
  if (!a || !b) return std::nullopt;
  return is_sum ? *a + *b : *a - *b;
}

// The range given by 0 <= distance, if that is a difference of the key and the query.
KeyRange range_of(const Dim& distance, const Splice& mask) {
  const Dim query = mask.vars[1], key = mask.vars[2];
  const std::optional<Dim> by_query = stride_of(distance, query), by_key = stride_of(distance, key);
  const Replacement none[] = {{query, 0}, {key, 0}};
  const Dim rest = replace(distance, none);
  if (mentions(rest, mask.vars[0])) return {};
  KeyRange out;
  if (by_query == Dim(1) && by_key == Dim(-1)) out = {{}, rest, true};
  if (by_query == Dim(-1) && by_key == Dim(1)) out = {Dim(0) - rest, {}, true};
  return out;
}

KeyRange both(const KeyRange& a, const KeyRange& b) {
  KeyRange out{a.first, a.last, a.is_all && b.is_all};
  if (b.first) out.first = out.first ? max(*out.first, *b.first) : *b.first;
  if (b.last) out.last = out.last ? min(*out.last, *b.last) : *b.last;
  return out;
}

KeyRange range_of(Value condition, const Splice& mask) {
  if (condition.is(ops::bit_and))
    return both(range_of(condition.operand(0), mask), range_of(condition.operand(1), mask));
  if (!condition.is(ops::le) && !condition.is(ops::lt)) return {};
  const std::optional<Dim> a = position_of(condition.operand(0)),
                           b = position_of(condition.operand(1));
  if (!a || !b) return {};
  return range_of(*b - *a - Dim(condition.is(ops::lt) ? 1 : 0), mask);
}

}  // namespace

KeyRange key_range(const AttentionProblem& p, const std::optional<Splice>& mask) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  KeyRange out{{}, p.last_key, true};
  if (!mask) return out;
  // An added mask would not turn a score of infinity into -infinity.
  const bool hides = mask->value.dtype() == DType::b1 && p.masked == -infinity;
  return both(out, hides ? range_of(mask->value, *mask) : KeyRange{});
}

Value changed_score(const Lowering& lowering, const AttentionProblem& p, Value score, Value mask) {
  const auto number = [&](double x) { return lowering.number(x, DType::f32); };
  if (p.softcap) {
    score = lowering.apply(ops::tanh, {lowering.apply(ops::mul, {score, number(1 / *p.softcap)})});
    score = lowering.apply(ops::mul, {score, number(*p.softcap)});
  }
  if (!mask) return score;
  return mask.dtype() == DType::b1
             ? lowering.apply(ops::select, {mask, score, number(p.masked)})
             : lowering.apply(ops::add, {score, lowering.convert(mask, DType::f32)});
}

}  // namespace hone
