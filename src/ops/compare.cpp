// Comparisons, select, conversions, and the elementwise sources iota and random_bits.
#include <array>

#include "ops/check.h"
#include "ops/contents.h"
#include "ops/eval.h"
#include "ops/gradients.h"
#include "ops/samples.h"

namespace hone {

namespace {

std::vector<Type> infer_comparison(const Call& c, Accept accept) {
  const bool are_texts = !c.operands.empty() && c.type(0).dtype == DType::text;
  if (are_texts && accept == Accept::any) {
    expect_operands(c, 2);
    expect_same_dtype(c, 0, 2);
    return {b1(equal_shapes(c, 0, 2))};
  }
  Type t = infer_equal(c, 2, accept)[0];
  return {b1(std::move(t.shape))};
}

template <class R, class I>
std::vector<Wide> compare(const Evaluation& e, R real, I integer) {
  const Wide &a = *e.inputs[0], &b = *e.inputs[1];
  Wide y(DType::b1, a.dims);
  for (std::size_t i = 0; i < y.integers.size(); ++i)
    y.integers[i] =
        a.is_real() ? real(a.reals[i], b.reals[i]) : integer(a.dtype, a.integers[i], b.integers[i]);
  return one_result(std::move(y));
}

Samples equality_samples() {
  return joined({{{b1({2, 3}), b1({2, 3})}}, {{{DType::text, {9}}, {DType::text, {9}}}}},
                numeric_binary_samples());
}

// a < b for sizes, as 0 or 1.
Dim less(const Dim& a, const Dim& b) {
  if (std::optional<bool> known = prove_less(a, b)) return *known ? 1 : 0;
  Dim below = b - Dim(1);
  return equal(max(a, below), below);
}

std::optional<Dim> selected(std::span<const Dim> x) {
  if (x[0].is_number()) return x[0].number() ? x[1] : x[2];
  if (x[1] == x[2]) return x[1];
  return x[0] * x[1] + (Dim(1) - x[0]) * x[2];
}

std::vector<Wide> eval_select(const Evaluation& e) {
  const Wide &c = *e.inputs[0], &a = *e.inputs[1], &b = *e.inputs[2];
  Wide y = b;
  for (std::size_t i = 0; i < c.integers.size(); ++i) {
    if (!c.integers[i]) continue;
    if (y.is_real())
      y.reals[i] = a.reals[i];
    else
      y.integers[i] = a.integers[i];
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_select(const Call& c) {
  expect_operands(c, 3);
  expect_dtype(c, 0, Accept::boolean);
  expect_same_dtype(c, 1, 3);
  return {Type(c.type(1).dtype, equal_shapes(c, 0, 3))};
}

Samples select_samples() {
  Samples out;
  for (const Type& t : sample_types()) out.push_back({{b1(t.shape), t, t}});
  for (DType small : small_dtypes) out.push_back({{b1({5}), {small, {5}}, {small, {5}}}});
  return out;
}

Samples cast_samples() {
  Samples out;
  for (DType from : {DType::b1, DType::i8, DType::u8, DType::i32, DType::i64, DType::u64,
                     DType::f16, DType::bf16, DType::f32, DType::f64})
    for (DType to : {DType::b1, DType::i8, DType::u8, DType::i32, DType::i64, DType::u64,
                     DType::f16, DType::bf16, DType::f32, DType::f64})
      out.push_back({{Type(from, {5})}, {{"dtype", to}}});
  for (DType small : small_dtypes)
    for (DType t : {DType::b1, DType::i8, DType::u16, DType::i32, DType::i64, DType::f16,
                    DType::bf16, DType::f32, DType::f64, DType::f8e5m2, DType::i4}) {
      if (small != DType::f8e8m0 || is_float(t))
        out.push_back({{Type(t, {9})}, {{"dtype", small}}});
      out.push_back({{Type(small, {9})}, {{"dtype", t}}});
    }
  out.push_back({{f32({})}, {{"dtype", DType::f16}}});
  out.push_back({{f32({0, 2})}, {{"dtype", DType::i16}}});
  return out;
}

std::vector<Type> infer_bitcast(const Call& c) {
  expect_operands(c, 1);
  DType from = c.type(0).dtype, to = attr<DType>(c, "dtype");
  if (from == DType::b1 || to == DType::b1 || byte_size(from) != byte_size(to))
    throw UserError("bitcast: ", c.type(0), " cannot be read as ", to,
                    "; both must have elements of one size, and neither may be bool");
  return {Type(to, c.shape(0))};
}

std::vector<Type> infer_source(const Call& c) {
  expect_operands(c, 0);
  Shape shape(attr<Dims>(c, "shape"));
  axis_attr(c, "axis", shape.rank());
  sizes_attr(c, "shape", static_cast<std::size_t>(shape.rank()), 0);
  DType dtype = attr<DType>(c, "dtype");
  if (dtype == DType::b1 || is_coded(dtype))
    throw UserError("iota: dtype is ", dtype, ", expected a numeric dtype; cast the result");
  return {Type(dtype, std::move(shape))};
}

std::vector<Wide> eval_iota(const Evaluation& e) {
  Wide y(e.result_types[0].dtype, e.result_dims());
  AxisSplit s = split_at(y.dims, static_cast<int>(e.attrs.integer("axis")));
  for (std::int64_t i = 0; i < y.count(); ++i) {
    std::int64_t n = i / s.inner % s.size;
    if (y.is_real())
      y.reals[static_cast<std::size_t>(i)] = static_cast<double>(n);
    else
      y.integers[static_cast<std::size_t>(i)] = wrap(y.dtype, n);
  }
  return one_result(std::move(y));
}

}  // namespace

constinit const Op ops::eq = {
    .name = "eq",
    .doc = "x == y as bool; false for NaN.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_comparison(c, Accept::any); },
    .eval =
        [](const Evaluation& e) {
          return compare(
              e, [](double a, double b) { return a == b; },
              [](DType, std::int64_t a, std::int64_t b) { return a == b; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return equal(x[0], x[1]); });
        },
    .commutative = true,
    .ulps = 0,
    .onnx = {"Equal", 1, 2},
    .samples = equality_samples,
};

constinit const Op ops::ne = {
    .name = "ne",
    .doc = "x != y as bool; true for NaN.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_comparison(c, Accept::any); },
    .eval =
        [](const Evaluation& e) {
          return compare(
              e, [](double a, double b) { return a != b; },
              [](DType, std::int64_t a, std::int64_t b) { return a != b; });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(c, t, [](std::span<const Dim> x) -> std::optional<Dim> {
            return Dim(1) - equal(x[0], x[1]);
          });
        },
    .commutative = true,
    .ulps = 0,
    .samples = equality_samples,
};

constinit const Op ops::lt = {
    .name = "lt",
    .doc = "x < y as bool; false for NaN.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_comparison(c, Accept::numeric); },
    .eval =
        [](const Evaluation& e) {
          return compare(e, [](double a, double b) { return a < b; }, integer_less);
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(
              c, t, [](std::span<const Dim> x) -> std::optional<Dim> { return less(x[0], x[1]); });
        },
    .ulps = 0,
    .onnx = {"Less", 1, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::le = {
    .name = "le",
    .doc = "x <= y as bool; false for NaN.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_comparison(c, Accept::numeric); },
    .eval =
        [](const Evaluation& e) {
          return compare(
              e, [](double a, double b) { return a <= b; },
              [](DType t, std::int64_t a, std::int64_t b) { return !integer_less(t, b, a); });
        },
    .contents =
        [](const Call& c, const Type& t) {
          return contents_each(c, t, [](std::span<const Dim> x) -> std::optional<Dim> {
            return Dim(1) - less(x[1], x[0]);
          });
        },
    .ulps = 0,
    .onnx = {"LessOrEqual", 12, 2},
    .samples = numeric_binary_samples,
};

constinit const Op ops::select = {
    .name = "select",
    .doc = "x where the condition (operand 0, bool) holds, else y. All shapes are equal.",
    .kind = OpKind::elementwise,
    .infer = infer_select,
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      const Value zero = constant_like(dy[0], 0);
      return {{}, ops::select(c.operands[0], dy[0], zero), ops::select(c.operands[0], zero, dy[0])};
    },
    .eval = eval_select,
    .contents = [](const Call& c, const Type& t) { return contents_each(c, t, selected); },
    .ulps = 0,
    .onnx = {"Where", 9, 3},
    .samples = select_samples,
};

constinit const Op ops::cast = {
    .name = "cast",
    .doc =
        "x in attribute dtype. Floats round once; float to integer truncates and saturates, NaN "
        "gives 0; integers keep the low bits; to bool: x != 0. What a small float cannot hold "
        "becomes infinity, else NaN, else its largest number.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) -> std::vector<Type> {
      expect_operands(c, 1);
      const DType to = attr<DType>(c, "dtype");
      if (to == DType::text || c.type(0).dtype == DType::text)
        throw UserError("cast: ", c.type(0), " cannot be cast to ", to,
                        "; strings are not numbers");
      if (to == DType::f8e8m0 && !is_float(c.type(0).dtype))
        throw UserError("cast: ", c.type(0), " cannot be cast to f8e8m0; cast it to a float first");
      return {Type(to, c.shape(0))};
    },
    .grad = [](const Call& c, std::span<const Value>, std::span<const Value> dy) -> Values {
      if (!is_float(c.type(0).dtype)) return Values(1);
      return {cast_to(dy[0], c.type(0).dtype)};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      return one_result(convert(*e.inputs[0], e.attrs.get<DType>("dtype")));
    },
    .contents =
        [](const Call& c, const Type& t) {
          if (t.dtype != DType::b1 || c.type(0).dtype == DType::b1)
            return contents_each(c, t,
                                 [](std::span<const Dim> x) -> std::optional<Dim> { return x[0]; });
          return contents_each(c, t, [](std::span<const Dim> x) -> std::optional<Dim> {
            return Dim(1) - equal(x[0], 0);
          });
        },
    .ulps = 0,
    .samples = cast_samples,
    .low = -300,
    .high = 300,
};

constinit const Op ops::bitcast = {
    .name = "bitcast",
    .doc =
        "The bits of x read as attribute dtype, which has the same size in memory; of a byte, "
        "types "
        "of fewer bits read the low ones.",
    .kind = OpKind::elementwise,
    .infer = infer_bitcast,
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      Array bits = narrow(*e.inputs[0]);
      return one_result(widen(Array(e.attrs.get<DType>("dtype"), bits.dims(), bits.storage())));
    },
    .contents = contents_by_value,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{f32({2, 3})}, {{"dtype", DType::i32}}},
              {{i32({4})}, {{"dtype", DType::u32}}},
              {{f16({4})}, {{"dtype", DType::u16}}},
              {{Type(DType::u8, {9})}, {{"dtype", DType::f8e4m3fn}}},
              {{Type(DType::f4e2m1, {9})}, {{"dtype", DType::i8}}},
              {{Type(DType::u8, {9})}, {{"dtype", DType::i4}}},
              {{Type(DType::f64, {})}, {{"dtype", DType::i64}}},
              {{Type(DType::u8, {0})}, {{"dtype", DType::i8}}}};
    },
};

constinit const Op ops::iota = {
    .name = "iota",
    .doc = "No operands: 0, 1, 2, ... along attribute axis of attributes shape and dtype.",
    .kind = OpKind::leaf,
    .infer = infer_source,
    .eval = eval_iota,
    .contents = contents_by_value,
    .cost = 0,
    .ulps = 0,
    .samples = []() -> Samples {
      return {{{}, {{"shape", Dims{7}}, {"dtype", DType::f32}, {"axis", 0}}},
              {{}, {{"shape", Dims{3, 70}}, {"dtype", DType::i64}, {"axis", 1}}},
              {{}, {{"shape", Dims{4, 2}}, {"dtype", DType::f16}, {"axis", 0}}},
              {{}, {{"shape", Dims{0}}, {"dtype", DType::i32}, {"axis", 0}}},
              {{}, {{"shape", Dims{300}}, {"dtype", DType::u8}, {"axis", 0}}}};
    },
};

namespace {

using Philox = std::array<std::uint32_t, 4>;

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): philox4x32-10.
Philox philox(Philox c, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

std::vector<Wide> eval_random(const Evaluation& e) {
  auto key = static_cast<std::uint64_t>(e.inputs[0]->integers[0]);
  auto counter = static_cast<std::uint64_t>(e.inputs[1]->integers[0]);
  Wide y(DType::u32, e.result_dims());
  for (std::size_t i = 0; i < y.integers.size(); ++i) {
    std::uint64_t block = i / 4;
    Philox words =
        philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32)},
               static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
    y.integers[i] = words[i % 4];
  }
  return one_result(std::move(y));
}

std::vector<Type> infer_random(const Call& c) {
  expect_operands(c, 2);
  for (std::size_t i = 0; i < 2; ++i)
    if (c.type(i) != Type(DType::u64, Shape{}))
      throw UserError("random_bits: operand ", i, " is ", c.type(i), ", expected u64[]");
  const Dims& shape = attr<Dims>(c, "shape");
  sizes_attr(c, "shape", shape.size(), 0);
  return {Type(DType::u32, Shape(shape))};
}

}  // namespace

constinit const Op ops::random_bits = {
    .name = "random_bits",
    .doc =
        "u32 of attribute shape from key and counter (u64 scalars). Element i is word i mod 4 of "
        "philox4x32-10 with that key and the counter words i / 4 (low, high), counter (low, "
        "high).",
    .kind = OpKind::other,
    .infer = infer_random,
    .eval = eval_random,
    .ulps = 0,
    .samples = []() -> Samples {
      Type word(DType::u64, Shape{});
      return {{{word, word}, {{"shape", Dims{3, 7}}}},
              {{word, word}, {{"shape", Dims{}}}},
              {{word, word}, {{"shape", Dims{0}}}}};
    },
    .low = 0,
    .high = 1e6,
};

}  // namespace hone
