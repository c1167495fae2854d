// States, entries, derivatives, control flow: programs that read as their users write them.
#include "tensor/program.h"

#include <gtest/gtest.h>

#include "ops/ops.h"
#include "tensor/control.h"
#include "tensor/grad.h"
#include "tensor/network.h"
#include "test/tensor/interpreted.h"

namespace hone::test {
namespace {

TEST(Program, SetsInOrder) {
  Program p("p");
  Variable n = p.variable("n", f32({}), 1);
  p.entry("add", {{"by", f32({})}}, [&](Tensor by) {
    const Tensor before = n;
    n.set(n + by);
    n.set(n * 2);
    return Results{{"before", before}, {"now", n}};
  });
  p.entry("reset", {}, [&] { n.set(1); });
  Interpreted run(p);
  auto got = run.run("add", {Array::scalar(4, DType::f32)});
  EXPECT_EQ(got["before"].real(0), 1);
  EXPECT_EQ(got["now"].real(0), 10);
  EXPECT_EQ(run.states["n"].real(0), 10);
  run.run("reset");
  EXPECT_EQ(run.states["n"].real(0), 1);
}

TEST(Program, IsPrinted) {
  Program p("p");
  Variable w = p.variable("w", f32({3}), 1);
  p.entry("step", {{"x", f32({2, 3})}}, [&](Tensor x) {
    Tensor loss = sum(x * w);
    w.set(w - grad(loss, Variables{w})[0]);
    return Results{{"loss", loss}};
  });
  EXPECT_EQ(p.text(), R"(state w (model): f32[3]

entry step
%0: f32[2,3] = param index=0 "x"
%1: f32[3] = param index=1 "w" donated
%2: f32[2,3] = broadcast %1 shape=[2,3]
%3: f32[2,3] = mul %0 %2
%4: f32[] = reduce_sum %3 axes=[0,1]
%5: f32[] = constant value=f32[]#0000803f;
%6: f32[1,1] = reshape %5 shape=[1,1]
%7: f32[2,3] = broadcast %6 shape=[2,3]
%8: f32[2,3] = mul %7 %0
%9: f32[3] = reduce_sum %8 axes=[0]
%10: f32[3] = sub %1 %9
return %4 "loss", %10 "next w" stored_to 1
)");
}

TEST(Program, CopiesToATargetNetworkBySet) {
  Program p("p");
  Variable online = p.variable("online", f32({2}), 1), target = p.variable("target", f32({2}));
  p.entry("learn", {}, [&] { online.set(online + 1); });
  p.entry("sync", {}, [&] { target.set(online); });
  Interpreted run(p);
  run.run("learn");
  EXPECT_EQ(numbers(run.states["target"]), (List{0, 0}));
  run.run("sync");
  run.run("learn");
  EXPECT_EQ(numbers(run.states["target"]), (List{2, 2}));
  EXPECT_EQ(numbers(run.states["online"]), (List{3, 3}));
}

TEST(Program, AccumulatesInOneEntryAndUpdatesInAnother) {
  Program p("p");
  Variable w = p.variable("w", f32({2}), 1), sum_of = p.variable("sum", f32({2})),
           count = p.variable("count", f32({}));
  p.entry("accumulate", {{"x", f32({2})}}, [&](Tensor x) {
    sum_of.set(sum_of + grad(sum(w * x), Variables{w})[0]);
    count.set(count + 1);
  });
  p.entry("update", {}, [&] {
    w.set(w - sum_of / count);
    sum_of.set(zeros(sum_of.type()));
    count.set(0);
  });
  Interpreted run(p);
  run.run("accumulate", {floats({2}, {1, 2})});
  run.run("accumulate", {floats({2}, {3, 4})});
  run.run("update");
  EXPECT_EQ(numbers(run.states["w"]), (List{-1, -2}));
  EXPECT_EQ(numbers(run.states["sum"]), (List{0, 0}));
}

TEST(Program, DrawsItsStartsFromItsSeed) {
  const auto start = [](std::uint64_t seed, const char* name) {
    Program p("p", {.seed = seed});
    p.variable(name, f32({4}), Start::normal(0, 1));
    return numbers(*p.graph().states[0].start);
  };
  EXPECT_EQ(start(1, "a"), start(1, "a"));
  EXPECT_NE(start(1, "a"), start(2, "a"));
  EXPECT_NE(start(1, "a"), start(1, "b"));
}

// ---- Derivatives

TEST(Grad, IsADerivative) {
  Program p("p");
  p.entry("f", {{"x", f32({3})}, {"y", f32({2, 1})}}, [](Tensor x, Tensor y) {
    const Tensor loss = weighed(sigmoid(x * y) / (1 + square(y)) + pow(x, 3));
    const Tensors d = grad(loss, Tensors{x, y});
    return Results{{"loss", loss}, {"dx", d[0]}, {"dy", d[1]}};
  });
  expect_differences(p, {"x", "y"},
                     {{"x", floats({3}, {0.5, 2, 1})}, {"y", floats({2, 1}, {0.3f, -1})}});
}

TEST(Grad, IsDifferentiatedAgain) {
  Program p("p");
  p.entry("f", {{"x", f32({2})}}, [](Tensor x) {
    // The penalty on a gradient's norm, as in WGAN-GP.
    const Tensor inner = sum(exp(x) * square(x));
    const Tensor loss = norm(grad(inner, Tensors{x})[0]);
    return Results{{"loss", loss}, {"dx", grad(loss, Tensors{x})[0]}};
  });
  expect_differences(p, {"x"}, {{"x", floats({2}, {0.5, -1.5})}});
}

TEST(Grad, SumsTheUsesOfATiedParameterOnce) {
  Program p("p");
  Variable w = p.variable("w", f32({2, 2}), Array(floats({2, 2}, {1, 2, 3, 4})));
  p.entry("f", {{"x", f32({1, 2})}}, [&](Tensor x) {
    const Tensor loss = weighed(matmul(tanh(matmul(x, w)), transpose(w)));
    return Results{{"loss", loss}, {"dw", grad(loss, Variables{w})[0]}};
  });
  expect_differences(p, {"w"}, {{"x", floats({1, 2}, {0.1f, 0.2f})}});
}

TEST(Grad, LeavesOutWhatIsStopped) {
  EXPECT_EQ(computed([] {
              const Tensor x = constant({2, 3}, {2});
              return grad(sum(x * stop_gradient(x) + x), Tensors{x})[0];
            }),
            (List{3, 4}));
}

TEST(Grad, FollowsARuleOfTheUsers) {
  // A step function with the derivative of the identity (Bengio et al., 2013).
  const auto step = [](const Tensor& x) {
    return with_gradient([](const Tensors& in) { return Tensors{cast(in[0] > 0, DType::f32)}; },
                         [](const Tensors&, const Tensors&, const Tensors& d) { return d; },
                         {x})[0];
  };
  EXPECT_EQ(computed([&] {
              const Tensor x = constant({-2, 3}, {2});
              return grad(sum(step(step(square(x) - 1) * x) * 3), Tensors{x})[0];
            }),
            // d/dx of 3 step(step(x^2 - 1) x): 3 (step(x^2 - 1) + 2 x x).
            (List{27, 57}));
}

TEST(Grad, SeesEachReadOfAState) {
  Program p("p");
  Variable w = p.variable("w", f32({}), 3);
  p.entry("f", {}, [&] {
    const Tensor first = square(w);
    w.set(w * 2);
    const Tensor second = square(w);
    return Results{{"first", grad(first, Variables{w})[0]},
                   {"second", grad(second, Variables{w})[0]}};
  });
  auto got = Interpreted(p).run("f");
  EXPECT_EQ(got["first"].real(0), 6);
  EXPECT_EQ(got["second"].real(0), 12);
}

TEST(Grad, GoesThroughALearningStep) {
  Program p("p");
  p.entry("f", {{"w", f32({2})}, {"x", f32({2})}}, [](Tensor w, Tensor x) {
    const auto loss_of = [&](const Tensor& weights) { return sum(square(weights * x - 1)); };
    const Tensor next = w - 0.1 * grad(loss_of(w), Tensors{w})[0];
    const Tensor loss = loss_of(next);
    return Results{{"loss", loss}, {"dw", grad(loss, Tensors{w})[0]}};
  });
  expect_differences(p, {"w"}, {{"w", floats({2}, {0.5, 1})}, {"x", floats({2}, {2, -1})}});
}

TEST(Grad, OfValuesIsWeighed) {
  EXPECT_EQ(computed([] {
              const Tensor x = constant({2, 3}, {2});
              return vjp({square(x)}, {constant({1, 10}, {2})}, {x})[0];
            }),
            (List{4, 60}));
  EXPECT_EQ(computed([] {
              const auto f = [](const Tensors& in) { return sum(square(in[0])); };
              const ValueAndGrad r = value_and_grad(f, {constant({2, 3}, {2})});
              return r.grads[0] + r.value;
            }),
            (List{17, 19}));
}

// ---- Control flow

TEST(Control, Branches) {
  Program p("p");
  Variable w = p.variable("w", f32({}), 5);
  p.entry("f", {{"x", f32({})}}, [&](Tensor x) {
    const Tensor doubled = x * 2;
    const Tensors y = if_else(
        x > 0, [&] { return Tensors{doubled + w}; }, [&] { return Tensors{zeros(f32({})) - x}; });
    return Results{{"y", y[0]}};
  });
  Interpreted run(p);
  EXPECT_EQ(run.run("f", {Array::scalar(3, DType::f32)})["y"].real(0), 11);
  EXPECT_EQ(run.run("f", {Array::scalar(-3, DType::f32)})["y"].real(0), 3);
}

TEST(Control, LoopsInsideLoops) {
  // sum over i < n of i^k, by k products.
  Program p("p");
  p.entry("f", {{"n", i64({})}, {"k", i64({})}}, [](Tensor n, Tensor k) {
    const Tensors outer = while_loop(
        {zeros(i64({})), zeros(i64({}))}, [&](const Tensors& x) { return x[0] < n; },
        [&](const Tensors& x) {
          const Tensors power = while_loop(
              {zeros(i64({})), ones(i64({}))}, [&](const Tensors& y) { return y[0] < k; },
              [&](const Tensors& y) { return Tensors{y[0] + 1, y[1] * x[0]}; });
          return Tensors{x[0] + 1, x[1] + power[1]};
        });
    return Results{{"y", outer[1]}};
  });
  EXPECT_EQ(Interpreted(p)
                .run("f", {Array::scalar_int(4, DType::i64), Array::scalar_int(2, DType::i64)})["y"]
                .integer(0),
            14);
}

Results running_sums(Tensor x, ScanOptions options) {
  const Scanned s = scan(
      {zeros(f32({2}))}, {x},
      [](const Tensors& carried, const Tensors& slices) -> Stepped {
        const Tensor next = carried[0] * 0.5 + slices[0];
        return {{next}, {next, sum(next)}};
      },
      options);
  return {{"last", s.carried[0]}, {"each", s.kept[0]}, {"sums", s.kept[1]}};
}

TEST(Control, Scans) {
  for (const bool unroll : {false, true}) {
    Program p("p");
    const Dim n = unroll ? Dim(3) : dim("n", 1, 8);
    p.entry("f", {{"x", f32({n, 2})}},
            [&](Tensor x) { return running_sums(x, {.unroll = unroll}); });
    auto got = Interpreted(p).run("f", {floats({3, 2}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(numbers(got["last"]), (List{6.75, 8.5}));
    EXPECT_EQ(numbers(got["each"]), (List{1, 2, 3.5, 5, 6.75, 8.5}));
    EXPECT_EQ(numbers(got["sums"]), (List{3, 8.5, 15.25}));
  }
}

// Teacher forcing: the next input is given, not what the step predicted.
TEST(Control, ScansAreDifferentiated) {
  for (const bool unroll : {false, true}) {
    Program p("p");
    const Dim n = unroll ? Dim(3) : dim("n", 1, 8);
    Variable w = p.variable("w", f32({2, 2}), Start::normal(0, 0.5));
    p.entry(
        "f", {{"x", f32({n, 1, 2})}, {"y", f32({n, 1, 2})}, {"start", f32({1, 2})}},
        [&](Tensor x, Tensor y, Tensor start) {
          const Scanned s = scan({start, zeros(i64({}))}, {x},
                                 [&](const Tensors& c, const Tensors& in) -> Stepped {
                                   const Tensor next = tanh(matmul(c[0], w) + in[0]);
                                   return {{next, c[1] + 1}, {next, sum(in[0] * next)}};
                                 },
                                 {.unroll = unroll});
          const Tensor loss =
              mse_loss(s.kept[0], y) + weighed(s.carried[0]) + weighed(square(s.kept[1]));
          const Tensors d = grad(loss, Tensors{x, start});
          return Results{
              {"loss", loss}, {"dw", grad(loss, Variables{w})[0]}, {"dx", d[0]}, {"dstart", d[1]}};
        });
    expect_differences(p, {"w", "x", "start"},
                       {{"x", floats({3, 1, 2}, {1, -1, 0.5, 0.25, -2, 0.1f})},
                        {"y", floats({3, 1, 2}, {0, 1, 0, 1, 0, 1})},
                        {"start", floats({1, 2}, {0.5, -0.5})}});
  }
}

TEST(Control, ScansAreDifferentiatedTwice) {
  Program p("p");
  Variable w = p.variable("w", f32({2}), Array(floats({2}, {0.5, -0.75})));
  p.entry("f", {{"x", f32({dim("n", 1, 8), 2})}}, [&](Tensor x) {
    const Scanned s = scan({w, zeros(i64({}))}, {x}, [&](const Tensors& c, const Tensors& in) {
      const Tensor next = sin(c[0]) * in[0] + c[0] * w;
      return Stepped{{next, c[1] + 1}, {next * in[0]}};
    });
    const Tensor slope = grad(weighed(s.carried[0]) + sum(s.kept[0]), Tensors{x})[0];
    const Tensor loss = weighed(square(slope));
    return Results{
        {"loss", loss}, {"dx", grad(loss, Tensors{x})[0]}, {"dw", grad(loss, Variables{w})[0]}};
  });
  expect_differences(p, {"x", "w"}, {{"x", floats({3, 2}, {1, -1, 0.5, 0.25, -2, 0.1f})}});
}

TEST(Control, BranchesAreDifferentiated) {
  for (const float at : {1.5f, -0.5f}) {
    Program p("p");
    Variable w = p.variable("w", f32({2}), Array(floats({2}, {0.5, 2})));
    p.entry("f", {{"x", f32({2})}}, [&](Tensor x) {
      const Tensor y = if_else(
          sum(x) > 0, [&] { return Tensors{sum(exp(x) * w)}; },
          [&] { return Tensors{sum(square(x) + stop_gradient(w) * x)}; })[0];
      const Tensor loss = y * y;
      return Results{
          {"loss", loss}, {"dx", grad(loss, Tensors{x})[0]}, {"dw", grad(loss, Variables{w})[0]}};
    });
    const std::vector<std::string> of =
        at > 0 ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"};
    expect_differences(p, of, {{"x", floats({2}, {at, 0.25})}});
  }
}

// A derivative along a direction: vjp is linear in its weights, and vjp of that is what is wanted.
TEST(Grad, OfAGradIsADirectionalDerivative) {
  Program p("p");
  p.entry("f", {Arg{"x", f32({2})}, Arg{"v", f32({2})}}, [](const Tensor& x, const Tensor& v) {
    const Tensor y = x * sin(x), u = stop_gradient(zeros_like(y));
    return Results{{"d", vjp(vjp({y}, {u}, {x}), {v}, {u})[0]}};
  });
  const Array d = Interpreted(p).run("f", {floats({2}, {1, 2}), floats({2}, {3, -1})}).at("d");
  EXPECT_NEAR(d.real(0), 3 * (std::sin(1) + std::cos(1)), 1e-5);
  EXPECT_NEAR(d.real(1), -(std::sin(2) + 2 * std::cos(2)), 1e-5);
}

// A part that is computed again gives the same loss and derivatives.
Program recomputed(bool is_checkpointed) {
  Program p("recomputed", {.seed = 3});
  const Variable w = p.variable("w", f32({4, 4}), Start::normal(0, 1)),
                 b = p.variable("b", f32({4}), Start::normal(0, 1)),
                 seen = p.variable("seen", f32({}));
  p.entry(
      "train", {Arg{"x", f32({3, 4})}},
      [&](const Tensor& x) {
        const auto block = [&](const Tensors& in) {
          const Tensor h = dropout(tanh(matmul(in[0], w) + b), 0.5);
          seen.set(seen.value() + 1.0);
          const Tensor own = with_gradient(
              [](const Tensors& of) { return Tensors{round(of[0])}; },
              [](const Tensors&, const Tensors&, const Tensors& d) { return Tensors{d[0] * 3.0}; },
              {h})[0];
          return Tensors{h * own, sum(h)};
        };
        Tensors y{x, Tensor()};
        Tensor all = sum(x);
        for (int i = 0; i < 3; ++i) {
          y = is_checkpointed ? checkpoint(block, {y[0]}) : block({y[0]});
          all = all + y[1];
        }
        const Tensor loss = sum(square(y[0])) + all;
        const Tensors d = grad(loss, Variables{w, b});
        return Results{{"loss", loss}, {"w", d[0]}, {"b", d[1]}, {"seen", seen.value()}};
      },
      {.training = true});
  return p;
}

TEST(Checkpoint, GivesTheSameNumbers) {
  Interpreted kept(recomputed(false)), again(recomputed(true));
  const Array x = floats({3, 4}, {1, -2, 3, 1, 0.5, 0.25, -1, 2, 1, 1, -3, 0.125});
  for (int run = 0; run < 3; ++run) {
    const auto a = kept.run("train", {x}), b = again.run("train", {x});
    for (const char* name : {"loss", "seen"})
      EXPECT_EQ(numbers(a.at(name)), numbers(b.at(name))) << name << " of run " << run;
    for (const char* name : {"w", "b"})  // sums over the parts in another order
      for (std::size_t i = 0; i < numbers(a.at(name)).size(); ++i)
        EXPECT_NEAR(numbers(a.at(name))[i], numbers(b.at(name))[i],
                    1e-4 + 1e-6 * std::fabs(numbers(a.at(name))[i]))
            << name << " " << i;
    EXPECT_EQ(numbers(b.at("seen"))[0], 3 * (run + 1));
  }
}

TEST(Checkpoint, ComputesItsPartTwice) {
  const auto tanhs = [](const Program& p) {
    const Function f = p.graph().entries[0].function;
    return std::ranges::count_if(live_nodes(f),
                                 [&](NodeId n) { return &f.graph().op(n) == &ops::tanh; });
  };
  EXPECT_EQ(tanhs(recomputed(false)), 3);
  EXPECT_EQ(tanhs(recomputed(true)), 6);
}

TEST(Checkpoint, NestsAndHasSecondDerivatives) {
  const auto of = [](bool is_checkpointed) {
    Program p("nested");
    p.entry("f", {Arg{"x", f32({3})}}, [&](const Tensor& x) {
      const auto inner = [](const Tensors& in) { return Tensors{exp(sin(in[0]))}; };
      const auto outer = [&](const Tensors& in) {
        return Tensors{(is_checkpointed ? checkpoint(inner, in) : inner(in))[0] * in[0]};
      };
      const Tensor y = (is_checkpointed ? checkpoint(outer, {x}) : outer({x}))[0];
      const Tensor d = grad(sum(y), Tensors{x})[0];
      return Results{{"d", d}, {"dd", grad(sum(square(d)), Tensors{x})[0]}};
    });
    return Interpreted(p).run("f", {floats({3}, {0.5, -1, 2})});
  };
  const auto kept = of(false), again = of(true);
  EXPECT_EQ(numbers(kept.at("d")), numbers(again.at("d")));
  for (std::size_t i = 0; i < 3; ++i)  // sums in another order
    EXPECT_NEAR(numbers(kept.at("dd"))[i], numbers(again.at("dd"))[i], 1e-5);
}

}  // namespace
}  // namespace hone::test
