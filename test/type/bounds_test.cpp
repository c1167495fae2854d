// Bounds of expressions over bounded sizes, compared with all values of the symbols.
#include "type/bounds.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

class Bounds : public ::testing::Test {
 protected:
  static std::int64_t value(const Dim& d, std::int64_t n, std::int64_t s, std::int64_t t) {
    return d.eval([&](std::string_view name) { return name == "n" ? n : name == "s" ? s : t; });
  }

  // For s in 0..2n and t in 0..s.
  void expect_bounds(const Dim& d) {
    const Dim high = largest(d, bounds), low = smallest(d, bounds);
    for (const Dim& b : {high, low}) {
      EXPECT_FALSE(holds_symbol(b, "s")) << d << " gives " << b;
      EXPECT_FALSE(holds_symbol(b, "t")) << d << " gives " << b;
    }
    for (std::int64_t m = 1; m <= 5; ++m)
      for (std::int64_t a = 0; a <= 2 * m; ++a)
        for (std::int64_t b = 0; b <= a; ++b) {
          EXPECT_GE(value(high, m, 0, 0), value(d, m, a, b))
              << d << " at " << m << " " << a << " " << b;
          EXPECT_LE(value(low, m, 0, 0), value(d, m, a, b))
              << d << " at " << m << " " << a << " " << b;
        }
  }

  Dim n = Dim::symbol("n", 1, 5), s = Dim::symbol("s", 0, 10), t = Dim::symbol("t", 0, 10);
  std::vector<DimBound> bounds = {{s, n* Dim(2)}, {t, s}};
};

TEST_F(Bounds, HoldForAllValues) {
  expect_bounds(s);
  expect_bounds(s * t + n);
  expect_bounds(n * Dim(2) - s);
  expect_bounds((n * Dim(2) - s) * (s + Dim(1)));
  expect_bounds(floor_div(s + Dim(3), 4) * Dim(64));
  expect_bounds(floor_div(n * n, t + Dim(1)));
  expect_bounds(mod(s, 3));
  expect_bounds(mod(s - Dim(20), 3));
  expect_bounds(min(s, n) + max(t, Dim(3) - s));
  expect_bounds(equal(s, t));
}

TEST_F(Bounds, AreTightForSumsOfProducts) {
  EXPECT_EQ(largest(s * Dim(4) + t, bounds), n * Dim(10));
  EXPECT_EQ(smallest(n - s, bounds), n - n * Dim(2));
  EXPECT_EQ(largest(f32({s, 3}), bounds), f32({n * Dim(2), 3}));
  EXPECT_EQ(largest(n, bounds), n);
}

}  // namespace
}  // namespace hone
