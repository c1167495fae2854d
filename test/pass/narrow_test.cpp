#include "pass/narrow.h"

#include <gtest/gtest.h>

#include "ops/common.h"

namespace hone {
namespace {

Dim n() { return Dim::symbol("n", 1, 1 << 20); }

Function frames() {
  Function f;
  Value x = f.add_param(f32({n()}), "x");
  Dim count = floor_div(floor_div(n() + Dim(64), 128) + Dim(1), 2);
  f.add_result(broadcast_to(slice_axis(x, 0, 0, 1), Shape{count}));
  return f;
}

TEST(Narrow, FindsTheRangeOfASymbol) {
  Function f = frames();
  Dim count = f.result(0).shape()[0];
  const SizeFact facts[] = {{SizeFact::Kind::equal, count, 2}};
  Function g = narrow(f, facts);
  // (n + 64) / 128 is 3 or 4.
  EXPECT_EQ(g.param(0).shape()[0].low(), 320);
  EXPECT_EQ(g.param(0).shape()[0].high(), 575);
  EXPECT_EQ(g.result(0).shape()[0], Dim(2));
  EXPECT_EQ(g.param_types(), f.param_types());
}

TEST(Narrow, OfSeveralKinds) {
  Function f = frames();
  const SizeFact facts[] = {{SizeFact::Kind::greater, n() * Dim(2), 100},
                            {SizeFact::Kind::less_equal, n(), 77}};
  Dim s = narrow(f, facts).param(0).shape()[0];
  EXPECT_EQ(s.low(), 51);
  EXPECT_EQ(s.high(), 77);
}

TEST(Narrow, OneValueIsANumber) {
  const SizeFact facts[] = {{SizeFact::Kind::equal, equal(n(), 7), 1}};
  EXPECT_EQ(narrow(frames(), facts).param(0).shape()[0], Dim(7));
}

TEST(Narrow, NothingKnownNothingDone) {
  Function f = frames();
  EXPECT_EQ(&narrow(f, {}).graph(), &f.graph());
}

// The body's n is not the caller's n.
TEST(Narrow, BodiesKeepTheirOwnSymbols) {
  Function f;
  Value c = f.add_param(b1({}), "c"), x = f.add_param(f32({n(), 2}), "x");
  auto body = std::make_shared<Function>();
  Value p = body->add_param(f32({n()}), "p");
  body->add_result(p + size_value(body->graph(), n(), DType::f32));
  Attrs attrs{{"then", FunctionRef(body)}, {"else", FunctionRef(body)}};
  f.add_result(ops::if_else(Values{c, flatten(x)}, attrs));
  const SizeFact facts[] = {{SizeFact::Kind::less_equal, n(), 3}};
  Function g = narrow(f, facts);
  EXPECT_EQ(g.param(1).shape()[0].high(), 3);
  const FunctionRef& inner = g.result(0).attrs().get<FunctionRef>("then");
  EXPECT_EQ(inner->param(0).shape()[0].high(), 1 << 20);
  verify(g);
}

}  // namespace
}  // namespace hone
