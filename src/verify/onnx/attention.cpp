// Attention over queries, keys and values, head by head.
#include <cmath>

#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// [batch, heads, length, width]; of three axes the heads lie side by side in the last.
struct Heads {
  const Numbers& numbers;
  std::int64_t batch, heads, length, width;
  bool are_side_by_side;

  Heads(const Numbers& x, std::int64_t given) : numbers(x) {
    are_side_by_side = x.dims.size() == 3;
    if (x.dims.size() != 4 && (!are_side_by_side || given < 1)) throw NotJudged();
    batch = x.dims[0];
    heads = are_side_by_side ? given : x.dims[1];
    length = x.dims[are_side_by_side ? 1 : 2];
    width = are_side_by_side ? x.dims[2] / given : x.dims[3];
  }
  double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t k) const {
    const std::int64_t place = are_side_by_side ? ((b * length + i) * heads + h) * width + k
                                                : ((b * heads + h) * length + i) * width + k;
    return numbers.values.at(static_cast<std::size_t>(place));
  }
};

// What was there before, then what is new: [batch, heads, length, width].
Numbers present(const Numbers* past, const Heads& x) {
  const std::int64_t before = past ? past->dims.at(2) : 0;
  Numbers out{x.numbers.dtype, {x.batch, x.heads, before + x.length, x.width}, {}};
  for_index(out.dims, [&](const Sizes& i) {
    if (i[2] >= before) return out.values.push_back(x.at(i[0], i[1], i[2] - before, i[3]));
    const std::int64_t place = ((i[0] * x.heads + i[1]) * before + i[2]) * x.width + i[3];
    out.values.push_back(past->values.at(static_cast<std::size_t>(place)));
  });
  return out;
}

// What is added to a score.
double bias(const Numbers* mask, const Sizes& index) {
  if (!mask) return 0;
  const Sizes strides = strides_of(mask->dims);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < mask->dims.size(); ++i)
    if (mask->dims[i] != 1) place += index[i + 4 - mask->dims.size()] * strides[i];
  const double x = mask->values.at(static_cast<std::size_t>(place));
  return mask->dtype != DType::b1 ? x : x != 0 ? 0 : -INFINITY;
}

// The softmax of a row.
void weigh(std::vector<double>& row) {
  double most = -INFINITY, sum = 0;
  for (double x : row) most = std::fmax(most, x);
  if (std::isinf(most)) throw NotJudged();  // everything is masked
  for (double& x : row) sum += x = std::exp(x - most);
  for (double& x : row) x /= sum;
}

std::vector<Numbers> attention(Call& c) {
  if (c.has(6) || c.outputs() > 3 || c.has(4) != c.has(5)) throw NotJudged();
  const std::int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  const Heads q(c.in(0), q_heads);
  const Numbers keys = present(c.has(4) ? &c.in(4) : nullptr, Heads(c.in(1), kv_heads)),
                values = present(c.has(5) ? &c.in(5) : nullptr, Heads(c.in(2), kv_heads));
  const Heads k(keys, 0), v(values, 0);
  const double scale = c.real("scale", 1 / std::sqrt(static_cast<double>(q.width))),
               cap = c.real("softcap", 0);
  const bool is_causal = c.integer("is_causal", 0) != 0;
  const std::int64_t past = c.has(4) ? c.in(4).dims.at(2) : 0;
  const Numbers* mask = c.has(3) ? &c.in(3) : nullptr;
  static_cast<void>(c.integer("qk_matmul_output_mode", 0));
  if (k.heads == 0 || q.heads % k.heads != 0 || (cap != 0 && (mask || is_causal)) ||
      (mask && (mask->dims.empty() || mask->dims.back() != k.length)))
    throw NotJudged();
  check_work(static_cast<double>(q.batch * q.heads * q.length) *
             static_cast<double>(k.length * (q.width + v.width)));
  Numbers y{c.in(0).dtype, {q.batch, q.heads, q.length, v.width}, {}};
  if (q.are_side_by_side) y.dims = {q.batch, q.length, q.heads * v.width};
  y.values.resize(static_cast<std::size_t>(y.count()));
  for_index({q.batch, q.heads, q.length}, [&](const Sizes& i) {
    const std::int64_t shared = i[1] / (q.heads / k.heads);
    std::vector<double> row;
    for (std::int64_t j = 0; j < k.length; ++j) {
      double score = 0;
      for (std::int64_t n = 0; n < q.width; ++n)
        score += q.at(i[0], i[1], i[2], n) * k.at(i[0], shared, j, n);
      score = score * scale + bias(mask, {i[0], i[1], i[2], j});
      if (cap != 0) score = cap * std::tanh(score / cap);
      row.push_back(is_causal && j > i[2] + past ? -INFINITY : score);
    }
    weigh(row);
    for (std::int64_t n = 0; n < v.width; ++n) {
      double sum = 0;
      for (std::int64_t j = 0; j < k.length; ++j)
        sum += row[static_cast<std::size_t>(j)] * v.at(i[0], shared, j, n);
      const std::int64_t to = q.are_side_by_side
                                  ? ((i[0] * q.length + i[2]) * q.heads + i[1]) * v.width + n
                                  : ((i[0] * q.heads + i[1]) * q.length + i[2]) * v.width + n;
      y.values[static_cast<std::size_t>(to)] = sum;
    }
  });
  return {y, keys, values};
}

constexpr MeaningRow attention_rows[] = {{"Attention", attention}};

}  // namespace

std::span<const MeaningRow> attention_meanings() { return attention_rows; }

}  // namespace hone::onnx
