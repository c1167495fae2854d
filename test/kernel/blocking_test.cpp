// Into how much work for threads a kernel is cut.
#include <gtest/gtest.h>

#include "kernel/convolution.h"
#include "ops/common.h"

namespace hone {
namespace {

// Over n images of size x 1 pixels; as many output channels as input channels.
Convolution convolution(Dim n, std::int64_t size, std::int64_t channels, std::int64_t window) {
  GroupSpec spec;
  Function& f = spec.function;
  Value x = f.add_param(Type(DType::f32, Shape{n, size, channels}), "x");
  Value w = f.add_param(f32({window, channels, channels}), "w");
  f.add_result(ops::conv(Values{x, w}, {{"strides", Dims{1}},
                                        {"dilations", Dims{1}},
                                        {"groups", 1},
                                        {"pads_low", Dims{0}},
                                        {"pads_high", Dims{0}},
                                        {"channels_last", 1}}));
  for (const Type& t : f.param_types()) spec.param_strides.push_back(dense_strides(t.shape));
  spec.result_strides = {dense_strides(f.result(0).shape())};
  spec.param_is_weight = {false, true};
  const Candidate c = *convolution_candidate(spec, cpu_target_info("x86-64-v4"));
  return std::get<Convolution>(std::get<Kernel>(c.steps.back().what).body);
}

std::int64_t chunks(const Convolution& c) { return chunks_of(c).low(); }

TEST(Blocking, OneImageOfAnyBatchIsWorkForThreads) {
  EXPECT_GE(chunks(convolution(Dim::symbol("n", 1, 4096), 512, 256, 5)), 8);
  EXPECT_GE(chunks(convolution(1, 512, 256, 5)), 8);
  EXPECT_EQ(chunks(convolution(4096, 32, 8, 3)), 4096);
}

TEST(Blocking, WhatIsLargerIsReadInFewerParts) {
  const Convolution heavy = convolution(1, 64, 512, 5), light = convolution(1, 16384, 32, 3);
  EXPECT_EQ(heavy.chunk_panels, 1);
  EXPECT_GE(heavy.chunk[0], 30);
  EXPECT_EQ(light.chunk_panels, panel_count(light));
  EXPECT_LT(light.chunk[0], 2000);
}

}  // namespace
}  // namespace hone
