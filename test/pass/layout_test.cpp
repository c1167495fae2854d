// Channels-last form of functions with convolutions.
#include "pass/layout.h"

#include <gtest/gtest.h>

#include "ops/common.h"
#include "pass/simplify.h"

namespace hone {
namespace {

int count_of(const Function& f, const Op& op) {
  int n = 0;
  for (NodeId id : live_nodes(f)) n += &f.graph().op(id) == &op;
  return n;
}

// As in the derivative of pooling: spatial axes that are divided, repeated and joined again lie
// between two convolutions without a transpose.
TEST(Layout, ReshapesOfSpatialAxesStayChannelsLast) {
  Function f;
  Value x = f.add_param(f32({2, 3, 4, 5}), "x"), w = f.add_param(f32({3, 3, 1, 1}), "w");
  const Dims one = {1, 1}, none = {0, 0};
  const auto conv = [&](Value v) {
    return ops::conv(Values{v, w}, {{"strides", one},
                                    {"dilations", one},
                                    {"pads_low", none},
                                    {"pads_high", none},
                                    {"groups", std::int64_t{1}},
                                    {"channels_last", std::int64_t{0}}});
  };
  Value y = reshape_to(conv(x), {2, 3, 4, 1, 5});
  y = reshape_to(broadcast_to(y, Shape{2, 3, 4, 2, 5}), {2, 3, 8, 5});
  f.add_result(conv(y));
  const Function g = simplify(layout(f));
  // Of x, of the weights, and of the result.
  EXPECT_EQ(count_of(g, ops::transpose), 3);
  EXPECT_EQ(g.result(0).type(), f.result(0).type());
}

// A reshape that joins channels is made in the old order.
TEST(Layout, ReshapesOfChannelsKeepTheirOrder) {
  Function f;
  Value x = f.add_param(f32({2, 3, 4, 5}), "x"), w = f.add_param(f32({3, 3, 1, 1}), "w");
  const Dims one = {1, 1}, none = {0, 0};
  Value y = ops::conv(Values{x, w}, {{"strides", one},
                                     {"dilations", one},
                                     {"pads_low", none},
                                     {"pads_high", none},
                                     {"groups", std::int64_t{1}},
                                     {"channels_last", std::int64_t{0}}});
  f.add_result(reshape_to(y, {2, 12, 5}));
  const Function g = simplify(layout(f));
  EXPECT_EQ(g.result(0).type(), f.result(0).type());
  EXPECT_TRUE(g.result(0).is(ops::reshape));
  EXPECT_TRUE(g.result(0).operand(0).is(ops::transpose));
}

}  // namespace
}  // namespace hone
