// Scans: directions, what their loops carry, and steps with and without derivatives.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "pass/drop_carried.h"
#include "tensor/control.h"
#include "tensor/network.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

// Sums so far.
Scanned sums(const Tensor& x, ScanOptions options) {
  return scan(
      {zeros(f32({}))}, {x},
      [](const Tensors& c, const Tensors& over) -> Stepped {
        const Tensor next = c[0] + over[0];
        return {{next}, {next * 10}};
      },
      options);
}

TEST(Scan, GoesBothWays) {
  const auto kept = [](ScanOptions options) {
    return computed([=] { return sums(arange(4, DType::f32) + 1, options).kept[0]; });
  };
  EXPECT_EQ(kept({}), (List{10, 30, 60, 100}));
  EXPECT_EQ(kept({.reverse = true}), (List{100, 90, 70, 40}));
  EXPECT_EQ(kept({.unroll = true, .reverse = true}), (List{100, 90, 70, 40}));
}

// Of a program's only entry: how many values its loops carry, each.
std::vector<std::size_t> carried_by_loops(const Program& p) {
  std::vector<std::size_t> out;
  const Function f = p.graph().entries.at(0).function;
  for (NodeId n : live_nodes(f))
    if (&f.graph().op(n) == &ops::while_loop) out.push_back(f.graph().result_count(n));
  return out;
}

TEST(Scan, CarriesOnlyWhatIsRead) {
  const auto carried = [](const std::function<Tensor(const Scanned&, const Tensor&)>& result) {
    Program p("p");
    p.entry("f", {{"x", f32({4})}}, [&](Tensor x) {
      const Scanned s = scan({zeros(f32({}))}, {x}, [](const Tensors& c, const Tensors& over) {
        const Tensor next = tanh(c[0]) * over[0];
        return Stepped{{next}, {next, exp(next)}};
      });
      return Results{{"y", result(s, x)}};
    });
    return carried_by_loops(p);
  };
  using Counts = std::vector<std::size_t>;
  const auto with_one = [](const Scanned& s, const Tensor&) { return s.carried[0]; };
  EXPECT_EQ(carried(with_one), Counts{2});  // with the count of steps
  EXPECT_EQ(carried([](const Scanned& s, const Tensor&) { return s.kept[1]; }), Counts{3});
  // For the derivative also tanh(c); backwards the count, d carried, d x. Neither exp nor what is
  // kept is asked for.
  EXPECT_EQ(
      carried([](const Scanned& s, const Tensor& x) { return grad(s.carried[0], Tensors{x})[0]; }),
      (Counts{3, 3}));
}

// Parameters count, a, b, c: a becomes a + c, b + a, and c stays.
Function loop_with(const std::vector<std::size_t>& results) {
  auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
  for (Function* f : {go.get(), body.get()}) {
    f->add_param(i64({}), "count");
    for (const char* name : {"a", "b", "c"}) f->add_param(f32({}), name);
  }
  go->add_result(ops::lt(go->param(0), constant(go->graph(), Array::scalar_int(3, DType::i64))));
  const Value one = constant(body->graph(), Array::scalar_int(1, DType::i64));
  body->add_result(ops::add(body->param(0), one));
  body->add_result(ops::add(body->param(1), body->param(3)));
  body->add_result(ops::add(body->param(2), body->param(1)));
  Function f;
  Values operands;
  for (const Function::Param& p : go->params())
    operands.push_back(f.add_param(p.value.type(), p.name));
  const Value loop =
      ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}});
  for (std::size_t i : results) f.add_result(loop.result(i));
  return f;
}

TEST(UnreadCarries, AreDropped) {
  const auto expect = [](const std::vector<std::size_t>& results, std::size_t carried) {
    const Function before = loop_with(results), after = drop_carried(before);
    const Array in[] = {Array::scalar_int(0, DType::i64), Array::scalar(1, DType::f32),
                        Array::scalar(10, DType::f32), Array::scalar(2, DType::f32)};
    const std::vector<Array> a = evaluate(before, in), b = evaluate(after, in);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].real(0), b[i].real(0)) << i;
    verify(after);
    for (NodeId n : live_nodes(after))
      if (&after.graph().op(n) == &ops::while_loop)
        EXPECT_EQ(after.graph().result_count(n), carried);
    EXPECT_EQ(&before.graph() == &after.graph(), carried == 3);
  };
  expect({0}, 1);  // without c, too, which is no carried value
  expect({1}, 2);
  expect({2}, 3);  // b needs a
  expect({0, 1, 2}, 3);
}

TEST(Scan, StepsWithEffectsHaveDerivatives) {
  Program p("p");
  p.entry("f", {{"w", f32({5, 2})}, {"at", i64({4})}}, [&](Tensor w, Tensor at) {
    const Tensor y =
        scan({zeros(f32({2}))}, {at}, [&](const Tensors& c, const Tensors& over) -> Stepped {
          return {{tanh(c[0] + take(w, over[0]))}, {}};
        }).carried[0];
    return Results{{"loss", weighed(y)}, {"d", grad(weighed(y), Tensors{w})[0]}};
  });
  std::vector<float> w;
  for (int i = 0; i < 10; ++i) w.push_back(0.1F * static_cast<float>(i) - 0.4F);
  expect_differences(p, {"w"}, {{"w", floats({5, 2}, w)}, {"at", integers({4}, {3, 0, 3, 1})}});
}

// Only who asks for the derivative is refused, with the line of the scan.
TEST(Scan, AStepWithoutADerivativeCanBeTaken) {
  const auto loop = [](const Tensor& x) {
    return scan({zeros(f32({}))}, {x},
                [](const Tensors& c, const Tensors& over) -> Stepped {
                  return {while_loop(
                              {c[0] + over[0]}, [](const Tensors& y) { return y[0] > 1; },
                              [](const Tensors& y) { return Tensors{y[0] / 2}; }),
                          {}};
                })
        .carried[0];
  };
  EXPECT_EQ(computed([&] { return loop(arange(4, DType::f32)); }), (List{0.9375}));
  Program p("p");
  try {
    p.entry("f", {{"x", f32({4})}},
            [&](Tensor x) { return Results{{"d", grad(loop(x), Tensors{x})[0]}}; });
    FAIL() << "no error";
  } catch (const UserError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("scan_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("operation while_loop"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace hone::test
