// The general contraction.
#include <algorithm>

#include "ops/check.h"
#include "ops/contraction.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

Axes every_second(const Dims& pairs, std::size_t from) {
  Axes out;
  for (std::size_t i = from; i < pairs.size(); i += 2)
    out.push_back(static_cast<int>(pairs[i].number()));
  return out;
}

Axes rest(int rank, const Axes& a, const Axes& b) {
  Axes out;
  for (int i = 0; i < rank; ++i)
    if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end())
      out.push_back(i);
  return out;
}

void expect_pairs(const Call& c) {
  std::vector<bool> seen[2] = {std::vector<bool>(static_cast<std::size_t>(c.type(0).rank())),
                               std::vector<bool>(static_cast<std::size_t>(c.type(1).rank()))};
  for (AttrName name : {AttrName("batch"), AttrName("contract")}) {
    const Dims& pairs = attr<Dims>(c, name);
    bool fits = pairs.size() % 2 == 0;
    for (std::size_t i = 0; fits && i < pairs.size(); ++i) {
      std::vector<bool>& axes = seen[i % 2];
      fits = pairs[i].is_number() && pairs[i].number() >= 0 &&
             pairs[i].number() < static_cast<std::int64_t>(axes.size()) &&
             !axes[static_cast<std::size_t>(pairs[i].number())];
      if (fits) axes[static_cast<std::size_t>(pairs[i].number())] = true;
    }
    if (!fits)
      throw UserError("dot: attribute '", name.text(), "' is ", Shape(pairs),
                      ", expected pairs of axes of ", c.type(0), " and ", c.type(1),
                      ", each axis at most once");
  }
}

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

}  // namespace

DType contraction_dtype(const Call& c) {
  DType a = c.type(0).dtype, b = c.type(1).dtype;
  if (!c.attrs.has("dtype")) {
    expect_same_dtype(c, 0, 2);
    expect_dtype(c, 0, Accept::numeric);
    return a;
  }
  DType to = attr<DType>(c, "dtype");
  bool bytes = is_byte(a) && is_byte(b) && to == DType::i32;
  bool floats = a == b && is_float(a) && is_float(to) && byte_size(to) >= byte_size(a);
  if (!bytes && !floats)
    throw UserError(c.op.name, ": ", c.type(0), " and ", c.type(1), " cannot be summed as ", to,
                    "; bytes are summed as i32, floats as the same or a wider float");
  return to;
}

DotAxes dot_axes(const Attrs& attrs, int rank_a, int rank_b) {
  const Dims &batch = attrs.dims("batch"), &contract = attrs.dims("contract");
  DotAxes x;
  x.batch_a = every_second(batch, 0);
  x.batch_b = every_second(batch, 1);
  x.contract_a = every_second(contract, 0);
  x.contract_b = every_second(contract, 1);
  x.free_a = rest(rank_a, x.batch_a, x.contract_a);
  x.free_b = rest(rank_b, x.batch_b, x.contract_b);
  return x;
}

namespace {

std::vector<Type> infer_dot(const Call& c) {
  expect_operands(c, 2);
  expect_pairs(c);
  const Shape &a = c.shape(0), &b = c.shape(1);
  DotAxes x = dot_axes(c.attrs, a.rank(), b.rank());
  Shape to;
  for (std::size_t i = 0; i < x.contract_a.size(); ++i)
    equal_sizes(c, a[x.contract_a[i]], b[x.contract_b[i]], "contracted sizes (axes ",
                x.contract_a[i], " and ", x.contract_b[i], ")");
  for (std::size_t i = 0; i < x.batch_a.size(); ++i)
    to.dims.push_back(equal_sizes(c, a[x.batch_a[i]], b[x.batch_b[i]], "batch sizes (axes ",
                                  x.batch_a[i], " and ", x.batch_b[i], ")"));
  for (int k : x.free_a) to.dims.push_back(a[k]);
  for (int k : x.free_b) to.dims.push_back(b[k]);
  return {Type(contraction_dtype(c), std::move(to))};
}

// x with its axes in the given order, dense: x itself if it already is, else the copy.
const Wide& arranged(const Wide& x, const Axes& first, const Axes& second, const Axes& third,
                     Wide& copy) {
  Sizes strides = row_major(x.dims), dims, from;
  for (const Axes* axes : {&first, &second, &third})
    for (int a : *axes) {
      dims.push_back(x.dims[static_cast<std::size_t>(a)]);
      from.push_back(strides[static_cast<std::size_t>(a)]);
    }
  if (std::ranges::is_sorted(from, std::greater{})) return x;
  copy = take_box(x, {0, from}, dims);
  return copy;
}

std::int64_t size_of(const Wide& x, const Axes& axes) {
  std::int64_t n = 1;
  for (int a : axes) n *= x.dims[static_cast<std::size_t>(a)];
  return n;
}

struct Sizes3 {
  std::int64_t batch, m, n, k;
};

// out[j] += products of `terms` factors and rows of b, one term after the other.
template <int terms, class U, class T>
void add_products(const T* factors, const T* b, std::int64_t b_step, T* __restrict out,
                  std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    U total = static_cast<U>(out[j]);
    for (int t = 0; t < terms; ++t)
      total += static_cast<U>(factors[t]) * static_cast<U>(b[t * b_step + j]);
    out[j] = static_cast<T>(total);
  }
}

// c[batch,m,n] = sum over k of a[batch,m,k] b[batch,k,n]; c must be zero before. Multiplies and
// sums T in type U. Every element is summed over k in order; blocking rows and columns only reads b
// less often.
template <class U, class T>
void multiply(const std::vector<T>& a, const std::vector<T>& b, std::vector<T>& c, Sizes3 s) {
  constexpr std::int64_t rows = 16, columns = 128;
  constexpr int together = 8;
  const std::int64_t blocks = (s.m + rows - 1) / rows, strips = (s.n + columns - 1) / columns;
  auto block = [&](std::int64_t matrix, std::int64_t row, std::int64_t column) {
    const std::int64_t last = std::min(row + rows, s.m), n = std::min(columns, s.n - column);
    auto add = [&]<int terms>(std::int64_t k) {
      const T* right = b.data() + (matrix * s.k + k) * s.n + column;
      for (std::int64_t i = matrix * s.m + row; i < matrix * s.m + last; ++i)
        add_products<terms, U>(a.data() + i * s.k + k, right, s.n, c.data() + i * s.n + column, n);
    };
    std::int64_t k = 0;
    for (; k + together <= s.k; k += together) add.template operator()<together>(k);
    for (; k < s.k; ++k) add.template operator()<1>(k);
  };
  parallel_chunks(s.batch * blocks * strips, s.batch * s.m * s.n * s.k,
                  [&](std::int64_t from, std::int64_t to) {
                    for (std::int64_t i = from; i < to; ++i)
                      block(i / strips / blocks, i / strips % blocks * rows, i % strips * columns);
                  });
}

std::vector<Wide> eval_dot(const Evaluation& e) {
  const Wide &a = *e.inputs[0], &b = *e.inputs[1];
  DotAxes x = dot_axes(e.attrs, static_cast<int>(a.dims.size()), static_cast<int>(b.dims.size()));
  Wide left_copy, right_copy;
  const Wide& left = arranged(a, x.batch_a, x.free_a, x.contract_a, left_copy);
  const Wide& right = arranged(b, x.batch_b, x.contract_b, x.free_b, right_copy);
  Wide y(e.result_types[0].dtype, e.result_dims());
  Sizes3 s{size_of(a, x.batch_a), size_of(a, x.free_a), size_of(b, x.free_b),
           size_of(a, x.contract_a)};
  if (y.is_real() && e.round_sums && y.dtype != DType::f64)
    multiply<float>(left.reals, right.reals, y.reals, s);
  else if (y.is_real())
    multiply<double>(left.reals, right.reals, y.reals, s);
  else
    multiply<std::uint64_t>(left.integers, right.integers, y.integers, s);
  for (std::int64_t& n : y.integers) n = wrap(y.dtype, n);
  return one_result(std::move(y));
}

}  // namespace

constinit const Op ops::dot = {
    .name = "dot",
    .doc =
        "The general contraction: sums of products over the pairs of axes in attribute contract "
        "= [a0,b0,a1,b1,...]; attribute batch pairs axes that stay, alike. Result axes: batch, "
        "free axes of a, free axes of b. Narrow floats are summed in f32 and rounded once. "
        "Optional attributes: dtype of the result, i32 for bytes, a wider float for floats; tf32 = "
        "1 "
        "says that f32 operands hold what tf32 holds, ten bits of mantissa.",
    .kind = OpKind::contraction,
    .infer = infer_dot,
    .grad = grads::dot,
    .eval = eval_dot,
    .samples = []() -> Samples {
      auto axes = [](Dims batch, Dims contract) -> Attrs {
        return {{"batch", std::move(batch)}, {"contract", std::move(contract)}};
      };
      Attrs bytes = axes({}, {1, 0});
      bytes.set("dtype", DType::i32);
      Attrs wider = axes({}, {1, 0});
      wider.set("dtype", DType::f32);
      Dim n = sample_symbol();
      return {{{f32({2, 3}), f32({3, 4})}, axes({}, {1, 0})},
              {{f32({5, 2, 3}), f32({5, 3, 4})}, axes({0, 0}, {2, 1})},
              {{f32({3, 2, 4}), f32({4, 5, 3})}, axes({}, {0, 2, 2, 0})},
              {{f32({2, 3, 4}), f32({4, 2, 5})}, axes({0, 1}, {2, 0})},
              {{f16({8, 16}), f16({8, 16})}, axes({}, {1, 1})},
              {{Type(DType::bf16, {3, 9}), Type(DType::bf16, {9, 2})}, axes({}, {1, 0})},
              {{f16({2, 5}), f16({5, 3})}, wider},
              {{i64({2, 3}), i64({3, 2})}, axes({}, {1, 0})},
              {{Type(DType::u8, {2, 3}), Type(DType::i8, {3, 2})}, bytes},
              {{f32({n, 6}), f32({6, 3})}, axes({}, {1, 0})},
              {{f32({2, 0}), f32({0, 3})}, axes({}, {1, 0})},
              {{f32({0, 2}), f32({2, 3})}, axes({}, {1, 0})},
              {{f32({3}), f32({3})}, axes({}, {0, 0})},
              {{f32({}), f32({4})}, axes({}, {})},
              {{f32({37, 65}), f32({65, 51})}, axes({}, {1, 0})}};
    },
};

}  // namespace hone
