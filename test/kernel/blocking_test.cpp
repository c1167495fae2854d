// How much work the chunks of a kernel get.
#include <gtest/gtest.h>

#include "kernel/tiles/contraction.h"
#include "kernel/tiles/convolution.h"
#include "machines.h"
#include "ops/common.h"

namespace hone {
namespace {

const TargetInfo avx512 = with_vectors_of_512_bits();

GroupSpec weights_of(Function f) {
  GroupSpec spec;
  for (const Type& t : f.param_types()) spec.param_strides.push_back(dense_strides(t.shape));
  spec.result_strides = {dense_strides(f.result(0).shape())};
  spec.param_is_weight = {false, true};
  spec.function = std::move(f);
  return spec;
}

// Over n images of size x 1 pixels; as many output channels as input channels.
GroupSpec convolution(Dim n, std::int64_t size, std::int64_t channels, std::int64_t window) {
  Function f;
  Value x = f.add_param(Type(DType::f32, Shape{n, size, channels}), "x");
  Value w = f.add_param(f32({window, channels, channels}), "w");
  f.add_result(ops::conv(Values{x, w}, {{"strides", Dims{1}},
                                        {"dilations", Dims{1}},
                                        {"groups", 1},
                                        {"pads_low", Dims{0}},
                                        {"pads_high", Dims{0}},
                                        {"channels_last", 1}}));
  return weights_of(std::move(f));
}

std::int64_t chunks(const GroupSpec& spec) {
  const Candidate c = *convolution_candidate(spec, avx512);
  return std::get<Kernel>(c.steps.back().what).chunks.low();
}

TEST(Blocking, OneImageOfAnyBatchIsWorkForThreads) {
  EXPECT_GE(chunks(convolution(Dim::symbol("n", 1, 4096), 512, 256, 5)), 8);
  EXPECT_GE(chunks(convolution(1, 512, 256, 5)), 8);
  EXPECT_EQ(chunks(convolution(4096, 32, 8, 3)), 4096);
}

TEST(Blocking, WhatIsLargerIsReadInFewerParts) {
  const Tuning heavy = convolution_space(convolution(1, 64, 512, 5), avx512).at(0),
               light = convolution_space(convolution(1, 16384, 32, 3), avx512).at(0);
  EXPECT_EQ(value_or(heavy, "chunk_panels", 0), 1);
  EXPECT_GE(value_or(heavy, "chunk0", 0), 30);
  // All panels: 32 channels.
  EXPECT_GE(value_or(light, "chunk_panels", 0) * value_or(light, "columns", 0), 32);
  EXPECT_LT(value_or(light, "chunk0", 0), 2000);
}

// Tuning values that are not possible are replaced by the default.
TEST(Tunings, AreTakenAsFarAsTheGroupAllowsThem) {
  Function f;
  Value x = f.add_param(f32({100, 200}), "x"), w = f.add_param(f32({200, 300}), "w");
  f.add_result(ops::matmul(x, w));
  const GroupSpec spec = weights_of(std::move(f));
  auto kernel = [&](const Tuning& t) {
    return std::get<Kernel>(contraction_candidate(spec, avx512, t)->steps.back().what);
  };
  const Kernel k = kernel({{"rows", 5}, {"columns", 17}, {"chunk_rows", 11}, {"k_part", 64}});
  ASSERT_EQ(k.tiles.size(), 1u);
  EXPECT_EQ(k.tiles[0].rows, 5);
  EXPECT_EQ(k.tiles[0].columns, 32);                             // whole vectors
  EXPECT_EQ(k.chunks.number() % 7, 0);                           // 15 rows each
  EXPECT_EQ(print(kernel({{"pack_b", 0}})), print(kernel({})));  // weights are packed
  EXPECT_EQ(print(kernel({{"unknown", 3}})), print(kernel({})));
}

}  // namespace
}  // namespace hone
