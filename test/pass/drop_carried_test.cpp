// Loops without what nobody reads.
#include "pass/drop_carried.h"

#include <gtest/gtest.h>

#include "ops/common.h"
#include "ref/evaluate.h"

namespace hone {
namespace {

// Counts to 3, and carries a = a + b, b = 2 b, c = c + a, d = d * given. `read` says of which of
// the five the function gives the result.
Function looped(const std::vector<std::uint32_t>& read, bool checks_d = false) {
  Function f;
  Values operands = {f.add_param(i64({}), "count")};
  for (const char* name : {"a", "b", "c", "d", "given"})
    operands.push_back(f.add_param(f32({2}), name));
  auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
  for (Function* g : {go.get(), body.get()})
    for (const Value& o : operands) g->add_param(o.type(), cat("p", g->params().size()));
  go->add_result(ops::lt(go->param(0), integer_like(go->param(0), 3)));
  const auto p = [&](std::size_t i) { return body->param(i); };
  body->add_result(p(0) + integer_like(p(0), 1));
  body->add_result(p(1) + p(2));
  body->add_result(p(2) * 2.0);
  body->add_result(p(3) + p(1));
  body->add_result(p(4) * p(5));
  if (checks_d)
    ops::require(
        cast_to(take_axis(p(4), 0, 0), DType::i64) - cast_to(take_axis(p(4), 0, 0), DType::i64),
        {{"message", std::string("d")}, {"low", Dims{0}}, {"high", Dims{1}}});
  const Value loop =
      ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}});
  for (const std::uint32_t i : read) f.add_result(loop.result(i));
  return f;
}

// The number of operands and of results of the only loop that is left.
std::pair<std::size_t, std::size_t> size_of_loop(const Function& f) {
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &ops::while_loop)
      return {f.graph().operands(n).size(), f.graph().result_count(n)};
  return {0, 0};
}

TEST(DropCarried, KeepsWhatIsReadAndWhatThatNeeds) {
  const std::vector<Array> in = {Array::scalar_int(0, DType::i64),
                                 Array::of<float>(DType::f32, {2}, std::vector{1.f, 2.f}),
                                 Array::of<float>(DType::f32, {2}, std::vector{3.f, 4.f}),
                                 Array::of<float>(DType::f32, {2}, std::vector{5.f, 6.f}),
                                 Array::of<float>(DType::f32, {2}, std::vector{7.f, 8.f}),
                                 Array::of<float>(DType::f32, {2}, std::vector{0.f, 3.f})};
  using Sizes = std::pair<std::size_t, std::size_t>;
  const auto expect = [&](const std::vector<std::uint32_t>& read, Sizes sizes) {
    const Function f = looped(read), g = drop_carried(f);
    verify(g);
    EXPECT_EQ(size_of_loop(g), sizes);
    const std::vector<Wide> want = evaluate_wide(f, in, Mode::wide),
                            got = evaluate_wide(g, in, Mode::wide);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].reals, want[i].reals);
    EXPECT_EQ(&drop_carried(g).graph(), &g.graph());
  };
  expect({0}, {1, 1});
  expect({2}, {2, 2});
  expect({1}, {3, 3});
  expect({3}, {4, 4});
  expect({4}, {3, 2});
  expect({2, 4}, {4, 3});
}

TEST(DropCarried, KeepsWhatAllIsRead) {
  const Function f = looped({0, 1, 2, 3, 4});
  EXPECT_EQ(&drop_carried(f).graph(), &f.graph());
}

TEST(DropCarried, KeepsWhatAnEffectReads) {
  EXPECT_EQ(size_of_loop(drop_carried(looped({0}, true))),
            (std::pair<std::size_t, std::size_t>(3, 2)));
}

}  // namespace
}  // namespace hone
