// Mistakes: each gives a UserError that begins with this file and the line, and says what was given
// and what is allowed.
#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "base/error.h"
#include "nn/layers.h"
#include "nn/optimizers.h"
#include "tensor/control.h"
#include "tensor/grad.h"
#include "tensor/network.h"

namespace hone::test {
namespace {

// The text of the error, without its place, which must be a line of this file.
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    static const std::regex place("^.*misuse_test\\.cpp:[0-9]+: ");
    const std::string text = e.what();
    return std::regex_search(text, place) ? std::regex_replace(text, place, "")
                                          : "NO PLACE: " + text;
  }
  return "no error";
}

// Of an operation in an entry with an argument f32[2,3] and a state f32[3].
std::string error_in(const std::function<void(Tensor x, Variable w)>& f) {
  Program p("p");
  const Variable w = p.variable("w", f32({3}));
  return error_of([&] {
    p.entry("f", {{"x", f32({2, 3})}}, [&](Tensor x) {
      f(x, w);
      return Results{{"y", x}};
    });
  });
}

struct Mistake {
  const char* text;  // in the error
  std::function<void(Tensor x, Variable w)> f;
};

TEST(Misuse, OfOperationsNamesTheLine) {
  const Mistake mistakes[] = {
      {"add: shapes [2,3] and [2] do not broadcast",
       [](Tensor x, Variable) { x + ones(f32({2})); }},
      {"multiply: the tensors are f32 and i64", [](Tensor x, Variable) { x* arange(3); }},
      {"the number 2.5 meets a tensor of dtype i64", [](Tensor, Variable) { arange(3) + 2.5; }},
      {"the number -1 meets a tensor of dtype u8",
       [](Tensor x, Variable) { cast(x, DType::u8) + -1; }},
      {"meets a tensor of dtype bool", [](Tensor x, Variable) { (x > 0) + 1; }},
      {"a tensor is empty", [](Tensor x, Variable) { x + Tensor(); }},
      {"reshape: ", [](Tensor x, Variable) { reshape(x, {4, 2}); }},
      {"the size for -1 is 6 / 4", [](Tensor x, Variable) { reshape(x, {4, -1}); }},
      {"are -1, expected at most one", [](Tensor x, Variable) { reshape(x, {-1, -1}); }},
      {"sum: axis is 2, expected -2 to 1", [](Tensor x, Variable) { sum(x, 2); }},
      {"axis 1 of f32[2,3] is given twice", [](Tensor x, Variable) { sum(x, {-1, 1}); }},
      {"expected each axis once", [](Tensor x, Variable) { permute(x, {0, 0}); }},
      {"squeeze: axis 0", [](Tensor x, Variable) { squeeze(x, 0); }},
      {"select: index 3 of axis 1", [](Tensor x, Variable) { select(x, 1, 3); }},
      {"slice: the step is 0", [](Tensor x, Variable) { slice(x, 0, {.step = 0}); }},
      {"chunk: 2 parts of axis 1", [](Tensor x, Variable) { chunk(x, 2, 1); }},
      {"split: the parts", [](Tensor x, Variable) { split(x, {1, 1}, 1); }},
      {"concat: ", [](Tensor x, Variable) { concat({x, ones(f32({3}))}, 0); }},
      {"pad: 1 and 1 numbers", [](Tensor x, Variable) { pad(x, {1}, {1}); }},
      {"matmul: inner sizes differ", [](Tensor x, Variable) { matmul(x, x); }},
      {"mean: x is i64[3]", [](Tensor, Variable) { mean(arange(3)); }},
      {"linear: x is f32[2,3] and the weight f32[4,2]",
       [](Tensor x, Variable) { linear(x, ones(f32({4, 2}))); }},
      {"conv2d: x is f32[2,3], expected rank 4",
       [](Tensor x, Variable) { conv2d(x, ones(f32({1, 1, 1, 1}))); }},
      {"expected 2 channels in x",
       [](Tensor, Variable) { conv2d(ones(f32({1, 3, 4, 4})), ones(f32({1, 2, 1, 1}))); }},
      {"conv2d: padding has 3 numbers",
       [](Tensor, Variable) {
         conv2d(ones(f32({1, 1, 4, 4})), ones(f32({1, 1, 1, 1})), {.padding = {1, 1, 1}});
       }},
      {"stride is 0, expected at least 1",
       [](Tensor, Variable) { max_pool2d(ones(f32({1, 1, 4, 4})), 2, {.stride = 0}); }},
      {"layer_norm: x is f32[2,3] and the weight f32[2]",
       [](Tensor x, Variable) { layer_norm(x, ones(f32({2}))); }},
      {"embedding: the weight is f32[3]", [](Tensor, Variable w) { embedding(arange(2), w); }},
      {"a target is", [](Tensor x, Variable) { cross_entropy(x, constant({0, 3})); }},
      {"integers [n, ...]", [](Tensor x, Variable) { cross_entropy(x, x); }},
      {"label_smoothing is 2",
       [](Tensor x, Variable) { cross_entropy(x, constant({0, 1}), {.label_smoothing = 2}); }},
      {"mse_loss: x is f32[2,3] and the target f32[3]",
       [](Tensor x, Variable w) { mse_loss(x, w); }},
      {"the probability is 1", [](Tensor x, Variable) { dropout(x, 1); }},
      {"dim 'n': the bounds are 4 and 2", [](Tensor, Variable) { dim("n", 4, 2); }},
      // States.
      {"state 'w' is f32[3], but is set to f32[2,3]", [](Tensor x, Variable w) { w.set(x); }},
      {"set of state 'w': the tensors are f32 and i64",
       [](Tensor, Variable w) { w.set(arange(3)); }},
      {"state 'w' is set in a branch of if_else",
       [](Tensor x, Variable w) {
         if_else(sum(x) > 0, [&] { return w.set(0), Tensors{x}; }, [&] { return Tensors{x}; });
       }},
      {"drawn in the body of while_loop",
       [](Tensor x, Variable) {
         while_loop(
             {x}, [](const Tensors& in) { return sum(in[0]) < 9; },
             [](const Tensors& in) { return Tensors{in[0] + rand(f32({2, 3}))}; });
       }},
      {"is begun inside entry 'f'", [](Tensor, Variable) { Program("q").entry("g", {}, [] {}); }},
      // Derivatives.
      {"does not depend on 'w'", [](Tensor x, Variable w) { grad(sum(x), Variables{w}); }},
      {"does not depend on x[0]",
       [](Tensor x, Variable) { grad(sum(stop_gradient(x)), Tensors{x}); }},
      {"the loss is f32[2,3], expected a float scalar",
       [](Tensor x, Variable w) { grad(x * w, Variables{w}); }},
      {"x[0] is i64[3], expected a float dtype",
       [](Tensor x, Variable) { grad(sum(x), Tensors{arange(3)}); }},
      {"operation while_loop of ",
       [](Tensor x, Variable) {
         const Tensors y = while_loop(
             {x}, [](const Tensors& in) { return sum(in[0]) < 9; },
             [](const Tensors& in) { return Tensors{in[0] + 1}; });
         grad(sum(y[0]), Tensors{x});
       }},
      {"the derivative gives 0 tensors for 1 inputs",
       [](Tensor x, Variable) {
         const auto none = [](const Tensors&, const Tensors&, const Tensors&) { return Tensors(); };
         grad(sum(with_gradient([](const Tensors& in) { return in; }, none, {x})[0]), Tensors{x});
       }},
      {"result 0 is f32[2,3] in one branch and f32[3] in the other",
       [](Tensor x, Variable w) {
         if_else(sum(x) > 0, [&] { return Tensors{x}; }, [&] { return Tensors{w}; });
       }},
      {"its type must not change",
       [](Tensor x, Variable) {
         while_loop(
             {x}, [](const Tensors& in) { return sum(in[0]) < 9; },
             [](const Tensors& in) { return Tensors{sum(in[0])}; });
       }},
      {"scan: there is nothing to step over",
       [](Tensor x, Variable) {
         scan({x}, {}, [](const Tensors& c, const Tensors&) -> Stepped { return {c, {}}; });
       }},
  };
  for (const Mistake& m : mistakes) {
    const std::string error = error_in(m.f);
    EXPECT_NE(error.find(m.text), std::string::npos) << m.text << "\n  got: " << error;
    EXPECT_EQ(error.find("NO PLACE"), std::string::npos) << error;
  }
}

TEST(Misuse, OfProgramsNamesTheLine) {
  Program p("p"), other("other");
  Variable w = p.variable("w", f32({3}));
  const Tensor kept = [&] {
    Tensor out;
    p.entry("first", {}, [&] {
      out = w * 2;
      return Results{{"y", out}};
    });
    return out;
  }();
  struct Made : nn::Module {
    using Module::Module;
    using Module::parameter;
  } net(p, "net");
  net.parameter("weight", f32({1}), 0);
  const auto entry = [&](auto f) { return [&p, f] { p.entry("second", {}, f); }; };
  const std::pair<const char*, std::function<void()>> mistakes[] = {
      {"no entry is being recorded", [] { zeros(f32({1})); }},
      {"no entry is being recorded", [&] { w.set(1); }},
      {"no entry is being recorded", [&] { relu(w); }},
      {"belongs to entry 'first' of program 'p'", entry([&] { w.set(kept); })},
      {"state 'w' belongs to program 'p', but entry 'f' of program 'other'",
       [&] { other.entry("f", {}, [&] { w.set(w + 1); }); }},
      {"state 'w' exists", [&] { p.variable("w", f32({1})); }},
      {"state 'n' is f32[n]", [&] { p.variable("n", f32({dim("n", 1, 2)})); }},
      {"starts with f32[2]", [&] { p.variable("a", f32({3}), Array::zeros(DType::f32, {2})); }},
      {"entry 'first' exists", [&] { p.entry("first", {}, [&] { w.set(1); }); }},
      {"has no results and sets no state", entry([] {})},
      {"two results are named 'y'", entry([&] { return Results{{"y", w}, {"y", w}}; })},
      {"two arguments are named 'x'",
       [&] { p.entry("g", {{"x", f32({})}, {"x", f32({})}}, [&](Tensor, Tensor) { w.set(1); }); }},
      {"the function does not take 1 tensor, one for each argument",
       [&] { p.entry("g", {{"x", f32({})}}, [&] { w.set(1); }); }},
      {"has no entry 'train'; it has 'first'", [&] { static_cast<void>(p.only({"train"})); }},
      {"with_values: 1 variables and 0 values",
       entry([&] { with_values({w}, {}, [&] { return w.value(); }); })},
      {"state 'net.weight' exists", [&] { net.parameter("weight", f32({1}), 0); }},
      {"module 'net' has a member 'fc'",
       [&] {
         nn::Linear a(net, "fc", {.in = 1, .out = 1});
         nn::Linear b(net, "fc", {.in = 1, .out = 1});
       }},
      {"module 'net.zero': .in is 0", [&] { nn::Linear(net, "zero", {.out = 1}); }},
      {"3 groups of 4 channels in",
       [&] { nn::Conv2d(net, "conv", {.in = 4, .out = 3, .kernel = 1, .groups = 3}); }},
      {".width is 5 for 2 heads, expected a multiple",
       [&] { nn::MultiheadAttention(net, "attention", {.width = 5, .heads = 2}); }},
      {"module 'net.norm': x is f32[3], expected rank 4",
       [&] {
         const nn::BatchNorm2d norm(net, "norm", 3);
         p.entry("second", {}, [&] { return Results{{"y", norm(w)}}; });
       }},
      {"optimizer 'sgd' has no parameters", [&] { nn::SGD(p, "sgd", {}); }},
      {"parameter 'w' is given twice", [&] { nn::SGD(p, "twice", {w, w}); }},
      {"0 gradients for 1 parameters",
       [&] {
         const nn::SGD sgd(p, "few", {w});
         p.entry("second", {}, [&] { sgd.step({}); });
       }},
      {"the decay is 2", [&] { nn::Ema(p, "ema", {w}, 2); }},
      {"entry 'sets' sets state 'w'",
       [&] {
         p.entry("sets", {}, [&] { w.set(1); });
         static_cast<void>(p.frozen({{"w", Array::zeros(DType::f32, {3})}}));
       }},
  };
  for (const auto& [text, f] : mistakes) {
    const std::string error = error_of(f);
    EXPECT_NE(error.find(text), std::string::npos) << text << "\n  got: " << error;
    EXPECT_EQ(error.find("NO PLACE"), std::string::npos) << error;
  }
}

TEST(Misuse, InsideALayerNamesTheLineThatCallsIt) {
  Program p("p");
  struct Net : nn::Module {
    using Module::Module;
    nn::Linear head{*this, "head", {.in = 4, .out = 1}};
  } net(p, "net");
  int line = 0;
  try {
    p.entry("f", {{"x", f32({2, 3})}}, [&](Tensor x) {
      line = __LINE__ + 1;
      return Results{{"y", net.head(x)}};
    });
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(cat("misuse_test.cpp:", line, ": linear: x is f32[2,3]")),
              std::string::npos)
        << e.what();
  }
  // The entry that failed is not there, and another can be recorded.
  p.entry("f", {{"x", f32({2, 4})}}, [&](Tensor x) { return Results{{"y", net.head(x)}}; });
}

TEST(Misuse, DoesNotDangleAfterAModuleIsGone) {
  Program p("p");
  Variables kept;
  {
    struct Net : nn::Module {
      using Module::Module;
      nn::Linear head{*this, "head", {.in = 4, .out = 1}};
    } net(p, "net");
    kept = net.parameters();
  }
  p.entry("f", {}, [&] { return Results{{"y", sum(kept[0])}}; });
}

}  // namespace
}  // namespace hone::test
