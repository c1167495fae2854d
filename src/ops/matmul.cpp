// Matrix products with numpy semantics: a composite over one contraction.
#include "ops/check.h"
#include "ops/eval.h"
#include "ops/samples.h"

namespace hone {

namespace {

// Rank 1 operands become matrices; the added axes are removed from the result.
struct Matrices {
  Shape a, b;
};

Matrices as_matrices(const Call& c) {
  Matrices m{c.shape(0), c.shape(1)};
  if (m.a.rank() == 1) m.a.dims.insert(m.a.dims.begin(), Dim(1));
  if (m.b.rank() == 1) m.b.dims.push_back(1);
  return m;
}

Shape without_last_two(const Shape& s) { return Shape(Dims(s.dims.begin(), s.dims.end() - 2)); }

std::vector<Type> infer_matmul(const Call& c) {
  expect_operands(c, 2);
  for (std::size_t i = 0; i < 2; ++i)
    if (c.type(i).rank() < 1)
      throw UserError("matmul: operands are ", c.type(0), " and ", c.type(1),
                      ", expected at least one axis each");
  Matrices m = as_matrices(c);
  if (prove_equal(m.a[-1], m.b[-2]) == false)
    throw UserError("matmul: inner sizes differ: ", c.shape(0), " x ", c.shape(1), " (", m.a[-1],
                    " against ", m.b[-2], "); is one operand transposed?");
  equal_sizes(c, m.a[-1], m.b[-2], "inner sizes");
  Shape y = broadcast_shape(c.graph, without_last_two(m.a), without_last_two(m.b), "matmul");
  if (c.shape(0).rank() > 1) y.dims.push_back(m.a[-2]);
  if (c.shape(1).rank() > 1) y.dims.push_back(m.b[-1]);
  return {Type(contraction_dtype(c), std::move(y))};
}

Value batched(Value v, const Shape& matrix, const Shape& batch) {
  Dims dims = batch.dims;
  dims.insert(dims.end(), matrix.dims.end() - 2, matrix.dims.end());
  return broadcast_to(reshape_to(v, matrix.dims), Shape(std::move(dims)));
}

Values expand_matmul(const Call& c) {
  Matrices m = as_matrices(c);
  Value a = reshape_to(c.operands[0], m.a.dims), b = reshape_to(c.operands[1], m.b.dims);
  AxisPairs batch;
  if (b.rank() > 2) {
    Shape common = broadcast_shape(c.graph, without_last_two(m.a), without_last_two(m.b), "matmul");
    a = batched(a, m.a, common);
    b = batched(b, m.b, common);
    for (int i = 0; i < common.rank(); ++i) batch.emplace_back(i, i);
  }
  std::optional<DType> dtype;
  if (c.attrs.has("dtype")) dtype = c.attrs.get<DType>("dtype");
  Value y = dot_general(a, b, batch, {{a.rank() - 1, b.rank() - 2}}, dtype);
  if (c.attrs.has("mode")) {
    Attrs attrs = y.attrs();
    attrs.set("mode", c.attrs.get<std::string>("mode"));
    y = ops::dot(Values{a, b}, std::move(attrs));
  }
  return {reshape_to(y, c.results[0].shape.dims)};
}

// The flat start of the operand's matrix for output matrix `index` of the batch.
std::int64_t matrix_start(const Sizes& dims, const Sizes& batch, std::int64_t index) {
  std::int64_t start = 0;
  Sizes to = row_major(batch), strides = row_major(dims);
  for (std::size_t i = 0; i + 2 < dims.size(); ++i) {
    std::size_t k = i + batch.size() + 2 - dims.size();
    if (dims[i] != 1) start += index / to[k] % batch[k] * strides[i];
  }
  return start;
}

std::vector<Wide> eval_matmul(const Evaluation& e) {
  const Wide &a = *e.inputs[0], &b = *e.inputs[1];
  Sizes left = a.dims, right = b.dims, batch = e.result_dims();
  Wide y(e.result_types[0].dtype, batch);
  if (left.size() == 1)
    left.insert(left.begin(), 1);
  else
    batch.pop_back();
  if (right.size() == 1)
    right.push_back(1);
  else
    batch.pop_back();
  std::int64_t m = left.end()[-2], k = left.end()[-1], n = right.end()[-1], next = 0;
  for (std::int64_t i = 0; i < count_of(batch); ++i) {
    std::int64_t p = matrix_start(left, batch, i), q = matrix_start(right, batch, i);
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n; ++column, ++next) {
        long double sum = 0;
        std::uint64_t integer = 0;
        for (std::int64_t j = 0; j < k; ++j) {
          auto x = static_cast<std::size_t>(p + row * k + j),
               z = static_cast<std::size_t>(q + j * n + column);
          if (y.is_real())
            sum += static_cast<long double>(a.reals[x]) * b.reals[z];
          else
            integer += static_cast<std::uint64_t>(a.integers[x]) *
                       static_cast<std::uint64_t>(b.integers[z]);
        }
        auto at = static_cast<std::size_t>(next);
        if (y.is_real())
          y.reals[at] = static_cast<double>(sum);
        else
          y.integers[at] = wrap(y.dtype, static_cast<std::int64_t>(integer));
      }
  }
  return one_result(std::move(y));
}

}  // namespace

constinit const Op ops::matmul = {
    .name = "matmul",
    .doc =
        "y[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; leading axes broadcast, rank "
        "1 is a row (a) or a column (b) and disappears. Optional attributes dtype and tf32 as for "
        "dot.",
    .kind = OpKind::contraction,
    .infer = infer_matmul,
    .expand = expand_matmul,
    .eval = eval_matmul,
    .samples = []() -> Samples {
      Dim n = sample_symbol();
      return {{{f32({2, 3}), f32({3, 4})}, {}},
              {{f32({5, 2, 3}), f32({3, 4})}, {}},
              {{f32({2, 3}), f32({5, 3, 4})}, {}},
              {{f32({2, 1, 2, 3}), f32({3, 3, 2})}, {}},
              {{f32({3}), f32({3})}, {}},
              {{f32({3}), f32({2, 3, 4})}, {}},
              {{f32({2, 4, 3}), f32({3})}, {}},
              {{f16({8, 16}), f16({16, 8})}, {}},
              {{Type(DType::bf16, {4, 6}), Type(DType::bf16, {6, 4})}, {}},
              {{i64({2, 2}), i64({2, 2})}, {}},
              {{Type(DType::u8, {2, 3}), Type(DType::i8, {3, 2})}, {{"dtype", DType::i32}}},
              {{f32({n, 6}), f32({6, 2})}, {}},
              {{f32({0, 3}), f32({3, 2})}, {}},
              {{f32({2, 0}), f32({0, 2})}, {}}};
    },
};

}  // namespace hone
