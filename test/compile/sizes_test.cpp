// Sizes that satisfy conditions.
#include "verify/sizes.h"

#include <gtest/gtest.h>

#include "ops/common.h"

namespace hone {
namespace {

using Kind = Guard::Kind;

Dim open_size(const char* name, std::int64_t most = 1 << 20) { return Dim::symbol(name, 1, most); }

void expect_solved(const std::vector<Type>& types, const std::vector<Guard>& guards) {
  const std::optional<Sizing> sizes = sample_sizes(types, guards);
  ASSERT_TRUE(sizes);
  EXPECT_TRUE(guards_hold(guards, *sizes));
}

// The conditions of a plan with variants for ranges of its sizes.
TEST(SampleSizes, SatisfyABoundOnAProduct) {
  const Dim b = open_size("b"), q = open_size("q"), k = open_size("k");
  const std::vector<Type> types = {f32({b, q, 128}), f32({b, 128, k})};
  for (const std::int64_t least : {11'585, 1'000'000, 50'000'000}) {
    expect_solved(types, {{Kind::greater, b * q * k, least}});
    expect_solved(types, {{Kind::greater, b * q * k, least}, {Kind::equal, b, 1}});
    expect_solved(types, {{Kind::greater, b * q * k, least},
                          {Kind::less_equal, b * q * k, 2 * least},
                          {Kind::not_equal, q, k}});
  }
}

TEST(SampleSizes, SatisfyEqualities) {
  const Dim n = open_size("n"), m = open_size("m"), k = open_size("k");
  const std::vector<Type> types = {f32({n, m}), f32({k})};
  expect_solved(types, {{Kind::equal, n * m, 6 * k}, {Kind::greater, k, 1000}});
  expect_solved(types, {{Kind::equal, n + m, 20'000}, {Kind::greater, m, 9'000}});
  expect_solved(types, {{Kind::equal, floor_div(n + 3, 7), 5'000}});
  expect_solved(types, {{Kind::equal, n, 2 * m + 1}, {Kind::greater, m, 5'000}});
  expect_solved(types, {{Kind::equal, mod(n, 16), 5}, {Kind::greater, n * k, 30'000}});
}

TEST(SampleSizes, AreSmallIfThatIsEnough) {
  const Dim n = open_size("n"), m = open_size("m");
  EXPECT_EQ(sample_sizes({f32({n, m})}, {}), (Sizing{{"n", 1}, {"m", 1}}));
  EXPECT_EQ(sample_sizes({f32({n, m})}, {{Kind::greater, n, 5}}), (Sizing{{"n", 6}, {"m", 1}}));
  const std::optional<Sizing> large = sample_sizes({f32({n, m})}, {{Kind::greater, n * m, 9'999}});
  ASSERT_TRUE(large);
  EXPECT_LT(large->at("n") * large->at("m"), 20'000);
}

TEST(SampleSizes, AreNotFoundForContradictions) {
  const Dim n = open_size("n", 100), m = open_size("m", 100);
  EXPECT_EQ(sample_sizes({f32({n})}, {{Kind::greater, n, 5}, {Kind::less_equal, n, 5}}),
            std::nullopt);
  EXPECT_EQ(sample_sizes({f32({n, m})}, {{Kind::greater, n * m, 10'000}}), std::nullopt);
}

// Arrays of such sizes could not be made.
TEST(SampleSizes, AreNotLargerThanMemory) {
  const Dim n = open_size("n"), m = open_size("m");
  EXPECT_EQ(sample_sizes({f32({n, m})}, {{Kind::greater, n * m, std::int64_t{1} << 36}}),
            std::nullopt);
}

TEST(Guards, OverflowIsNoError) {
  const Dim n = Dim::symbol("n", 1, std::int64_t{1} << 40);
  EXPECT_FALSE(guards_hold({{Kind::greater, n * n, 5}}, {{"n", std::int64_t{1} << 40}}));
}

}  // namespace
}  // namespace hone
