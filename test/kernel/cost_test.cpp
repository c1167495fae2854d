#include "kernel/nest/cost.h"

#include <gtest/gtest.h>

#include "kernel/forms/forms.h"
#include "machines.h"
#include "ops/common.h"

namespace hone {
namespace {

const TargetInfo target = with_vectors_of_512_bits();

GroupSpec product(std::int64_t m, std::int64_t n, std::int64_t k, bool has_weights) {
  GroupSpec spec;
  Function& f = spec.function;
  Value x = f.add_param(f32({m, k}), "x"), w = f.add_param(f32({k, n}), "w");
  f.add_result(ops::matmul(x, w));
  for (const Type& t : f.param_types()) spec.param_strides.push_back(dense_strides(t.shape));
  spec.result_strides = {dense_strides(f.result(0).shape())};
  spec.param_is_weight = {false, has_weights};
  return spec;
}

TEST(Cost, LargeContractionIsNearThePeak) {
  std::vector<Candidate> list = generated_candidates(product(512, 512, 512, true), target);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "generated");
  const double at_peak = 2.0 * 512 * 512 * 512 / target.fma_gflops / 1e6;
  EXPECT_GT(predicted_ms(list[0], target), 0.97 * at_peak);  // a few chunks are extrapolated to all
  EXPECT_LT(predicted_ms(list[0], target), 1.2 * at_peak);
  EXPECT_GT(predicted_ms(list[1], target), 2 * at_peak);
}

TEST(Cost, MatrixTimesVectorIsBoundByMemory) {
  Candidate c = generated_candidates(product(1, 4096, 4096, true), target)[0];
  const double megabytes = 4096.0 * 4096 * 4 / 1e6;
  EXPECT_GT(predicted_ms(c, target), megabytes / target.memory_gbytes);
  EXPECT_LT(predicted_ms(c, target), 1.1 * megabytes / target.memory_gbytes);
}

TEST(Cost, GrowsWithSize) {
  double before = 0;
  for (std::int64_t n : {16, 64, 256, 1024}) {
    double now = predicted_ms(generated_candidates(product(n, n, n, true), target)[0], target);
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(Cost, PackingCountsUnlessItIsPrepared) {
  auto first = [](bool has_weights) {
    return generated_candidates(product(300, 300, 300, has_weights), target)[0];
  };
  Candidate packs = first(false), prepared = first(true);
  ASSERT_EQ(packs.steps.size(), 2u);
  ASSERT_EQ(prepared.steps.size(), 2u);
  EXPECT_GT(predicted_ms(packs, target), predicted_ms(prepared, target));
}

}  // namespace
}  // namespace hone
