#include "ir/function.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone {
namespace {

std::vector<Type> same_type(const Call& c) {
  if (c.operands.size() == 2) {
    if (c.type(0) != c.type(1))
      throw UserError(c.op.name, ": operands are ", c.type(0), " and ", c.type(1));
  }
  return {c.type(0)};
}

constinit const Op plus = {.name = "plus",
                           .doc = "",
                           .kind = OpKind::elementwise,
                           .infer = same_type,
                           .commutative = true};
constinit const Op twice = {
    .name = "twice",
    .doc = "",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) -> std::vector<Type> { return {c.type(0), c.type(0)}; },
};
constinit const Op shout = {.name = "shout", .doc = "", .infer = same_type, .pure = false};
constinit const Op choose = {
    .name = "choose",
    .doc = "",
    .kind = OpKind::control,
    .infer = [](const Call& c) { return c.attrs.get<FunctionRef>("then")->result_types(); },
};

const Op* lookup(std::string_view name) {
  for (const Op* op : {&plus, &twice, &shout, &choose})
    if (op->name == name) return op;
  return nullptr;
}

Function chain(std::size_t n) {
  Function f;
  Value x = f.add_param(f32({2}), "x"), v = x;
  for (std::size_t i = 0; i < n; ++i) v = plus(v, i % 2 ? x : v);
  f.add_result(v, "y");
  return f;
}

TEST(Graph, EqualExpressionsAreOneNode) {
  Function f;
  Value x = f.add_param(f32({3}), "x");
  EXPECT_EQ(plus(x, x), plus(x, x));
  EXPECT_EQ(constant(f.graph(), Array::scalar(1, DType::f32)),
            constant(f.graph(), Array::scalar(1, DType::f32)));
  EXPECT_NE(scalar(f.graph(), 0.0, DType::f32), scalar(f.graph(), -0.0, DType::f32));
  EXPECT_NE(shout(x), shout(x));
}

TEST(Graph, OriginsOfMergedNodesAreKept) {
  Function f;
  Value x = f.add_param(f32({3}), "x");
  {
    OriginScope scope(f.graph(), Origin{1, "a", "Add"});
    plus(x, x);
  }
  OriginScope scope(f.graph(), Origin{2, "b", "Add"});
  EXPECT_EQ(origins_text(plus(x, x)), "node 1 'a' (Add), node 2 'b' (Add)");
}

TEST(Graph, LinesOfSourceAreOriginsWhenAsked) {
  Function f;
  f.graph().record_source(true);
  Value x = f.add_param(f32({3}), "x"), y = f.add_param(f32({4}), "y");
  Value sum = plus(x, x);
  EXPECT_EQ(origins_text(sum), cat(__FILE__, ":", __LINE__ - 1));
  try {
    plus(x, y);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()),
              cat("plus: operands are f32[3] and f32[4] (", __FILE__, ":", __LINE__ - 4, ")"));
  }
}

TEST(Graph, SizesAreProvedRefutedOrRecorded) {
  Function f;
  Dim n = Dim::symbol("n", 1, 9), m = Dim::symbol("m", 1, 9);
  f.graph().require_equal(n, n, "same");
  EXPECT_THROW(f.graph().require_equal(n, 10, "n is not 10"), UserError);
  f.graph().require_equal(n, m, "n is not m");
  f.graph().require_equal(m, n, "n is not m");
  ASSERT_EQ(f.graph().checks().size(), 1u);
}

// When text is parsed, its nodes add checks in their own order and with their own messages.
TEST(Graph, ListedChecksStayAsTheyWere) {
  Function f;
  Dim n = Dim::symbol("n", 1, 9), m = Dim::symbol("m", 1, 9), k = Dim::symbol("k", 1, 9);
  f.graph().require_equal(n, m, "asked for");
  f.graph().require_equal(n, k, "not listed");
  f.graph().require_equal(m, k, "asked for, too");
  const std::vector<DimCheck> listed = {{k, m, "listed first"}, {n, m, "listed second"}};
  for (const DimCheck& c : listed) f.graph().add_check(c);
  EXPECT_EQ(f.graph().checks(),
            (std::vector<DimCheck>{{n, k, "not listed"}, listed[0], listed[1]}));
}

TEST(Function, TextRoundTrips) {
  Function body;
  Value p = body.add_param(f32({2}), "p");
  body.add_result(plus(p, p), "then \"quoted\"");
  Function f;
  Dim n = Dim::symbol("n", 1, 64);
  Value x = f.add_param(f32({n, floor_div(n + Dim(1), 2)}), "x", true);
  Value pair = twice(x, {{"axis", 3},
                         {"alpha", 0.1},
                         {"kind", "sum"},
                         {"dtype", DType::f16},
                         {"dims", Dims{n, Dim(4)}},
                         {"epsilon", -INFINITY}});
  Value c = constant(f.graph(), Array::of<float>(DType::f32, {2}, std::vector<float>{1, 2}));
  Value chosen = choose(std::vector<Value>{c}, {{"then", std::make_shared<const Function>(body)}});
  f.graph().require_equal(n, Dim::symbol("m", 1, 4), "n against m");
  f.add_result(plus(pair.result(1), x), "y");
  f.add_result(chosen, "z");
  std::string text = print(f);
  Function again = parse(text, lookup);
  EXPECT_EQ(print(again), text);
  EXPECT_TRUE(same_structure(f, again));
  EXPECT_EQ(f.hash(), again.hash());
  std::vector<Array> large;
  std::string small = print(f, &large, 4);
  ASSERT_EQ(large.size(), 1u);
  EXPECT_EQ(print(parse(small, lookup, large)), text);
}

TEST(Function, BadTextIsRefusedWithItsLine) {
  auto refuses = [](std::string_view text, std::string_view why) {
    try {
      parse(text, lookup);
      FAIL() << text;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  refuses("%0: f32[2] = param index=0 \"x\"\n%1: f32[2] = minus %0\nreturn %1 \"y\"\n", "line 2");
  refuses("%0: f32[2] = param index=0 \"x\"\n%1: f32[3] = plus %0 %0\nreturn", "expected f32[2]");
  refuses("%0: f32[2] = param index=0 \"x\"\n%1: f32[2] = plus %0 %7\nreturn", "%7");
  refuses("%0: f9[2] = param index=0 \"x\"\n", "dtype");
  refuses(std::string(100, '{'), "expected");
  refuses("%0: f32[2", "']'");
}

TEST(Function, HashIgnoresNamesAndOrderOfMaking) {
  Function f, g;
  Value a = f.add_param(f32({2}), "a"), b = f.add_param(f32({2}), "b");
  f.add_result(plus(plus(a, b), plus(b, b)), "r");
  Value c = g.add_param(f32({2}), "c"), d = g.add_param(f32({2}), "d");
  plus(c, c);
  Value right = plus(d, d);
  g.add_result(plus(plus(c, d), right), "other");
  EXPECT_EQ(f.hash(), g.hash());
  EXPECT_TRUE(same_structure(f, g));
  g.add_result(c);
  EXPECT_FALSE(same_structure(f, g));
}

TEST(Function, LongChainsNeedNoStack) {
  Function f = chain(100'000);
  EXPECT_EQ(live_nodes(f).size(), 100'001u);
  Function copy = transform(f, [](NodeId, Copier&, Function&) { return Values{}; });
  EXPECT_TRUE(same_structure(f, copy));
  verify(copy);
  EXPECT_TRUE(same_structure(f, parse(print(f), lookup)));
}

// Live nodes are cached; every change of the function must invalidate the cache.
TEST(Function, LiveNodesAreThoseOfNow) {
  Function f;
  Value x = f.add_param(f32({2}), "x");
  Value y = plus(x, x), z = plus(y, y);
  f.add_result(y);
  const std::vector<NodeId> before = {x.node(), y.node()};
  EXPECT_EQ(live_nodes(f), before);
  const Function copy = f;
  f.add_result(z);
  EXPECT_EQ(live_nodes(f), (std::vector<NodeId>{x.node(), y.node(), z.node()}));
  EXPECT_EQ(live_nodes(copy), before);
  const Value loud = shout(x);  // in the graph of both
  EXPECT_EQ(live_nodes(copy), (std::vector<NodeId>{x.node(), loud.node(), y.node()}));
}

TEST(Function, TransformReplacesAndKeepsOrigins) {
  Function f;
  Value x = f.add_param(f32({2}), "x");
  Value y;
  {
    OriginScope scope(f.graph(), Origin{7, "seven", "Add"});
    y = plus(x, x);
  }
  f.add_result(plus(y, x), "z");
  Function g = transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    if (n != y.node()) return {};
    Value two = twice(copy(x));
    return {two.result(1)};
  });
  Value made = g.result(0).operand(0);
  EXPECT_TRUE(made.is(twice));
  EXPECT_EQ(origins_text(made), "node 7 'seven' (Add)");
  EXPECT_EQ(g.graph().op(g.result(0).node()).name, "plus");
}

TEST(Function, InlineBindsParameters) {
  Function inner;
  Value p = inner.add_param(f32({2}), "p"), q = inner.add_param(f32({2}), "q");
  inner.add_result(plus(plus(p, q), q));
  Function f;
  Value x = f.add_param(f32({2}), "x");
  Value arguments[] = {x, x};
  f.add_result(inline_call(f.graph(), inner, arguments)[0]);
  EXPECT_EQ(f.result(0), plus(plus(x, x), x));
}

TEST(Function, VerifyFindsWrongTypes) {
  Function f;
  Value x = f.add_param(f32({2}), "x");
  Type wrong = f32({3});
  Value operands[] = {x, x};
  f.add_result(f.graph().intern_typed(plus, operands, {}, std::span(&wrong, 1)));
  EXPECT_THROW(verify(f), InternalError);
}

}  // namespace
}  // namespace hone
