// The derivative of attention by blocks of rows (Dao, FlashAttention-2, arXiv 2307.08691, section
// 3.1): the probabilities of one block are computed again from q and k, and with D = rowsum(dy y),
// dv = p^T dy, ds = p (dy v^T - D), dq = ds k, dk = ds^T q. A block has all keys that one of its
// rows may see, so it needs no statistics of the forward pass.
#include "ops/attention_gradient.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/function.h"
#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr std::int64_t block_rows = 64;
// Rows up to which all are one block, without a loop.
constexpr std::int64_t most_direct = 64;
// Under attribute causal the rows are split into this many parts, each with the keys it may see.
constexpr std::int64_t causal_parts = 4;

enum : std::size_t { at_q, at_k, at_v, at_y, at_dy, at_mask };

bool has_float_mask(const Call& c) {
  return c.operands.size() > at_mask && is_float(c.type(at_mask).dtype);
}

std::vector<Type> infer_gradient(const Call& c) {
  expect_operands(c, 5, 6);
  Values forward(c.operands.begin(), c.operands.begin() + 3);
  if (c.operands.size() > at_mask) forward.push_back(c.operands[at_mask]);
  const Type y = ops::attention.infer({c.op, forward, c.attrs, c.graph, {}})[0];
  for (const std::size_t i : {at_y, at_dy}) {
    expect_rank(c, i, y.rank());
    if (c.type(i).dtype != y.dtype)
      throw UserError(c.op.name, ": operand ", i, " is ", c.type(i), ", expected ", y);
    for (int axis = 0; axis < y.rank(); ++axis)
      equal_sizes(c, y.shape[axis], c.shape(i)[axis], "sizes of the result and operand ", i,
                  " at axis ", axis);
  }
  std::vector<Type> out = {c.type(at_q), c.type(at_k), c.type(at_v)};
  if (has_float_mask(c)) out.push_back(c.type(at_mask));
  return out;
}

// Sizes, and the operands with all axes before the heads that share a matrix joined: q, y and dy
// [n, heads, l, ..], k and v [n, s, ..].
struct Parts {
  Value q, k, v, dy, mask;  // mask as given
  Value row_sums;           // D, [n, heads, l], wide
  Dim n, heads, rows, keys, depth, width;
  Shape scores;  // the axes of a mask
  DType dtype, wide;

  explicit Parts(const Call& c) {
    const Shape &x = c.shape(at_q), &shared = c.shape(at_k);
    const int rank = x.rank();
    dtype = c.type(at_q).dtype;
    wide = sum_dtype(dtype);
    n = 1;
    for (int i = 0; i + 2 < rank; ++i) n = n * shared[i];
    heads = rank > 2 ? floor_div(x[rank - 3], shared[rank - 3]) : Dim(1);
    if (rank > 2 && x[rank - 3] == shared[rank - 3]) heads = 1;
    rows = x[-2], keys = shared[-2], depth = x[-1], width = c.shape(at_v)[-1];
    scores = x;
    scores[-1] = keys;
    q = reshape_to(c.operands[at_q], {n, heads, rows, depth});
    k = reshape_to(c.operands[at_k], {n, keys, depth});
    v = reshape_to(c.operands[at_v], {n, keys, width});
    dy = reshape_to(c.operands[at_dy], {n, heads, rows, width});
    const Value y = reshape_to(c.operands[at_y], {n, heads, rows, width});
    row_sums = reduce_axes(ops::reduce_sum, cast_to(dy, wide) * cast_to(y, wide), {3});
    if (c.operands.size() > at_mask) mask = c.operands[at_mask];
  }
};

// Some rows, and keys among which are all that they may see.
struct Block {
  Value q, dy, row_sums, mask;  // [n, heads, rows, ..]; the mask has its own axes
  Value k, v;                   // [n, keys, ..]
  Value first;                  // of the rows, an i64 scalar
  Value counts = {};            // bool [rows]: false for rows that another block has; empty: all
};

// Scores of a block, with the axes that a mask has, and where they depend on q and k.
struct Scores {
  Value s, bent, allowed;  // bent is tanh(s / softcap); both may be empty

  Scores(const Attrs& attrs, const Block& b, Value products, const Shape& full) {
    Shape shape = full;
    shape[-2] = b.q.shape()[2], shape[-1] = b.k.shape()[1];
    const DType wide = products.dtype();
    s = reshape_to(products, shape.dims) * attrs.real("scale");
    if (attrs.has("softcap")) {
      bent = ops::tanh(s / attrs.real("softcap"));
      s = bent * attrs.real("softcap");
    }
    if (b.mask && b.mask.dtype() == DType::b1) {
      allowed = broadcast_to(b.mask, shape);
      const double masked = attrs.has("masked") ? attrs.real("masked") : minus_infinity;
      s = ops::select(allowed, s, constant_like(s, masked));
    } else if (b.mask) {
      s = s + broadcast_to(cast_to(b.mask, wide), shape);
    }
    if (!attrs.has("causal")) return;
    Graph& g = s.graph();
    const Value offset = b.first + size_value(g, attrs.dims("causal")[0], DType::i64);
    const Value is_early = ops::le(iota_value(g, DType::i64, shape, shape.rank() - 1),
                                   iota_value(g, DType::i64, shape, shape.rank() - 2) + offset);
    s = ops::select(is_early, s, constant_like(s, minus_infinity));
    allowed = allowed ? ops::bit_and(allowed, is_early) : is_early;
  }
};

bool repeats_rows(const Value& mask) { return mask.rank() < 2 || mask.shape()[-2] == Dim(1); }

// What a block adds to each derivative; all wide.
struct BlockGradients {
  Value dq, dk, dv, d_mask;  // d_mask with the axes of the scores

  BlockGradients(const Attrs& attrs, const Block& b, const Shape& full, DType wide) {
    const Shape& x = b.q.shape();
    const Dims flat = {x[0], x[1] * x[2], b.k.shape()[1]};
    const auto joined = [&](Value rows) {
      return cast_to(reshape_to(rows, {x[0], x[1] * x[2], rows.shape()[3]}), wide);
    };
    const Value q = joined(b.q), dy = joined(b.dy), k = cast_to(b.k, wide), v = cast_to(b.v, wide);
    const Scores scores(attrs, b, dot_general(q, k, {{0, 0}}, {{2, 2}}), full);
    const Dims as_scores = scores.s.shape().dims;
    const std::int64_t last_axis = scores.s.rank() - 1;
    const Value p = reshape_to(ops::softmax(scores.s, {{"axis", last_axis}}), flat);
    const Value sums = broadcast_back(reshape_to(b.row_sums, {flat[0], flat[1]}), {2}, Shape(flat));
    Value ds = p * (dot_general(dy, v, {{0, 0}}, {{2, 2}}) - sums);
    if (scores.allowed)
      ds = reshape_to(
          ops::select(scores.allowed, reshape_to(ds, as_scores), constant_like(scores.s, 0)), flat);
    d_mask = reshape_to(ds, as_scores);
    if (b.mask && repeats_rows(b.mask)) d_mask = counted(b, d_mask, scores.s.rank() - 2);
    if (scores.bent) ds = ds * reshape_to(1.0 - scores.bent * scores.bent, flat);
    ds = ds * attrs.real("scale");
    dq = reshape_to(dot_general(ds, k, {{0, 0}}, {{2, 1}}), x.dims);
    dk = dot_general(ds, joined(counted(b, b.q, 2)), {{0, 0}}, {{1, 1}});
    dv = dot_general(p, joined(counted(b, b.dy, 2)), {{0, 0}}, {{1, 1}});
  }

 private:
  // 0 in rows that another block has.
  static Value counted(const Block& b, Value v, int axis) {
    if (!b.counts) return v;
    Dims along(static_cast<std::size_t>(v.rank()), 1);
    along[static_cast<std::size_t>(axis)] = v.shape()[axis];
    return ops::select(broadcast_to(reshape_to(b.counts, along), v.shape()), v,
                       constant_like(v, 0));
  }
};

// The sums over what the mask repeats, in its dtype.
Value mask_gradient(Value d, const Type& mask) {
  return cast_to(sum_to(d, mask.shape), mask.dtype);
}

// Also differentiable.
Values direct(const Call& c) {
  const Parts x(c);
  const Value first = constant(c.graph, Array::scalar_int(0, DType::i64));
  const Block all{x.q, x.dy, x.row_sums, x.mask, x.k, x.v, first};
  const BlockGradients d(c.attrs, all, x.scores, x.wide);
  Values out = {d.dq, d.dk, d.dv};
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = reshape_to(cast_to(out[i], x.dtype), c.shape(i).dims);
  if (has_float_mask(c)) out.push_back(mask_gradient(d.d_mask, c.type(at_mask)));
  return out;
}

// ---- The loop over blocks.

// Rows first to first + count, in blocks of `size`. The last block ends with the rows and may
// begin among those of the block before.
struct Rows {
  Dim first, count, size;

  Rows(Dim from, Dim many) : first(from), count(many), size(min(many, Dim(block_rows))) {}
  Dim blocks() const { return floor_div(count + Dim(block_rows - 1), Dim(block_rows)); }
  bool overlap() const { return !(size * blocks() == count); }
};

Value slice_rows(Value v, int axis, Value start, const Dim& size) {
  Dims sizes = v.shape().dims;
  sizes[static_cast<std::size_t>(axis)] = size;
  Values starts(sizes.size(), constant(v.graph(), Array::from_ints(std::vector<std::int64_t>{0})));
  starts[static_cast<std::size_t>(axis)] = reshape_to(start, {1});
  return ops::dynamic_slice(Values{v, concat_values(starts, 0)}, {{"sizes", sizes}});
}

Value update_rows(Value v, Value rows, int axis, Value start) {
  Values starts(static_cast<std::size_t>(v.rank()),
                constant(v.graph(), Array::from_ints(std::vector<std::int64_t>{0})));
  starts[static_cast<std::size_t>(axis)] = reshape_to(start, {1});
  return ops::dynamic_update(v, rows, concat_values(starts, 0));
}

// The operands of the loop's body: a counter, what is carried, and these.
enum : std::size_t { given_q, given_dy, given_sums, given_k, given_v, given_mask };

struct Loop {
  const Call& c;
  const Parts& x;
  Rows rows;

  // What the carried values become with the gradients of the block at `start`.
  using Step =
      std::function<Values(std::span<const Value> carried, const BlockGradients&, Value start)>;

  Values run(const Values& carried, Value k, Value v, const Step& step) const {
    Values operands = {constant(c.graph, Array::scalar_int(0, DType::i64))};
    operands.insert(operands.end(), carried.begin(), carried.end());
    for (const Value& given : {x.q, x.dy, x.row_sums, k, v}) operands.push_back(given);
    if (x.mask) operands.push_back(x.mask);
    const auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
    for (Function* f : {go.get(), body.get()})
      for (const Value& o : operands) f->add_param(o.type(), cat("p", f->params().size()));
    go->add_result(ops::lt(go->param(0), size_value(go->graph(), rows.blocks(), DType::i64)));
    Values inside;
    for (std::size_t i = 0; i < operands.size(); ++i) inside.push_back(body->param(i));
    body->add_result(inside[0] + integer_like(inside[0], 1));
    const std::span<const Value> all(inside);
    Value start;
    const Block b = block(inside[0], all.subspan(1 + carried.size()), start);
    const BlockGradients d(c.attrs, b, x.scores, x.wide);
    for (const Value& next : step(all.subspan(1, carried.size()), d, start)) body->add_result(next);
    const Value out =
        ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}});
    Values results;
    for (std::size_t i = 0; i < carried.size(); ++i)
      results.push_back(out.result(static_cast<std::uint32_t>(i + 1)));
    return results;
  }

 private:
  Block block(Value number, std::span<const Value> given, Value& start) const {
    Graph& g = number.graph();
    const auto size = [&](const Dim& d) { return size_value(g, d, DType::i64); };
    const Value nominal = number * integer_like(number, block_rows);
    start = nominal;
    if (rows.overlap()) start = ops::minimum(nominal, size(rows.count - rows.size));
    Block b;
    if (rows.overlap()) {
      const Value row = iota_value(g, DType::i64, Shape({rows.size}), 0) + start;
      b.counts = ops::le(broadcast_to(nominal, row.shape()), row);
    }
    if (rows.first != Dim(0)) start = start + size(rows.first);
    b.first = start;
    b.q = slice_rows(given[given_q], 2, start, rows.size);
    b.dy = slice_rows(given[given_dy], 2, start, rows.size);
    b.row_sums = slice_rows(given[given_sums], 2, start, rows.size);
    b.k = given[given_k];
    b.v = given[given_v];
    if (!x.mask) return b;
    const Value mask = given[given_mask];
    b.mask = repeats_rows(mask) ? mask : slice_rows(mask, mask.rank() - 2, start, rows.size);
    return b;
  }
};

Value zeros_of(Graph& g, DType dtype, const Dims& dims) {
  return broadcast_to(scalar(g, 0, dtype), Shape(dims));
}

// The last row of each part, and the number of keys that its rows may see. The parts of a causal
// mask have fewer keys.
struct Part {
  Rows rows;
  Dim keys;
};
std::vector<Part> parts_of(const Call& c, const Parts& x) {
  const auto rows = x.rows.as_number(), keys = x.keys.as_number();
  const auto offset = c.attrs.has("causal") ? c.attrs.dims("causal")[0].as_number() : std::nullopt;
  // A row that sees nothing is NaN, for all keys.
  if (!rows || !keys || !offset || *offset < 0 || x.mask) return {{Rows(0, x.rows), x.keys}};
  std::vector<Part> out;
  const std::int64_t blocks = (*rows + block_rows - 1) / block_rows;
  std::int64_t from = 0;
  for (std::int64_t i = 1; i <= causal_parts; ++i) {
    const std::int64_t to = std::min(*rows, blocks * i / causal_parts * block_rows);
    if (to <= from) continue;
    out.push_back({Rows(from, to - from), std::min(*keys, to + *offset)});
    from = to;
  }
  return out;
}

// The loops over the parts, and what they have computed.
class ByBlocks {
 public:
  explicit ByBlocks(const Call& c) : c_(c), x_(c) {
    dq_ = zeros_of(c.graph, x_.dtype, x_.q.shape().dims);
    dk_ = zeros_of(c.graph, x_.wide, x_.k.shape().dims);
    dv_ = zeros_of(c.graph, x_.wide, x_.v.shape().dims);
    if (!has_float_mask(c)) return;
    const Type& mask = c.type(at_mask);
    d_mask_ = zeros_of(c.graph, repeats_rows(x_.mask) ? x_.wide : mask.dtype, mask.shape.dims);
  }

  Values run() {
    std::vector<Part> parts = parts_of(c_, x_);
    std::ranges::reverse(parts);
    for (const Part& part : parts) {
      leave_behind(dk_, dk_behind_, part.keys);
      leave_behind(dv_, dv_behind_, part.keys);
      add(part);
    }
    Values out = {reshape_to(dq_, c_.shape(at_q).dims),
                  reshape_to(whole(dk_, dk_behind_), c_.shape(at_k).dims),
                  reshape_to(whole(dv_, dv_behind_), c_.shape(at_v).dims)};
    if (d_mask_) out.push_back(cast_to(d_mask_, c_.type(at_mask).dtype));
    return out;
  }

 private:
  void add(const Part& part) {
    Values carried = {dq_, dk_, dv_};
    if (d_mask_) carried.push_back(d_mask_);
    const auto step = [&](std::span<const Value> now, const BlockGradients& d, Value start) {
      Values next = {update_rows(now[0], cast_to(d.dq, x_.dtype), 2, start), now[1] + d.dk,
                     now[2] + d.dv};
      if (d_mask_) next.push_back(with_mask(now[3], d.d_mask, start));
      return next;
    };
    const Values next = Loop{c_, x_, part.rows}.run(carried, slice_axis(x_.k, 1, 0, part.keys),
                                                    slice_axis(x_.v, 1, 0, part.keys), step);
    dq_ = next[0], dk_ = next[1], dv_ = next[2];
    if (d_mask_) d_mask_ = next[3];
  }

  Value with_mask(Value now, Value d, Value start) const {
    const Type& mask = c_.type(at_mask);
    Shape shape = mask.shape;
    if (repeats_rows(x_.mask)) return now + sum_to(d, shape);
    shape[-2] = d.shape()[-2];
    return update_rows(now, cast_to(sum_to(d, shape), mask.dtype), mask.rank() - 2, start);
  }

  // Moves keys that the parts to come do not see from the sums to `behind`.
  static void leave_behind(Value& sums, Values& behind, const Dim& keys) {
    const Dim have = sums.shape()[1];
    if (keys == have) return;
    behind.push_back(slice_axis(sums, 1, keys, have - keys));
    sums = slice_axis(sums, 1, 0, keys);
  }

  Value whole(Value front, Values behind) const {
    behind.push_back(front);
    for (Value& v : behind) v = cast_to(v, x_.dtype);
    std::ranges::reverse(behind);
    return concat_values(behind, 1);
  }

  const Call& c_;
  const Parts x_;
  Value dq_, dk_, dv_, d_mask_;
  Values dk_behind_, dv_behind_;
};

Values expand_gradient(const Call& c) {
  return c.shape(at_q)[-2].high() <= most_direct ? direct(c) : ByBlocks(c).run();
}

Samples gradient_samples() {
  const Dim n = sample_symbol();
  const auto with = [](Attrs attrs, double scale = 0.5) {
    attrs.set("scale", scale);
    return attrs;
  };
  // Of q, k and v, and a mask if there is one.
  const auto sample = [](std::vector<Type> forward, Attrs attrs) {
    Type y = forward[0];
    y.shape[-1] = forward[2].shape[-1];
    std::vector<Type> all(forward.begin(), forward.begin() + 3);
    all.insert(all.end(), {y, y});
    all.insert(all.end(), forward.begin() + 3, forward.end());
    return Sample{std::move(all), std::move(attrs)};
  };
  return {
      sample({f32({3, 4}), f32({5, 4}), f32({5, 2})}, with({})),
      sample({f32({2, 4, 5, 3}), f32({2, 2, 6, 3}), f32({2, 2, 6, 8})},
             with({{"causal", Dims{0}}})),
      sample({f32({2, 4, 4}), f32({2, 6, 4}), f32({2, 6, 5}), f32({6})}, with({{"softcap", 2.0}})),
      sample({f32({2, 2, 4, 4}), f32({2, 2, 6, 4}), f32({2, 2, 6, 5}), f32({2, 1, 4, 6})},
             with({})),
      sample({f32({2, 4, 4}), f32({2, 6, 4}), f32({2, 6, 5}), b1({4, 6})},
             with({{"masked", -8.0}})),
      sample({f16({2, 5, 8}), f16({2, 9, 8}), f16({2, 9, 8}), f16({5, 9})}, with({})),
      sample({Type(DType::bf16, {3, 4}), Type(DType::bf16, {5, 4}), Type(DType::bf16, {5, 4})},
             with({})),
      sample({Type(DType::f64, {3, 4}), Type(DType::f64, {5, 4}), Type(DType::f64, {5, 4})},
             with({})),
      sample({f32({n, 4}), f32({n, 4}), f32({n, 3})}, with({{"causal", Dims{0}}})),
      sample({f32({2, 0, 4}), f32({2, 3, 4}), f32({2, 3, 4})}, with({})),
      sample({f32({150, 3}), f32({70, 3}), f32({70, 2}), f32({150, 1})}, with({})),
      sample({f32({2, 2, 129, 3}), f32({2, 1, 140, 3}), f32({2, 1, 140, 2})},
             with({{"causal", Dims{2}}}))};
}

}  // namespace

Values attention_derivatives(const Call& c, std::span<const Value> results,
                             std::span<const Value> dy) {
  Values operands(c.operands.begin(), c.operands.begin() + 3);
  operands.insert(operands.end(), {results[0], dy[0]});
  operands.insert(operands.end(), c.operands.begin() + 3, c.operands.end());
  const Value d = ops::attention_gradient(operands, c.attrs);
  Values out(c.operands.size());
  for (std::uint32_t i = 0; i < d.result_count(); ++i) out[i] = d.result(i);
  return out;
}

constinit const Op ops::attention_gradient = {
    .name = "attention_gradient",
    .doc =
        "The derivatives of q, k, v and a float mask under attention (which see), given q, k, v, "
        "the result y, its derivative dy and optionally the mask, with attention's attributes. "
        "From 65 rows on a while_loop over blocks of rows, whose memory grows with the lengths, "
        "not with their product.",
    .kind = OpKind::contraction,
    .infer = infer_gradient,
    .differentiable = direct,
    .expand = expand_gradient,
    .eval = attention_gradient_meaning,
    .samples = gradient_samples,
};

}  // namespace hone
