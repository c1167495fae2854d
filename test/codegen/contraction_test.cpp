// Contractions of all tunings, at sizes around the tile.
#include "kernel/tiles/contraction.h"

#include <gtest/gtest.h>

#include <set>

#include "anchored_cases.h"

namespace hone::test {

namespace {

using ReadA = ContractionTuning::ReadA;

// y = 2 * x w + 1, so that an epilogue that is skipped or runs twice shows.
struct Case {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool symbolic_m = false, batched_b = false, copies = false, transposed_a = false;
  bool packed = true;
  std::int64_t k_part = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.m << "x" << c.n << "x" << c.k << (c.symbolic_m ? " m?" : "")
             << (c.copies ? " copy" : "") << (c.transposed_a ? " transposed" : "")
             << (c.packed ? "" : " unpacked") << " k_part " << c.k_part;
}

Function function_of(const Case& c) {
  Function f;
  const Dim m = c.symbolic_m ? Dim::symbol("m", 0, 1000) : Dim(c.m);
  Dims x = c.transposed_a ? Dims{c.k, m} : Dims{m, c.k}, w = {c.k, c.n};
  if (c.batch > 1) x.insert(x.begin(), c.batch);
  if (c.batched_b) w.insert(w.begin(), c.batch);
  Value a = f.add_param(Type(DType::f32, Shape(x)), "x");
  const Value b = f.add_param(Type(DType::f32, Shape(w)), "w");
  if (c.transposed_a) a = transpose_matrix(a);
  f.add_result(ops::matmul(a, b) * 2.0 + 1.0);
  return f;
}

Tuning tuning_of(const Case& c) {
  Tuning t = {{"pack_b", c.packed}};
  if (c.k_part > 0) t.push_back({"k_part", c.k_part});
  const ReadA copy = c.transposed_a ? ReadA::copy_along_m : ReadA::copy_along_k;
  t.push_back({"read_a", static_cast<std::int64_t>(c.copies ? copy : ReadA::in_place)});
  return t;
}

double expected(const Case& c, const Array& x, const Array& w, std::int64_t i, std::int64_t m,
                std::int64_t n) {
  double sum = 0;
  for (std::int64_t k = 0; k < c.k; ++k) {
    const std::int64_t at = c.transposed_a ? k * c.m + m : m * c.k + k;
    sum += x.real(i * c.m * c.k + at) * w.real(((c.batched_b ? i : 0) * c.k + k) * c.n + n);
  }
  return 2 * sum + 1;
}

void check(const Case& c, const std::string& isa, Guard guard) {
  SCOPED_TRACE(::testing::Message() << c << " on " << isa);
  const Function f = function_of(c);
  const GroupSpec spec = spec_of(f);
  const std::vector<Array> inputs = random_inputs(f, {{"m", c.m}});
  const auto candidate = contraction_candidate(spec, cpu::target_info(isa), tuning_of(c));
  ASSERT_TRUE(candidate);
  ASSERT_EQ(candidate->steps.size(), c.packed ? 2u : 1u);
  const CompiledCandidate compiled(*candidate, isa);
  RunOptions options{.target = isa, .guard = guard};
  const Array got = compiled.run(spec, inputs, options)[0];
  for (std::int64_t i = 0; i < c.batch; ++i)
    for (std::int64_t m = 0; m < c.m; ++m)
      for (std::int64_t n = 0; n < c.n; ++n)
        ASSERT_NEAR(got.real((i * c.m + m) * c.n + n), expected(c, inputs[0], inputs[1], i, m, n),
                    1e-6 * static_cast<double>(c.k + 4))
            << i << ", " << m << ", " << n;
  // Chunks one by one, last first: the same bits.
  options.chunks_per_call = 1;
  options.backwards = true;
  const Array parts = compiled.run(spec, inputs, options)[0];
  ASSERT_TRUE(std::ranges::equal(got.bytes(), parts.bytes()));
}

void check(const Case& c) {
  for (const std::string& isa : llvm::targets())
    for (Guard guard : {Guard::before, Guard::behind}) check(c, isa, guard);
}

constexpr std::int64_t sizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100};

// Every pair of sizes is tested, not every triple.
TEST(Contraction, SizesAroundTheTile) {
  for (std::size_t i = 0; i < 11; ++i)
    for (std::size_t j = 0; j < 11; ++j) {
      Case c{.m = sizes[i], .n = sizes[j], .k = sizes[(3 * i + 5 * j) % 11]};
      if (c.n == 1) continue;  // the operands are swapped
      const std::string isa = llvm::targets()[(i + j) % llvm::targets().size()];
      c.copies = (i + j) % 4 < 2;
      check(c, isa, Guard::behind);
    }
}

TEST(Contraction, EmptySumIsZero) {
  check({.m = 3, .n = 5, .k = 0});
  check({.m = 3, .n = 5, .k = 0, .copies = true});
}

TEST(Contraction, RowsKnownAtRunTime) {
  for (std::int64_t m : {0, 1, 3, 4, 5, 17, 29}) {
    check({.m = m, .n = 40, .k = 33, .symbolic_m = true});
    check({.m = m, .n = 7, .k = 20, .symbolic_m = true, .copies = true});
  }
}

TEST(Contraction, Batches) {
  check({.batch = 3, .m = 17, .n = 33, .k = 20});
  check({.batch = 3, .m = 17, .n = 70, .k = 20, .batched_b = true});
  check({.batch = 3, .m = 17, .n = 70, .k = 20, .batched_b = true, .copies = true});
}

TEST(Contraction, TransposedA) {
  check({.m = 33, .n = 40, .k = 19, .transposed_a = true});
  check({.m = 33, .n = 40, .k = 19, .copies = true, .transposed_a = true});
  check({.m = 5, .n = 100, .k = 200, .copies = true, .transposed_a = true, .k_part = 64});
}

TEST(Contraction, RightOperandReadInPlace) {
  for (std::int64_t n : {2, 16, 40, 64, 130}) {
    check({.m = 3, .n = n, .k = 19, .packed = false});
    check({.batch = 2, .m = 20, .n = n, .k = 19, .batched_b = true, .packed = false});
  }
}

TEST(Contraction, SumsInParts) {
  check({.m = 30, .n = 70, .k = 200, .k_part = 64});
  check({.m = 30, .n = 70, .k = 200, .copies = true, .k_part = 64});
  check({.m = 30, .n = 70, .k = 200, .symbolic_m = true, .copies = true, .k_part = 64});
  check({.m = 30, .n = 70, .k = 200, .packed = false, .k_part = 64});
}

TEST(Contraction, ChunksCoverLargeShapes) {
  check({.m = 260, .n = 600, .k = 70});
  check({.m = 100, .n = 300, .k = 1100, .copies = true});
}

// Widening bf16 panels when they are read or earlier gives the same sums.
TEST(Contraction, PanelsMayBeWidened) {
  Function f;
  const Value x = f.add_param({DType::bf16, {21, 300}}, "x"),
              w = f.add_param({DType::bf16, {300, 70}}, "w");
  f.add_result(ops::matmul(x, w));
  GroupSpec spec = spec_of(f);
  spec.param_is_weight[1] = true;
  const std::vector<Array> inputs = random_inputs(f, {});
  for (const std::string& isa : llvm::targets()) {
    const TargetInfo target = cpu::target_info(isa);
    std::vector<Array> results;
    for (const Tuning& t : contraction_space(spec, target)) {
      const auto candidate = contraction_candidate(spec, target, t);
      ASSERT_TRUE(candidate);
      const bool is_wide = value_or(t, "widen_b", 0) != 0;
      EXPECT_EQ(candidate->temporaries.at(0).type.dtype, is_wide ? DType::f32 : DType::bf16);
      if (!results.empty() && !is_wide) continue;
      results.push_back(CompiledCandidate(*candidate, isa).run(spec, inputs, {.target = isa})[0]);
    }
    ASSERT_EQ(results.size(), 2u);
    EXPECT_TRUE(std::ranges::equal(results[0].bytes(), results[1].bytes()));
  }
}

TEST(Contraction, EveryTuningOfTheSpace) {
  const Case c{.m = 45, .n = 70, .k = 300};
  const Function f = function_of(c);
  const GroupSpec spec = spec_of(f);
  const std::vector<Array> inputs = random_inputs(f, {});
  const std::string isa = llvm::targets().back();
  const TargetInfo target = cpu::target_info(isa);
  const std::vector<Tuning> space = contraction_space(spec, target);
  EXPECT_GE(space.size(), 5u);
  std::set<std::string> kernels;
  for (const Tuning& t : space) {
    const auto candidate = contraction_candidate(spec, target, t);
    ASSERT_TRUE(candidate);
    kernels.insert(print(std::get<Kernel>(candidate->steps.back().what)));
    const Array got = CompiledCandidate(*candidate, isa).run(spec, inputs, {.target = isa})[0];
    for (std::int64_t i = 0; i < got.count(); ++i)
      ASSERT_NEAR(got.real(i), expected(c, inputs[0], inputs[1], 0, i / c.n, i % c.n), 3e-4);
  }
  EXPECT_EQ(kernels.size(), space.size());
  const auto chosen = contraction_candidate(spec, target);
  const auto first = contraction_candidate(spec, target, space[0]);
  EXPECT_EQ(print(std::get<Kernel>(chosen->steps.back().what)),
            print(std::get<Kernel>(first->steps.back().what)));
}

}  // namespace

}  // namespace hone::test
