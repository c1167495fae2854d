#include "type/dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <sstream>
#include <thread>

#include "base/checked.h"
#include "base/error.h"

namespace hone {
namespace {

std::string text(const Dim& d) {
  std::ostringstream out;
  out << d;
  return out.str();
}

// A random expression together with its value under a fixed assignment of n, m, k.
struct Sampled {
  Dim dim;
  std::int64_t value;
};

class Sampler {
 public:
  explicit Sampler(unsigned seed) : rng_(seed) {
    for (const char* name : {"n", "m", "k"}) {
      std::int64_t high = pick(1, 40);
      symbols_.push_back({Dim::symbol(name, 1, high), pick(1, high)});
    }
  }
  std::int64_t value(std::string_view name) const {
    for (const Sampled& s : symbols_)
      if (s.dim.name() == name) return s.value;
    throw InternalError("no symbol ", name);
  }
  Sampled expression(int depth) {
    if (depth == 0) {
      std::int64_t n = pick(-9, 9);
      return pick(0, 2) ? symbols_[static_cast<std::size_t>(pick(0, 2))] : Sampled{n, n};
    }
    Sampled a = expression(depth - 1), b = expression(depth - 1);
    std::int64_t by = pick(1, 7);
    switch (pick(0, 7)) {
      case 0:
        return {a.dim + b.dim, a.value + b.value};
      case 1:
        return {a.dim - b.dim, a.value - b.value};
      case 2:
        return {a.dim * b.dim, a.value * b.value};
      case 3:
        return {floor_div(a.dim, by), floor_div(a.value, by)};
      case 4:
        return {mod(a.dim, by), floor_mod(a.value, by)};
      case 5:
        return {min(a.dim, b.dim), std::min(a.value, b.value)};
      case 6:
        return {max(a.dim, b.dim), std::max(a.value, b.value)};
      default:
        return {equal(a.dim, b.dim), a.value == b.value};
    }
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng_);
  }
  std::mt19937 rng_;
  std::vector<Sampled> symbols_;
};

TEST(Dim, CanonicalFormKeepsTheValueBoundsAndText) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Sampler sampler(seed);
    Sampled s = sampler.expression(3);
    auto value = [&](std::string_view name) { return sampler.value(name); };
    ASSERT_EQ(s.dim.eval(value), s.value) << text(s.dim) << " seed " << seed;
    ASSERT_LE(s.dim.low(), s.value) << text(s.dim) << " seed " << seed;
    ASSERT_GE(s.dim.high(), s.value) << text(s.dim) << " seed " << seed;
    Dim parsed = parse_dim(text(s.dim), [&](std::string_view name) {
      for (const Dim& d : s.dim.symbols())
        if (d.name() == name) return d;
      throw InternalError("symbol ", name);
    });
    ASSERT_EQ(parsed, s.dim) << text(s.dim);
  }
}

TEST(Dim, EqualPolynomialsAreEqual) {
  Dim n = Dim::symbol("n", 1, 100), m = Dim::symbol("m", 1, 100);
  EXPECT_EQ((n + m) * (n + m), n * n + Dim(2) * n * m + m * m);
  EXPECT_EQ(floor_div(n * m * Dim(6), m * Dim(2)), n * Dim(3));
  EXPECT_EQ(floor_div(n * Dim(4) + Dim(3), 4), n);
  EXPECT_EQ(mod(n * Dim(8), 4), Dim(0));
  EXPECT_EQ(mod(Dim::symbol("nothing", 0, 0) * Dim(8), 8), Dim(0));
  EXPECT_EQ(prove_equal(n, n + Dim(1)), false);
  EXPECT_EQ(prove_equal(n, m), std::nullopt);
  EXPECT_EQ(min(n, n + Dim(1)), n);
  EXPECT_EQ(max(n, Dim(1)), n);
}

TEST(Dim, ExpressionsLiveAsLongAsOneHoldsThem) {
  Dim n = Dim::symbol("n", 0, 10);
  Dim sum = n + 1, copy = sum;
  sum = sum;
  EXPECT_EQ(copy, sum);
  Dim moved = std::move(sum);
  sum = 7;
  EXPECT_EQ(sum, Dim(7));
  n = 3;
  copy = moved;
  moved = copy * 2;
  EXPECT_EQ(text(copy), "(1+n)");
  EXPECT_EQ(moved.high(), 22);
}

TEST(Dim, ExpressionsAreSharedBetweenThreads) {
  const Dim sum = Dim::symbol("n", 0, 10) * 2 + 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&sum] {
      Dims copies;
      for (int i = 0; i < 1000; ++i)
        copies.push_back(i % 3 ? sum : copies.empty() ? sum : copies[0]);
      copies.clear();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum.high(), 21);
}

TEST(Dim, RefusesWhatHasNoMeaning) {
  Dim n = Dim::symbol("n", 0, 100);
  EXPECT_THROW(floor_div(Dim(4), n), UserError);
  EXPECT_THROW(Dim::symbol("n", 3, 2), UserError);
  EXPECT_THROW(Dim::symbol("batch size", 1, 2), UserError);
  EXPECT_THROW(parse_dim("(1+", [&](std::string_view) { return n; }), UserError);
  EXPECT_THROW(Dim(std::int64_t{1} << 62) * Dim(4), UserError);
  EXPECT_THROW(Dim(0) - Dim(std::numeric_limits<std::int64_t>::min()), UserError);
}

TEST(Dim, AQuotientIsExactWhereAProductDividesEveryTerm) {
  const Dim m = Dim::symbol("m", 0, 9), n = Dim::symbol("n", 0, 9);
  EXPECT_EQ(exact_quotient(m * n * 6 + m * 4, m * 2), n * 3 + 2);
  EXPECT_EQ(exact_quotient(0, m), Dim(0));
  EXPECT_EQ(exact_quotient(m * n, m * m), std::nullopt);
  EXPECT_EQ(exact_quotient(m * 3, m * 2), std::nullopt);
  EXPECT_EQ(exact_quotient(m * n, m + 1), std::nullopt);
  EXPECT_EQ(exact_quotient(m, 0), std::nullopt);
}

TEST(Dim, SymbolsOfAKernelAreKnownByKindAndNumber) {
  const Dim size = Dim::symbol("loop.0", 0, 9), loop = Dim::symbol(SymbolKind::loop, 0, 0, 9),
            reg = Dim::symbol(SymbolKind::reg, 0, 0, 9);
  EXPECT_NE(size, loop);
  EXPECT_NE(loop, reg);
  EXPECT_NE(loop, Dim::symbol(SymbolKind::loop, 1, 0, 9));
  EXPECT_EQ(loop, Dim::symbol(SymbolKind::loop, 0, 0, 3));
  EXPECT_EQ(loop.number_of(SymbolKind::loop), 0);
  EXPECT_EQ(loop.number_of(SymbolKind::reg), std::nullopt);
  EXPECT_EQ(size.number_of(SymbolKind::loop), std::nullopt);
  const Dim ten = Dim::symbol(SymbolKind::loop, 10, 0, 9),
            two = Dim::symbol(SymbolKind::loop, 2, 0, 9);
  EXPECT_EQ((reg + ten * two + size + loop * two).symbols(), (Dims{size, loop, two, ten, reg}));
  EXPECT_EQ(text(loop + size), "(loop.0+loop:0)");
  for (const Dim& d : {loop, reg}) EXPECT_THROW(Dim::symbol(d.name(), 0, 9), UserError);
}

}  // namespace
}  // namespace hone
