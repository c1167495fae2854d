#include "type/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace hone {
namespace {

TEST(DType, EveryF16SurvivesTheRoundTrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    auto h = static_cast<std::uint16_t>(bits);
    float f = f16_to_f32(h);
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(f))));
    else
      ASSERT_EQ(f32_to_f16(f), h);
    float b = bf16_to_f32(h);
    if (!std::isnan(b)) {
      ASSERT_EQ(f32_to_bf16(b), h);
    }
  }
}

TEST(DType, RoundsToNearestEven) {
  EXPECT_EQ(f64_to_f16(2049), f64_to_f16(2048));
  EXPECT_EQ(f64_to_f16(2051), f64_to_f16(2052));
  EXPECT_EQ(f64_to_f16(65520), 0x7c00);
  EXPECT_EQ(f64_to_f16(65519), 0x7bff);
  EXPECT_EQ(f64_to_f16(std::ldexp(1, -25)), 0);
  EXPECT_EQ(f64_to_f16(std::ldexp(1.001, -25)), 1);
}

TEST(Array, ConvertsAsTheRulesSay) {
  Array a = Array::zeros(DType::i32, {3});
  a.set_real(0, 3e9);
  a.set_real(1, std::numeric_limits<double>::quiet_NaN());
  a.set_real(2, -1.7);
  EXPECT_EQ(a.integer(0), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(a.integer(1), 0);
  EXPECT_EQ(a.integer(2), -1);
  Array u = Array::zeros(DType::u8, {1});
  u.set_integer(0, 300);
  EXPECT_EQ(u.integer(0), 44);
}

TEST(Array, RefusesBytesThatDoNotFit) {
  EXPECT_THROW(Array(DType::f32, {2}, Storage::from(std::vector<std::byte>(7))), UserError);
  EXPECT_THROW(Array(DType::f32, {-1}, Storage()), UserError);
  // All empty storages are equal, also if only one has a null address.
  EXPECT_EQ(Storage(), Storage::from(std::vector<std::byte>(0)));
  EXPECT_THROW(Array::zeros(DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), UserError);
}

}  // namespace
}  // namespace hone
