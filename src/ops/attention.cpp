// Scaled dot-product attention: a composite over two contractions around a softmax. f16 and bf16
// are computed in f32 and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Leading axes are equal; only the last of them, the heads axis, may be shorter in k and v.
void expect_heads(const Call& c, std::size_t operand) {
  const Shape &q = c.shape(0), &k = c.shape(operand);
  expect_rank(c, operand, q.rank());
  for (int i = 0; i + 2 < q.rank(); ++i) {
    const bool heads = i == q.rank() - 3;
    if (heads && q[i].is_number() && k[i].is_number()) {
      const std::int64_t many = q[i].number(), few = k[i].number();
      if (few == many || (few > 0 && many % few == 0)) continue;
      throw UserError("attention: operand 0 has ", amount(many, "head", "heads"),
                      ", expected a multiple of the ", few, " heads of operand ", operand);
    }
    equal_sizes(c, q[i], k[i], "sizes of operands 0 and ", operand, " at axis ", i);
  }
}

std::vector<Type> infer_attention(const Call& c) {
  expect_operands(c, 3, 4);
  for (std::size_t i = 0; i < 3; ++i)
    if (c.type(i).rank() < 2)
      throw UserError("attention: operand ", i, " is ", c.type(i), ", expected at least two axes");
  expect_dtype(c, 0, Accept::real);
  expect_same_dtype(c, 0, 3);
  attr<double>(c, "scale");
  if (c.attrs.has("softcap") && !(attr<double>(c, "softcap") > 0))
    throw UserError("attention: attribute 'softcap' is ", attr<double>(c, "softcap"),
                    ", expected a positive number");
  if (c.attrs.has("masked")) attr<double>(c, "masked");
  if (c.attrs.has("causal") && attr<Dims>(c, "causal").size() != 1)
    throw UserError("attention: attribute 'causal' has ", attr<Dims>(c, "causal").size(),
                    " entries, expected one: the last key that the first query may see");
  expect_heads(c, 1);
  expect_heads(c, 2);
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  const int rank = q.rank();
  if (rank > 2) equal_sizes(c, k[rank - 3], v[rank - 3], "heads of operands 1 and 2");
  equal_sizes(c, q[-1], k[-1], "sizes of a query and a key");
  equal_sizes(c, k[-2], v[-2], "numbers of keys and values");
  Shape scores = q;
  scores[-1] = k[-2];
  if (c.operands.size() > 3) {
    if (c.type(3).dtype != DType::b1) expect_dtype(c, 3, Accept::real);
    const Shape& mask = c.shape(3);
    if (mask.rank() > rank)
      throw UserError("attention: operand 3 (the mask) is ", c.type(3),
                      ", expected at most as many axes as the scores ", scores);
    for (int i = 1; i <= mask.rank(); ++i)
      if (mask[-i] != Dim(1))
        equal_sizes(c, scores[-i], mask[-i], "sizes of scores and mask at axis -", i);
  }
  Shape y = q;
  y[-1] = v[-1];
  return {Type(c.type(0).dtype, std::move(y))};
}

// Splits [.., heads, l, d] into [.., shared heads, heads / shared, l, d] when heads share keys.
Value grouped(Value q, const Shape& k) {
  const int rank = q.rank();
  if (rank < 3 || q.shape()[rank - 3] == k[rank - 3]) return q;
  Dims dims = q.shape().dims;
  auto heads = dims.end() - 3;
  const Dim shared = k[rank - 3];
  *heads = floor_div(*heads, shared);
  dims.insert(heads, shared);
  return reshape_to(q, dims);
}

// Contracts axis `from` of x, whose heads may share matrices, with axis `with` of each matrix.
Value with_matrices(Value x, Value matrices, int with) {
  Value left = grouped(x, matrices.shape());
  AxisPairs batch;
  for (int i = 0; i + 2 < matrices.rank(); ++i) batch.emplace_back(i, i);
  Value y = dot_general(left, matrices, batch, {{left.rank() - 1, matrices.rank() - 2 + with}});
  Dims dims = x.shape().dims;
  dims.back() = matrices.shape()[matrices.rank() - 1 - with];
  return reshape_to(y, dims);
}

Values expand_attention(const Call& c) {
  const DType wide = sum_dtype(c.type(0).dtype);
  auto operand = [&](std::size_t i) { return cast_to(c.operands[i], wide); };
  Value scores = with_matrices(operand(0), operand(1), 1) * c.attrs.real("scale");
  if (c.attrs.has("softcap")) {
    const double cap = c.attrs.real("softcap");
    scores = ops::tanh(scores / cap) * cap;
  }
  const Shape shape = scores.shape();
  const int rank = shape.rank();
  if (c.operands.size() > 3 && c.type(3).dtype == DType::b1) {
    const double masked = c.attrs.has("masked") ? c.attrs.real("masked") : -infinity;
    scores = where(c.operands[3], scores, constant_like(scores, masked));
  } else if (c.operands.size() > 3) {
    scores = scores + broadcast_to(operand(3), shape);
  }
  if (c.attrs.has("causal")) {
    Value row = iota_value(c.graph, DType::i64, shape, rank - 2),
          column = iota_value(c.graph, DType::i64, shape, rank - 1);
    Value last = row + size_value(c.graph, c.attrs.dims("causal")[0], DType::i64);
    scores = ops::select(ops::le(column, last), scores, constant_like(scores, -infinity));
  }
  Value p = ops::softmax(scores, {{"axis", std::int64_t{rank - 1}}});
  return {cast_to(with_matrices(p, operand(2), 0), c.type(0).dtype)};
}

// Reference implementation, one query at a time.
class Meaning {
 public:
  explicit Meaning(const Evaluation& e)
      : e_(e), q_(*e.inputs[0]), k_(*e.inputs[1]), v_(*e.inputs[2]), y_(q_.dtype, e.result_dims()) {
    const std::size_t r = q_.dims.size();
    heads_ = r > 2 ? q_.dims[r - 3] : 1;
    shared_ = r > 2 ? k_.dims[r - 3] : 1;
    queries_ = q_.dims[r - 2];
    keys_ = k_.dims[r - 2];
    depth_ = q_.dims[r - 1];
    width_ = v_.dims[r - 1];
    if (e.inputs.size() > 3) {
      mask_strides_ = Sizes(r, 0);
      const Sizes dims = e.inputs[3]->dims, dense = row_major(dims);
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i] != 1) mask_strides_[r - dims.size() + i] = dense[i];
    }
    if (e.attrs.has("causal")) last_key_ = e.sizes(e.attrs.dims("causal"))[0];
  }

  std::vector<Wide> run() {
    const std::int64_t rows = count_of(q_.dims) / std::max<std::int64_t>(depth_, 1);
    for (std::int64_t row = 0; depth_ > 0 && row < rows; ++row) query(row);
    return {std::move(y_)};
  }

 private:
  void query(std::int64_t row) {
    const std::int64_t matrix = row / queries_;
    const std::int64_t shared = matrix / heads_ * shared_ + matrix % heads_ / (heads_ / shared_);
    std::vector<long double> score(static_cast<std::size_t>(keys_));
    for (std::int64_t j = 0; j < keys_; ++j) score[at(j)] = score_of(row, shared * keys_ + j, j);
    const long double most = keys_ > 0 ? *std::ranges::max_element(score) : 0;
    long double all = 0;
    for (long double& w : score) all += w = expl(w - most);
    for (std::int64_t i = 0; i < width_; ++i) {
      long double sum = 0;
      for (std::int64_t j = 0; j < keys_; ++j)
        sum += score[at(j)] * v_.reals[at((shared * keys_ + j) * width_ + i)];
      y_.reals[at(row * width_ + i)] = static_cast<double>(keys_ > 0 ? sum / all : 0);
    }
  }

  long double score_of(std::int64_t row, std::int64_t key, std::int64_t j) const {
    long double s = 0;
    for (std::int64_t i = 0; i < depth_; ++i)
      s +=
          static_cast<long double>(q_.reals[at(row * depth_ + i)]) * k_.reals[at(key * depth_ + i)];
    s *= e_.attrs.real("scale");
    if (e_.attrs.has("softcap")) {
      const long double cap = e_.attrs.real("softcap");
      s = tanhl(s / cap) * cap;
    }
    if (e_.inputs.size() > 3) {
      std::int64_t place = j * mask_strides_.back(), rest = row;
      for (std::size_t i = mask_strides_.size() - 1; i-- > 0; rest /= q_.dims[i])
        place += rest % q_.dims[i] * mask_strides_[i];
      const Wide& mask = *e_.inputs[3];
      if (mask.is_real())
        s += mask.reals[at(place)];
      else if (mask.integers[at(place)] == 0)
        s = e_.attrs.has("masked") ? e_.attrs.real("masked") : -infinity;
    }
    const bool is_late = last_key_ && j > row % queries_ + *last_key_;
    return is_late ? -infinity : s;
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  const Evaluation& e_;
  const Wide &q_, &k_, &v_;
  Wide y_;
  std::int64_t heads_, shared_, queries_, keys_, depth_, width_;
  Sizes mask_strides_;                    // strides for the scores; 0 where it repeats
  std::optional<std::int64_t> last_key_;  // visible to the first query
};

Samples attention_samples() {
  const Dim n = sample_symbol(), m = Dim::symbol("m", 1, 8);
  auto with = [](Attrs attrs, double scale = 0.5) {
    attrs.set("scale", scale);
    return attrs;
  };
  return {
      {{f32({3, 4}), f32({5, 4}), f32({5, 2})}, with({})},
      {{f32({2, 3, 5, 7}), f32({2, 3, 4, 7}), f32({2, 3, 4, 3})}, with({})},
      {{f32({2, 4, 5, 3}), f32({2, 2, 6, 3}), f32({2, 2, 6, 8})}, with({{"causal", Dims{0}}})},
      {{f32({2, 3, 4}), f32({2, 6, 4}), f32({2, 6, 4})}, with({{"causal", Dims{3}}}, -1)},
      {{f32({2, 4, 4}), f32({2, 6, 4}), f32({2, 6, 5}), f32({6})}, with({{"softcap", 2.0}})},
      {{f32({2, 2, 4, 4}), f32({2, 2, 6, 4}), f32({2, 2, 6, 5}), f32({2, 1, 4, 6})}, with({})},
      {{f32({2, 4, 4}), f32({2, 6, 4}), f32({2, 6, 5}), b1({4, 6})}, with({{"masked", -8.0}})},
      {{f16({2, 5, 8}), f16({2, 9, 8}), f16({2, 9, 8}), f16({5, 9})}, with({})},
      {{Type(DType::bf16, {3, 4}), Type(DType::bf16, {5, 4}), Type(DType::bf16, {5, 4})}, with({})},
      {{Type(DType::f64, {3, 4}), Type(DType::f64, {5, 4}), Type(DType::f64, {5, 4})}, with({})},
      {{f32({2, n, 4}), f32({2, m, 4}), f32({2, m, 4})}, with({})},
      {{f32({n, 4}), f32({n, 4}), f32({n, 3})}, with({{"causal", Dims{0}}})},
      {{f32({2, 0, 4}), f32({2, 3, 4}), f32({2, 3, 4})}, with({})},
      {{f32({37, 19}), f32({70, 19}), f32({70, 33})}, with({{"causal", Dims{33}}}, 0.2)}};
}

}  // namespace

constinit const Op ops::attention = {
    .name = "attention",
    .doc =
        "softmax(scale * q k^T + mask) v over the last two axes of q [..,l,d], k [..,s,d], v "
        "[..,s,e]; the axis before them may be shorter in k and v, whose heads then serve several "
        "of q. A score that a bool mask forbids becomes attribute masked (-infinity unless given), "
        "and with attribute causal = [n] that of a key behind query + n becomes -infinity. "
        "Optional "
        "softcap c: c tanh(score / c), before the mask. A row of nothing but -infinity gives NaN.",
    .kind = OpKind::contraction,
    .infer = infer_attention,
    .expand = expand_attention,
    .eval = [](const Evaluation& e) { return Meaning(e).run(); },
    .samples = attention_samples,
};

}  // namespace hone
