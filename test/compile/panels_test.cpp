// Weights of contractions keep their dtype.
#include <random>

#include "ops/common.h"
#include "ref/evaluate.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

Array random_array(DType t, std::vector<std::int64_t> dims) {
  static std::mt19937 random(3);
  Array a = Array::zeros(t, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const auto n = static_cast<std::int64_t>(random() % 256) - (is_signed(t) ? 128 : 0);
    is_float(t) ? a.set_real(i, static_cast<double>(n) / 128) : a.set_integer(i, n);
  }
  return a;
}

// Compiles and compares with the reference.
Plan compiled_and_checked(const Function& f, const Array& x) {
  EmptyCache cache;
  const Source source{"panels", {{{}, f}}, {}};
  const auto plan = std::make_shared<const Plan>(compile(source, {.strategy = "cpu"}));
  const std::vector<Array> inputs = {x};
  const Array got = session_of(plan)->run(inputs).at(0);
  const Comparison r = accept(got, evaluate_wide(f, inputs, Mode::strict)[0],
                              evaluate_wide(f, inputs, Mode::wide)[0]);
  EXPECT_TRUE(r.ok) << r;
  return *plan;
}

// Bytes of weights and of the buffers prepared from them.
std::int64_t kept_bytes(const Plan& plan) {
  std::size_t bytes = 0;
  for (const PreparedBuffer& b : plan.prepared) bytes += b.size();
  for (const PlanWeight& w : plan.weights) bytes += w.data.bytes().size();
  return static_cast<std::int64_t>(bytes);
}

// The weights are k x n; the other operand has m rows.
constexpr std::int64_t m = 7, k = 64, n = 96;

TEST(Panels, FloatsOfSixteenBitsTakeTwoBytes) {
  for (DType t : {DType::bf16, DType::f16}) {
    Function f;
    Value x = f.add_param({t, {m, k}}, "x"), w = constant(f.graph(), random_array(t, {k, n}));
    f.add_result(ops::matmul(x, w));
    const std::int64_t bytes = kept_bytes(compiled_and_checked(f, random_array(t, {m, k})));
    EXPECT_GE(bytes, 2 * k * n);
    EXPECT_LT(bytes, 3 * k * n);  // padded to whole panels
  }
}

TEST(Panels, BytesTakeOne) {
  for (DType t : {DType::i8, DType::u8}) {
    Function f;
    Value x = f.add_param({DType::u8, {m, k}}, "x"),
          w = constant(f.graph(), random_array(t, {k, n}));
    f.add_result(dot_general(x, w, {}, {{1, 0}}, DType::i32));
    const std::int64_t bytes = kept_bytes(compiled_and_checked(f, random_array(DType::u8, {m, k})));
    EXPECT_GE(bytes, k * n);
    EXPECT_LT(bytes, 3 * k * n / 2);
  }
}

// How the importer writes DequantizeLinear: cast(codes - zero) * scale.
enum class Scale : std::uint8_t { tensor, column, block };

Function dequantized(Scale kind, bool has_zero, std::int64_t rows, std::int64_t inner,
                     std::int64_t columns) {
  Function f;
  Value x = f.add_param(f32({rows, inner}), "x"),
        codes = constant(f.graph(), random_array(DType::i8, {inner, columns}));
  constexpr std::int64_t block = 32;
  auto whole = [&](DType t) {
    if (kind == Scale::tensor) {
      Value one = constant(f.graph(), random_array(t, {1}));
      return broadcast_to(reshape_to(one, {}), codes.shape());
    }
    if (kind == Scale::column)
      return broadcast_to(constant(f.graph(), random_array(t, {1, columns})), codes.shape());
    Value each = unsqueeze(constant(f.graph(), random_array(t, {inner / block, columns})), {1});
    each = broadcast_to(each, Shape{inner / block, block, columns});
    return reshape_to(each, codes.shape().dims);
  };
  Value number = cast_to(codes, DType::i32);
  if (has_zero) number = number - cast_to(whole(DType::i8), DType::i32);
  f.add_result(ops::matmul(x, cast_to(number, DType::f32) * whole(DType::f32)));
  return f;
}

TEST(Panels, DequantizedWeightsAreKeptAsTheirCodes) {
  constexpr std::int64_t inner = 256, columns = 192;
  for (Scale kind : {Scale::tensor, Scale::column, Scale::block})
    for (bool has_zero : {false, true})
      for (std::int64_t rows : {1, 40}) {
        SCOPED_TRACE(
            cat("scale ", static_cast<int>(kind), has_zero ? ", zero" : "", ", ", rows, " rows"));
        const Function f = dequantized(kind, has_zero, rows, inner, columns);
        const Plan plan = compiled_and_checked(f, random_array(DType::f32, {rows, inner}));
        // The codes, padded to whole panels, and one unchanged copy of scales and zeros.
        const std::int64_t other = inner / 32 * columns * 5 + 4096;
        EXPECT_LT(kept_bytes(plan), 5 * inner * columns / 4 + other);
      }
}

// With two readers, neither can keep the codes for itself.
TEST(Panels, WeightsThatSeveralReadAreDequantizedOnce) {
  Function f;
  Value x = f.add_param(f32({3, 256}), "x"),
        codes = constant(f.graph(), random_array(DType::i8, {256, 192}));
  Value w = cast_to(codes, DType::f32) * 0.5;
  f.add_result(ops::matmul(x, w) + ops::exp(slice_axis(w, 0, 0, 3)));
  compiled_and_checked(f, random_array(DType::f32, {3, 256}));
}

}  // namespace
}  // namespace hone
