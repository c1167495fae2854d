#include "pass/rewrite.h"

#include <gtest/gtest.h>

#include "ops/common.h"
#include "pass/simplify.h"

namespace hone {
namespace {

const Pattern x = Pattern::any("x"), y = Pattern::any("y");

Function chain(std::size_t n, Value (*link)(Value)) {
  Function f;
  Value v = f.add_param(f32({8}), "x");
  for (std::size_t i = 0; i < n; ++i) v = link(v);
  f.add_result(v, "y");
  return f;
}

TEST(Rewrite, NothingToDoAllocatesNothing) {
  Function f = chain(100, [](Value v) { return ops::exp(v); });
  std::size_t before = f.graph().node_count();
  Function g = simplify(f);
  EXPECT_EQ(&g.graph(), &f.graph());
  EXPECT_EQ(f.graph().node_count(), before);
}

TEST(Rewrite, LogsWhatFiredWhere) {
  Function f = chain(6, [](Value v) { return ops::neg(v); });
  const Rule rules[] = {{"neg-neg", RuleClass::exact, ops::neg(ops::neg(x)), x}};
  RuleSet set(rules);
  RuleLog log;
  Function g = rewrite(f, set, &log);
  EXPECT_EQ(g.result(0), g.param(0));
  ASSERT_EQ(log.firings.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const RuleLog::Firing& firing = log.firings[i];
    EXPECT_EQ(firing.rule, "neg-neg");
    EXPECT_EQ(&log.functions.at(firing.function).graph(), &f.graph());
    EXPECT_EQ(firing.node, 2 * i + 2);  // node 0 is the parameter
  }
}

TEST(Rewrite, CommutativeOperandsMatchInEitherOrder) {
  const Rule rules[] = {{"add-mul", RuleClass::exact, (x * y) + Pattern::any("z"), x - y}};
  RuleSet set(rules);
  for (bool swap : {false, true}) {
    Function f;
    Value a = f.add_param(f32({2}), "a"), b = f.add_param(f32({2}), "b"),
          c = f.add_param(f32({2}), "c");
    f.add_result(swap ? c + a * b : a * b + c);
    EXPECT_TRUE(rewrite(f, set).result(0).is(ops::sub)) << swap;
  }
}

TEST(Rewrite, EqualHolesMatchEqualValuesOnly) {
  const Rule rules[] = {{"max-self", RuleClass::exact, ops::maximum(x, x), x}};
  RuleSet set(rules);
  Function f;
  Value a = f.add_param(f32({2}), "a"), b = f.add_param(f32({2}), "b");
  f.add_result(ops::maximum(a, b));
  f.add_result(ops::maximum(b, b));
  Function g = rewrite(f, set);
  EXPECT_TRUE(g.result(0).is(ops::maximum));
  EXPECT_EQ(g.result(1), g.param(1));
}

// The larger pattern is tried at the user before the smaller one can match a part of it.
TEST(Rewrite, UsersFirstTakesTheLargestPattern) {
  const Rule rules[] = {
      {"small", RuleClass::exact, ops::exp(x), ops::log(x)},
      {"large", RuleClass::exact, ops::neg(ops::exp(x)), ops::sqrt(x)},
  };
  Function f = chain(1, [](Value v) { return ops::neg(ops::exp(v)); });
  EXPECT_TRUE(rewrite(f, RuleSet(rules, Order::users_first)).result(0).is(ops::sqrt));
  EXPECT_TRUE(rewrite(f, RuleSet(rules, Order::inputs_first)).result(0).is(ops::neg));
}

TEST(Rewrite, UsersFirstKeepsWhatOthersNeed) {
  const Rule rules[] = {{"large", RuleClass::exact, ops::neg(ops::exp(x)), ops::sqrt(x)}};
  RuleSet set(rules, Order::users_first);
  Function f;
  Value e = ops::exp(f.add_param(f32({2}), "x"));
  f.add_result(ops::neg(e));
  f.add_result(e);
  EXPECT_EQ(&rewrite(f, set).graph(), &f.graph());
}

TEST(Rewrite, MadeNodesHaveTheOriginsOfTheMatch) {
  Function f;
  Value v = f.add_param(f32({2}), "x");
  {
    OriginScope scope(f.graph(), Origin{3, "inner", "Exp"});
    v = ops::exp(v);
  }
  {
    OriginScope scope(f.graph(), Origin{4, "outer", "Neg"});
    v = ops::neg(v);
  }
  f.add_result(v);
  const Rule rules[] = {{"to-sqrt", RuleClass::exact, ops::neg(ops::exp(x)), ops::sqrt(x)}};
  EXPECT_EQ(origins_text(rewrite(f, RuleSet(rules)).result(0)),
            "node 4 'outer' (Neg), node 3 'inner' (Exp)");
}

// Created nodes keep the name of their rule until a pass replaces them.
TEST(Rewrite, MadeNodesKeepTheirRule) {
  Function f = chain(1, [](Value v) { return ops::exp(ops::neg(v)); });
  const Rule rules[] = {{"to-sqrt", RuleClass::exact, ops::neg(x), ops::sqrt(x)}};
  auto rule = [](Value v) { return v.graph().rule(v.node()); };
  for (Order order : {Order::inputs_first, Order::users_first}) {
    Function g = rewrite(f, RuleSet(rules, order));
    EXPECT_EQ(rule(g.result(0)), "");
    EXPECT_EQ(rule(g.result(0).operand(0)), "to-sqrt");
    Function same = transform(g, [](NodeId, Copier&, Function&) { return Values(); });
    EXPECT_EQ(rule(same.result(0).operand(0)), "to-sqrt");
    Function other = transform(g, [&](NodeId n, Copier& copier, Function&) -> Values {
      if (&g.graph().op(n) != &ops::sqrt) return {};
      return {ops::abs(copier(g.graph().operands(n)[0]))};
    });
    EXPECT_EQ(rule(other.result(0).operand(0)), "");
  }
}

TEST(Rewrite, NamesTheRuleThatChangesAType) {
  const Rule rules[] = {{"bad", RuleClass::exact, ops::exp(x), [](const Match& m) {
                           return reshape_to(m["x"], {m["x"].shape()[0], 1});
                         }}};
  Function f = chain(1, [](Value v) { return ops::exp(v); });
  try {
    rewrite(f, RuleSet(rules));
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("rule 'bad'"), std::string::npos) << e.what();
  }
}

TEST(Rewrite, NamesARuleThatNeverEnds) {
  const Rule rules[] = {{"grow", RuleClass::exact, ops::exp(x), ops::exp(ops::neg(x))}};
  Function f = chain(1, [](Value v) { return ops::exp(v); });
  try {
    rewrite(f, RuleSet(rules));
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("'grow'"), std::string::npos) << e.what();
  }
}

TEST(Rewrite, UnsafeRulesOnlyOnRequest) {
  const Rule rules[] = {{"log-exp", RuleClass::unsafe, ops::log(ops::exp(x)), x}};
  Function f = chain(1, [](Value v) { return ops::log(ops::exp(v)); });
  EXPECT_EQ(&rewrite(f, RuleSet(rules)).graph(), &f.graph());
  Function g = rewrite(f, RuleSet(rules, Order::inputs_first, RuleClass::unsafe));
  EXPECT_EQ(g.result(0), g.param(0));
}

TEST(Rewrite, DeepGraphsNeedNoStack) {
  Function f = chain(200'000, [](Value v) { return ops::exp(v * 1.0); });
  Function g = simplify(f);
  EXPECT_EQ(live_nodes(g).size(), 200'001u);
}

}  // namespace
}  // namespace hone
