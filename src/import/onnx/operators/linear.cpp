// Determinants and inverses of batches of square matrices, by Gaussian elimination with partial
// pivoting. Determinants of small matrices of known size are unrolled, the others are loops.
#include <array>
#include <functional>

#include "import/common/build.h"
#include "import/onnx/operators/contrib.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// [b, n, n] of a value [..., n, n].
Value square_matrices(NodeContext& c, Value x) {
  if (x.rank() < 2) c.fail(cat("the input is ", x.type(), ", expected square matrices"));
  const std::array sizes = {x.shape()[-1], x.shape()[-2]};
  const Dim n = settled(sizes);
  Dims dims = x.shape().dims;
  dims[dims.size() - 2] = dims[dims.size() - 1] = n;
  x = with_sizes(x, dims, "the input");
  return reshape_to(x, {product(std::span(dims).first(dims.size() - 2)), n, n});
}

// A loop over k = 0 .. n - 1 (backwards: n - 1 .. 0) that carries the values; `body` gets them and
// the scalar k, in the graph of the loop's body.
Values over_columns(const Values& carried, const Dim& n, bool backwards,
                    const std::function<Values(const Values&, Value k)>& body) {
  hone::Graph& g = carried[0].graph();
  Values operands = {integer(g, 0)};
  operands.insert(operands.end(), carried.begin(), carried.end());
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* f : {go.get(), next.get()})
    for (const Value& v : operands) f->add_param(v.type(), cat("p", f->params().size()));
  go->add_result(ops::lt(go->param(0), size_value(go->graph(), n, DType::i64)));
  const Value count = next->param(0);
  Values now;
  for (std::size_t i = 0; i < carried.size(); ++i) now.push_back(next->param(1 + i));
  Value k = count;
  if (backwards) k = size_value(next->graph(), n - Dim(1), DType::i64) - count;
  next->add_result(count + integer_like(count, 1));
  for (const Value& v : body(now, k)) next->add_result(v);
  const Value loop =
      ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}});
  Values out;
  for (std::size_t i = 0; i < carried.size(); ++i) out.push_back(loop.result(1 + i));
  return out;
}

// The numbers of the rows, [1, n, 1].
Value rows_of(Value m) { return iota_value(m.graph(), DType::i64, {1, m.shape()[1], 1}, 1); }

// The row at `place` [b, 1, 1] of each matrix.
Value row_at(Value m, Value place) {
  return sum_over(where_or(joined(ops::eq, rows_of(m), place), m, 0), {1}, true);
}

// Column k of [b, n, ...] becomes zero below the diagonal; a column that is zero already stays.
// `sign` [b, 1, 1] changes where rows were exchanged.
Values eliminated(const Values& now, Value k) {
  const Value m = now[0], sign = now[1], row = rows_of(m);
  const Value size = where_or(joined(ops::le, k, row), ops::abs(slice_at(m, 2, k)), -1);
  const Value place =
      unsqueeze(ops::argmax(size, {{"axis", std::int64_t{1}}, {"dtype", DType::i64}}), {1});
  const Value pivot_row = row_at(m, place), first_row = slice_at(m, 1, k);
  const Value is_first = joined(ops::eq, row, k), is_pivot = joined(ops::eq, row, place);
  const Value exchanged = where(is_first, pivot_row, where(is_pivot, first_row, m));
  const Value pivot = slice_at(pivot_row, 2, k), is_zero = ops::eq(pivot, constant_like(pivot, 0));
  const Value factor =
      over(slice_at(exchanged, 2, k), where(is_zero, constant_like(pivot, 1), pivot));
  const Value changes = both(joined(ops::lt, k, row), ops::bit_not(is_zero));
  return {where(changes, minus(exchanged, times(factor, pivot_row)), exchanged),
          where(joined(ops::eq, place, k), sign, -sign)};
}

// Eliminates all columns of the first n of [b, n, ...].
Values triangular(Value m) {
  const Value sign = filled(m.graph(), m.dtype(), {m.shape()[0], 1, 1}, 1);
  return over_columns({m, sign}, m.shape()[1], false, eliminated);
}

// ==== Det

// Unrolled: each column has nodes of its own.
Value small_determinant(Value a, std::int64_t n) {
  hone::Graph& g = a.graph();
  Value det = filled(g, a.dtype(), {a.shape()[0]}, 1);
  for (std::int64_t left = n; left > 0; --left) {
    Value column = take_axis(a, 2, 0);  // [b, left]
    Value at = ops::argmax(ops::abs(column), {{"axis", std::int64_t{1}}, {"dtype", DType::i64}});
    Value row = iota_value(g, DType::i64, {1, left}, 1);
    Value is_pivot = joined(ops::eq, row, unsqueeze(at, {1}));  // [b, left]
    Value pivot_row = sum_over(where_or(unsqueeze(is_pivot, {2}), a, 0), {1});
    Value pivot = take_axis(pivot_row, 1, 0);
    Value moved = ops::eq(at, integers_filled(g, DType::i64, at.shape(), 0));
    det = det * ops::select(moved, pivot, -pivot);
    if (left == 1) break;
    // The first row replaces the pivot row, then the first row is removed.
    a = where(unsqueeze(is_pivot, {2}), slice_axis(a, 1, 0, 1), a);
    a = slice_axis(a, 1, 1, left - 1);
    Value singular = ops::eq(pivot, constant_like(pivot, 0));
    Value safe = ops::select(singular, constant_like(pivot, 1), pivot);
    Value factor = over(take_axis(a, 2, 0), unsqueeze(safe, {1}));
    a = slice_axis(a, 2, 1, left - 1);
    a = minus(a,
              times(unsqueeze(factor, {2}), unsqueeze(slice_axis(pivot_row, 1, 1, left - 1), {1})));
  }
  return det;
}

Value determinant_of(Value x) {
  constexpr std::int64_t most_unrolled = 32;
  const Dim n = x.shape()[1];
  if (n.is_number() && n.number() <= most_unrolled) return small_determinant(x, n.number());
  const Values made = triangular(x);
  const Value row = rows_of(x), column = transpose_by(row, Axes{0, 2, 1});
  const Value diagonal = sum_over(where_or(joined(ops::eq, row, column), made[0], 0), {2});
  return reduce_axes(ops::reduce_prod, diagonal, {1}) * reshape_to(made[1], {x.shape()[0]});
}

Values determinant(NodeContext& c) {
  const Value det = determinant_of(square_matrices(c, c.in(0)));
  Dims batch = c.in(0).shape().dims;
  batch.resize(batch.size() - 2);
  return {reshape_to(det, batch)};
}

// ==== Inverse

// Solves u x = y for upper triangular u. As in ONNX Runtime, a singular matrix has infinities and
// NaN in its inverse.
Values back_substituted(const Values& now, Value k) {
  const Value u = now[0], y = now[1], row = rows_of(u);
  const Value pivot_row = slice_at(u, 1, k), pivot = slice_at(pivot_row, 2, k);
  const Value x = over(slice_at(y, 1, k), pivot);
  const Value rest = minus(y, times(slice_at(u, 2, k), x));
  return {u, where(joined(ops::eq, row, k), x, where(joined(ops::lt, row, k), rest, y))};
}

Values inverse(NodeContext& c) {
  const DType dtype = c.in(0).dtype();
  const Value x = square_matrices(c, cast_to(c.in(0), sum_dtype(dtype)));
  const Dim n = x.shape()[1];
  const Value row = rows_of(x), column = transpose_by(row, Axes{0, 2, 1});
  const Value one = cast_to(joined(ops::eq, row, column), x.dtype());
  const Value made = triangular(concat_values(Values{x, broadcast_to(one, x.shape())}, 2))[0];
  const Values both = split_axis(made, 2, Dims{n, n});
  const Value y = over_columns(both, n, true, back_substituted)[1];
  return {cast_to(reshape_to(y, c.in(0).shape().dims), dtype)};
}

constexpr ImportEntry linear_table[] = {
    {"Det", determinant, 11},
    {.op = "Inverse", .import = inverse, .domain = contrib_domain},
};

}  // namespace

std::span<const ImportEntry> linear_imports() { return linear_table; }

}  // namespace hone::onnx
