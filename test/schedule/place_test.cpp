#include "schedule/place.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace hone {
namespace {

std::int64_t at(const Dim& d, std::int64_t n) {
  return d.eval([&](std::string_view) { return n; });
}

void expect_apart(const std::vector<Lifetime>& all, const Placement& p, std::int64_t n) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(at(p.offsets[i], n) % 64, 0);
    EXPECT_LE(at(p.offsets[i] + all[i].bytes, n), at(p.bytes, n));
    for (std::size_t k = 0; k < i; ++k) {
      if (all[i].last < all[k].first || all[k].last < all[i].first) continue;
      std::int64_t a = at(p.offsets[i], n), b = at(p.offsets[k], n);
      EXPECT_TRUE(a + at(all[i].bytes, n) <= b || b + at(all[k].bytes, n) <= a)
          << i << " and " << k << " overlap for n = " << n;
    }
  }
}

std::vector<Lifetime> random_lifetimes(std::size_t count, std::mt19937& rng, const Dims& units) {
  std::vector<Lifetime> all;
  for (std::size_t i = 0; i < count; ++i) {
    auto first = static_cast<std::int64_t>(rng() % count);
    auto length = static_cast<std::int64_t>(rng() % 4 == 0 ? rng() % count : rng() % 4);
    Dim bytes = Dim(static_cast<std::int64_t>(1 + rng() % 4000)) * units[rng() % units.size()];
    all.push_back({bytes, first, first + length});
  }
  return all;
}

TEST(Place, NothingOverlapsAndTheArenaIsNearTheBound) {
  std::mt19937 rng(5);
  for (std::size_t count : {1, 2, 10, 60, 300}) {
    std::vector<Lifetime> all = random_lifetimes(count, rng, {Dim(1)});
    Placement p = place(all);
    expect_apart(all, p, 1);
    EXPECT_LE(static_cast<double>(p.bytes.number()),
              1.10 * static_cast<double>(p.lower_bound.number()))
        << count;
    EXPECT_GE(p.bytes.number(), p.lower_bound.number());
  }
}

TEST(Place, SymbolicSizesNeverOverlap) {
  std::mt19937 rng(6);
  Dim n = Dim::symbol("n", 1, 100000);
  for (std::size_t count : {2, 10, 60}) {
    std::vector<Lifetime> all =
        random_lifetimes(count, rng,
                         {n, n * Dim(64), Dim(1), n + Dim(3), n * n, floor_div(n, 2), n * n - n,
                          n * Dim(640) - Dim(512)});
    Placement p = place(all);
    for (std::int64_t k : {1, 2, 3, 17, 1000, 100000}) expect_apart(all, p, k);
  }
}

TEST(Place, OneUnitIsAsGoodAsNumbers) {
  std::mt19937 rng(7);
  Dim n = Dim::symbol("n", 1, 64);
  std::vector<Lifetime> all = random_lifetimes(80, rng, {n * Dim(64)});
  Placement p = place(all);
  for (std::int64_t k : {1, 7, 64})
    EXPECT_LE(static_cast<double>(at(p.bytes, k)),
              1.10 * static_cast<double>(at(p.lower_bound, k)));
}

TEST(Place, ManyLifetimesAreFast) {
  std::vector<Lifetime> all;
  for (std::int64_t i = 0; i < 100'000; ++i) all.push_back({Dim(4096), i, i + 1 + i % 3});
  Placement p = place(all);
  EXPECT_LE(p.bytes.number(), p.lower_bound.number() * 11 / 10);
}

// All combinations of sizes are tried only for a few symbols: here there would be 3^14.
TEST(Place, ManySymbolsAreFast) {
  std::mt19937 rng(8);
  Dims units;
  for (int i = 0; i < 14; ++i) units.push_back(Dim::symbol(cat("n", i), 1, 10000));
  std::vector<Lifetime> all = random_lifetimes(40, rng, units);
  Placement p = place(all);
  for (std::int64_t k : {1, 16, 1000}) expect_apart(all, p, k);
}

}  // namespace
}  // namespace hone
