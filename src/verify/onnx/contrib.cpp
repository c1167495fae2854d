// Domain com.microsoft: operators by which ONNX Runtime's optimizer replaces several nodes.
#include <algorithm>
#include <cmath>

#include "verify/onnx/call.h"
#include "verify/onnx/meaning.h"

namespace hone::onnx {

namespace {

Numbers joined(Call& c, std::string_view op, const Numbers& a, const Numbers& b) {
  constexpr std::int64_t opset = 13;
  Node node;
  node.op = op;
  const Numbers* inputs[] = {&a, &b};
  const auto made = meaning_of(node, opset, inputs);
  static_cast<void>(c);
  if (!made) throw NotJudged();
  return made->at(0);
}

template <class F>
std::vector<Numbers> each(Numbers x, F f) {
  for (double& v : x.values) v = f(v);
  return {std::move(x)};
}

// The first operand, plus the second where there is one.
Numbers biased(Call& c) { return c.has(1) ? joined(c, "Add", c.in(0), c.in(1)) : c.in(0); }

std::vector<Numbers> bias_gelu(Call& c) {
  return each(biased(c), [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); });
}

std::vector<Numbers> fast_gelu(Call& c) {
  return each(biased(c), [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

std::vector<Numbers> quick_gelu(Call& c) {
  const double alpha = c.real("alpha", 1.702);
  return each(c.in(0), [&](double x) { return x / (1 + std::exp(-alpha * x)); });
}

Numbers turned(const Numbers& x) {
  if (x.dims.size() < 2) return x;
  const std::int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  Numbers out = x;
  std::swap(out.dims[x.dims.size() - 2], out.dims.back());
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const std::int64_t in_matrix = i % std::max<std::int64_t>(rows * columns, 1),
                       to = i - in_matrix + in_matrix % columns * rows + in_matrix / columns;
    out.values[static_cast<std::size_t>(to)] = x.values[static_cast<std::size_t>(i)];
  }
  return out;
}

std::vector<Numbers> fused_matmul(Call& c) {
  if (c.integer("transBatchA", 0) != 0 || c.integer("transBatchB", 0) != 0) throw NotJudged();
  const bool a = c.integer("transA", 0) != 0, b = c.integer("transB", 0) != 0;
  const double alpha = c.real("alpha", 1);
  return each(joined(c, "MatMul", a ? turned(c.in(0)) : c.in(0), b ? turned(c.in(1)) : c.in(1)),
              [&](double x) { return alpha * x; });
}

std::vector<Numbers> expand_dims(Call& c) {
  Numbers out = c.in(0);
  std::int64_t axis = c.list(1).at(0);
  if (axis < 0) axis += static_cast<std::int64_t>(out.dims.size()) + 1;
  if (axis < 0 || axis > static_cast<std::int64_t>(out.dims.size())) throw NotJudged();
  out.dims.insert(out.dims.begin() + axis, 1);
  return {out};
}

// Along the last axis of the sum of both operands and a bias: less the mean, or not, by the root of
// what is left of squares.
std::vector<Numbers> skip_normalization(Call& c) {
  const bool is_simple = c.op() == "SkipSimplifiedLayerNormalization";
  if (c.in(0).dims != c.in(1).dims || c.in(0).dims.empty()) throw NotJudged();
  const double epsilon = c.real("epsilon", 1e-12);
  const std::size_t bias = is_simple ? 3 : 4;
  Numbers sum = joined(c, "Add", c.in(0), c.in(1));
  if (c.has(bias)) sum = joined(c, "Add", sum, c.in(bias));
  Numbers out = sum;
  const auto width = static_cast<std::size_t>(sum.dims.back());
  for (std::size_t first = 0; first < sum.values.size(); first += width) {
    double mean = 0, squares = 0;
    for (std::size_t k = 0; k < width && !is_simple; ++k)
      mean += sum.values[first + k] / static_cast<double>(width);
    for (std::size_t k = 0; k < width; ++k)
      squares += std::pow(sum.values[first + k] - mean, 2) / static_cast<double>(width);
    for (std::size_t k = 0; k < width; ++k)
      out.values[first + k] =
          (sum.values[first + k] - mean) / std::sqrt(squares + epsilon) * c.in(2).values.at(k) +
          (!is_simple && c.has(3) ? c.in(3).values.at(k) : 0);
  }
  return {out};
}

std::vector<Numbers> bias_softmax(Call& c) {
  Numbers out = joined(c, "Add", c.in(0), c.in(1));
  const std::size_t axis = c.axis("axis", 1);
  static_cast<void>(c.integer("is_inner_broadcast", 0));
  const auto line = static_cast<std::size_t>(
      product(Sizes(out.dims.begin() + static_cast<std::ptrdiff_t>(axis), out.dims.end())));
  for (std::size_t first = 0; first < out.values.size(); first += line) {
    double most = -INFINITY, sum = 0;
    for (std::size_t k = 0; k < line; ++k) most = std::fmax(most, out.values[first + k]);
    for (std::size_t k = 0; k < line; ++k)
      sum += out.values[first + k] = std::exp(out.values[first + k] - most);
    for (std::size_t k = 0; k < line; ++k) out.values[first + k] /= sum;
  }
  return {out};
}

// Numbers of few bits, the low ones of a byte first, in blocks along the depth with a scale each.
std::vector<Numbers> matmul_in_bits(Call& c) {
  const std::int64_t depth = c.integer("K", 0), width = c.integer("N", 0),
                     bits = c.integer("bits", 4), block = c.integer("block_size", 0);
  static_cast<void>(c.integer("accuracy_level", 0));
  const Numbers &a = c.in(0), &codes = c.in(1), &scales = c.in(2);
  if (c.has(3) || c.has(4) || (bits != 4 && bits != 8) || block < 1 || depth < 1 ||
      a.dims.empty() || a.dims.back() != depth || codes.dims.size() != 3)
    throw NotJudged();
  const std::int64_t blocks = (depth + block - 1) / block, bytes = codes.dims[2];
  check_work(static_cast<double>(a.count()) * static_cast<double>(width));
  const auto weight = [&](std::int64_t n, std::int64_t k) {
    const std::int64_t in_block = k % block, place = (n * blocks + k / block) * bytes;
    const auto byte = static_cast<std::int64_t>(
        codes.values.at(static_cast<std::size_t>(place + in_block * bits / 8)));
    const std::int64_t code = bits == 8 ? byte : in_block % 2 == 0 ? byte & 15 : byte >> 4;
    return static_cast<double>(code - (std::int64_t{1} << (bits - 1))) *
           scales.values.at(static_cast<std::size_t>(n * blocks + k / block));
  };
  Numbers out{a.dtype, a.dims, {}};
  out.dims.back() = width;
  for (std::int64_t row = 0; row < a.count() / depth; ++row)
    for (std::int64_t n = 0; n < width; ++n) {
      double sum = c.has(5) ? c.in(5).values.at(static_cast<std::size_t>(n)) : 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a.values[static_cast<std::size_t>(row * depth + k)] * weight(n, k);
      out.values.push_back(sum);
    }
  return {out};
}

// Gauss-Jordan elimination with the largest element left as pivot. Matrices that are nearly
// singular have no inverse to compare with.
std::vector<Numbers> inverse(Call& c) {
  Numbers out = c.in(0);
  const std::int64_t n = out.dims.back();
  if (c.rank() < 2 || out.dims[out.dims.size() - 2] != n) throw NotJudged();
  const auto size = static_cast<std::size_t>(n);
  for (std::size_t first = 0; n > 0 && first < out.values.size(); first += size * size) {
    double* const m = out.values.data() + first;
    std::vector<std::size_t> rows, columns;  // of the pivots
    double most = 0;
    while (rows.size() < size) {
      std::size_t row = 0, column = 0;
      double pivot = 0;
      for (std::size_t i = 0; i < size * size; ++i) {
        if (std::ranges::count(rows, i / size) || std::ranges::count(columns, i % size)) continue;
        if (std::fabs(m[i]) <= std::fabs(pivot)) continue;
        pivot = m[i], row = i / size, column = i % size;
      }
      most = std::max(most, std::fabs(pivot));
      if (!(std::fabs(pivot) > 0.02 * most)) throw NotJudged();
      for (std::size_t j = 0; j < size; ++j) m[row * size + j] /= j == column ? 1 : pivot;
      m[row * size + column] = 1 / pivot;
      for (std::size_t i = 0; i < size; ++i) {
        if (i == row) continue;
        const double factor = m[i * size + column];
        for (std::size_t j = 0; j < size; ++j)
          m[i * size + j] -= j == column ? 0 : factor * m[row * size + j];
        m[i * size + column] = -factor / pivot;
      }
      rows.push_back(row), columns.push_back(column);
    }
    // Rows and columns were exchanged in place: element (row, column) of step i belongs at
    // (column, row).
    std::vector<double> placed(size * size);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j)
        placed[columns[i] * size + rows[j]] = m[rows[i] * size + columns[j]];
    std::ranges::copy(placed, m);
  }
  return {out};
}

constexpr MeaningRow contrib_rows[] = {
    {"com.microsoft.BiasGelu", bias_gelu},
    {"com.microsoft.BiasSoftmax", bias_softmax},
    {"com.microsoft.FastGelu", fast_gelu},
    {"com.microsoft.QuickGelu", quick_gelu},
    {"com.microsoft.FusedMatMul", fused_matmul},
    {"com.microsoft.TransposeMatMul", fused_matmul},
    {"com.microsoft.ExpandDims", expand_dims},
    {"com.microsoft.Inverse", inverse},
    {"com.microsoft.MatMulNBits", matmul_in_bits},
    {"com.microsoft.SkipLayerNormalization", skip_normalization},
    {"com.microsoft.SkipSimplifiedLayerNormalization", skip_normalization},
};

}  // namespace

std::span<const MeaningRow> contrib_meanings() { return contrib_rows; }

}  // namespace hone::onnx
