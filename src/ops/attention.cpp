// Scaled dot-product attention: a composite over two contractions around a softmax. f16 and bf16
// are computed in f32 and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "ops/attention_gradient.h"
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
      throw UserError(c.op.name, ": operand 0 has ", amount(many, "head", "heads"),
                      ", expected a multiple of the ", few, " heads of operand ", operand);
    }
    equal_sizes(c, q[i], k[i], "sizes of operands 0 and ", operand, " at axis ", i);
  }
}

std::vector<Type> infer_attention(const Call& c) {
  expect_operands(c, 3, 4);
  for (std::size_t i = 0; i < 3; ++i)
    if (c.type(i).rank() < 2)
      throw UserError(c.op.name, ": operand ", i, " is ", c.type(i),
                      ", expected at least two axes");
  expect_dtype(c, 0, Accept::real);
  expect_same_dtype(c, 0, 3);
  attr<double>(c, "scale");
  if (c.attrs.has("softcap") && !(attr<double>(c, "softcap") > 0))
    throw UserError(c.op.name, ": attribute 'softcap' is ", attr<double>(c, "softcap"),
                    ", expected a positive number");
  if (c.attrs.has("masked")) attr<double>(c, "masked");
  if (c.attrs.has("causal") && attr<Dims>(c, "causal").size() != 1)
    throw UserError(c.op.name, ": attribute 'causal' has ", attr<Dims>(c, "causal").size(),
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
      throw UserError(c.op.name, ": operand 3 (the mask) is ", c.type(3),
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
  // The mask, if there is one, is the operand at that place.
  Meaning(const Evaluation& e, std::size_t at_mask)
      : e_(e), q_(*e.inputs[0]), k_(*e.inputs[1]), v_(*e.inputs[2]) {
    const std::size_t r = q_.dims.size();
    heads_ = r > 2 ? q_.dims[r - 3] : 1;
    shared_ = r > 2 ? k_.dims[r - 3] : 1;
    queries_ = q_.dims[r - 2];
    keys_ = k_.dims[r - 2];
    depth_ = q_.dims[r - 1];
    width_ = v_.dims[r - 1];
    if (e.inputs.size() > at_mask) {
      mask_ = e.inputs[at_mask];
      mask_strides_ = Sizes(r, 0);
      const Sizes dims = mask_->dims, dense = row_major(dims);
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i] != 1) mask_strides_[r - dims.size() + i] = dense[i];
    }
    if (e.attrs.has("causal")) last_key_ = e.sizes(e.attrs.dims("causal"))[0];
  }

  std::vector<Wide> run() const {
    Wide y(q_.dtype, e_.result_dims());
    for (std::int64_t row = 0; row < rows(); ++row) {
      const std::vector<long double> p = probabilities(row);
      for (std::int64_t i = 0; i < width_; ++i) {
        long double sum = 0;
        for (std::int64_t j = 0; j < keys_; ++j)
          sum += p[at(j)] * v_.reals[at((first_key(row) + j) * width_ + i)];
        y.reals[at(row * width_ + i)] = static_cast<double>(sum);
      }
    }
    return {std::move(y)};
  }

  std::vector<Wide> gradients(const Wide& y, const Wide& dy) const {
    std::vector<Sums> sums;
    for (std::size_t i = 0; i < e_.result_types.size(); ++i)
      sums.emplace_back(at(count_of(e_.result_dims(i))));
    for (std::int64_t row = 0; row < rows(); ++row) add_gradients(row, y, dy, sums);
    std::vector<Wide> out;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      out.emplace_back(e_.result_types[i].dtype, e_.result_dims(i));
      for (std::size_t k = 0; k < sums[i].size(); ++k)
        out[i].reals[k] = static_cast<double>(sums[i][k]);
    }
    return out;
  }

 private:
  using Sums = std::vector<long double>;

  std::int64_t rows() const { return depth_ > 0 ? count_of(q_.dims) / depth_ : 0; }
  // Of the matrix that serves this row, in k and v.
  std::int64_t first_key(std::int64_t row) const {
    const std::int64_t matrix = row / queries_;
    return (matrix / heads_ * shared_ + matrix % heads_ / (heads_ / shared_)) * keys_;
  }

  Sums probabilities(std::int64_t row) const {
    Sums p(at(keys_));
    for (std::int64_t j = 0; j < keys_; ++j) p[at(j)] = score_of(row, j).s;
    const long double most = keys_ > 0 ? *std::ranges::max_element(p) : 0;
    long double all = 0;
    for (long double& w : p) all += w = expl(w - most);
    for (long double& w : p) w /= all;
    return p;
  }

  void add_gradients(std::int64_t row, const Wide& y, const Wide& dy,
                     std::vector<Sums>& sums) const {
    const Sums p = probabilities(row);
    long double whole = 0;
    for (std::int64_t i = row * width_; i < (row + 1) * width_; ++i)
      whole += static_cast<long double>(dy.reals[at(i)]) * y.reals[at(i)];
    for (std::int64_t j = 0; j < keys_; ++j) {
      const std::int64_t key = first_key(row) + j;
      long double dp = 0;
      for (std::int64_t i = 0; i < width_; ++i) {
        const long double d = dy.reals[at(row * width_ + i)];
        dp += d * v_.reals[at(key * width_ + i)];
        sums[2][at(key * width_ + i)] += p[at(j)] * d;
      }
      const Score score = score_of(row, j);
      if (!score.is_allowed) continue;
      const long double d = p[at(j)] * (dp - whole), ds = d * score.slope;
      if (sums.size() > 3) sums[3][at(mask_place(row, j))] += d;
      for (std::int64_t i = 0; i < depth_; ++i) {
        sums[0][at(row * depth_ + i)] += ds * k_.reals[at(key * depth_ + i)];
        sums[1][at(key * depth_ + i)] += ds * q_.reals[at(row * depth_ + i)];
      }
    }
  }

  struct Score {
    long double s = 0, slope = 0;  // its derivative by the product of q and k
    bool is_allowed = true;
  };
  Score score_of(std::int64_t row, std::int64_t j) const {
    Score r{.s = 0, .slope = e_.attrs.real("scale")};
    for (std::int64_t i = 0; i < depth_; ++i)
      r.s += static_cast<long double>(q_.reals[at(row * depth_ + i)]) *
             k_.reals[at((first_key(row) + j) * depth_ + i)];
    r.s *= e_.attrs.real("scale");
    if (e_.attrs.has("softcap")) {
      const long double cap = e_.attrs.real("softcap"), bent = tanhl(r.s / cap);
      r.s = bent * cap;
      r.slope *= 1 - bent * bent;
    }
    if (mask_ && mask_->is_real()) {
      r.s += mask_->reals[at(mask_place(row, j))];
    } else if (mask_ && mask_->integers[at(mask_place(row, j))] == 0) {
      r.s = e_.attrs.has("masked") ? e_.attrs.real("masked") : -infinity;
      r.is_allowed = false;
    }
    if (last_key_ && j > row % queries_ + *last_key_) r = {-infinity, 0, false};
    return r;
  }
  std::int64_t mask_place(std::int64_t row, std::int64_t j) const {
    std::int64_t place = j * mask_strides_.back(), rest = row;
    for (std::size_t i = mask_strides_.size() - 1; i-- > 0; rest /= q_.dims[i])
      place += rest % q_.dims[i] * mask_strides_[i];
    return place;
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  const Evaluation& e_;
  const Wide &q_, &k_, &v_, *mask_ = nullptr;
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

std::vector<Wide> attention_gradient_meaning(const Evaluation& e) {
  return Meaning(e, 5).gradients(*e.inputs[3], *e.inputs[4]);
}

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
    .grad = attention_derivatives,
    .expand = expand_attention,
    .eval = [](const Evaluation& e) { return Meaning(e, 3).run(); },
    .samples = attention_samples,
};

}  // namespace hone
