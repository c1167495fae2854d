// Weights of contractions are kept in the dtype that they have.
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

// Compiles, compares with the reference, and gives the bytes that were prepared.
std::int64_t prepared_bytes(const Function& f, const Array& x) {
  EmptyCache cache;
  const Source source{"panels", {{{}, f}}, {}};
  const auto plan = std::make_shared<const Plan>(compile(source, {.strategy = "cpu"}));
  const std::vector<Array> inputs = {x};
  const Array got = session_of(plan)->run(inputs).at(0);
  const Comparison r = accept(got, evaluate_wide(f, inputs, Mode::strict)[0],
                              evaluate_wide(f, inputs, Mode::wide)[0]);
  EXPECT_TRUE(r.ok) << r;
  EXPECT_TRUE(plan->weights.empty());  // nothing but the panels is left of them
  std::int64_t bytes = 0;
  for (const PreparedBuffer& b : plan->prepared) bytes += static_cast<std::int64_t>(b.size());
  return bytes;
}

// Weights, k x n, and the rows of the other operand.
constexpr std::int64_t m = 7, k = 64, n = 96;

TEST(Panels, FloatsOfSixteenBitsTakeTwoBytes) {
  for (DType t : {DType::bf16, DType::f16}) {
    Function f;
    Value x = f.add_param({t, {m, k}}, "x"), w = constant(f.graph(), random_array(t, {k, n}));
    f.add_result(ops::matmul(x, w));
    const std::int64_t bytes = prepared_bytes(f, random_array(t, {m, k}));
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
    const std::int64_t bytes = prepared_bytes(f, random_array(DType::u8, {m, k}));
    EXPECT_GE(bytes, k * n);
    EXPECT_LT(bytes, 3 * k * n / 2);
  }
}

}  // namespace
}  // namespace hone
