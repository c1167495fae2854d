// Symbols, checks, control flow and long graphs in the reference interpreter.
#include "ref/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/common.h"
#include "ops/expand.h"
#include "ref/element.h"

namespace hone {
namespace {

using Reals = std::vector<double>;

Array zeros(std::vector<std::int64_t> dims) { return Array::zeros(DType::f32, std::move(dims)); }

Array ramp(std::vector<std::int64_t> dims) {
  Array a = zeros(std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i));
  return a;
}

// A convolution over two spatial axes, with strides of 1.
Value conv_of(Value x, Value w, Dims dilations, int groups, Dims low, Dims high) {
  return ops::conv(Values{x, w}, {{"strides", Dims{1, 1}},
                                  {"dilations", std::move(dilations)},
                                  {"groups", groups},
                                  {"pads_low", std::move(low)},
                                  {"pads_high", std::move(high)},
                                  {"channels_last", 0}});
}

std::string refusal(const Function& f, const std::vector<Array>& inputs) {
  try {
    evaluate(f, inputs);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Evaluate, AGatherFromNothingIsRefused) {
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 0, 8), 2}), "x"),
              at = f.add_param(i64({1}), "at");
  f.add_result(ops::gather(Values{x, at}, {{"axis", std::int64_t{0}}}), "y");
  const std::vector<std::int64_t> first = {0};
  EXPECT_NE(refusal(f, {zeros({0, 2}), Array::from_ints(first)}), "");
}

TEST(Evaluate, LogarithmsOfSoftmaxesFarBelowTheLargest) {
  Function f;
  f.add_result(ops::log_softmax(f.add_param(f32({2}), "x"), {{"axis", std::int64_t{0}}}), "y");
  const Array x = Array::of<float>(DType::f32, {2}, std::vector<float>{-16384, 16384});
  EXPECT_EQ(evaluate(f, {{x}})[0],
            Array::of<float>(DType::f32, {2}, std::vector<float>{-32768, 0}));
}

TEST(Evaluate, NamesTheSymbolAndBothSizes) {
  Dim n = Dim::symbol("n", 1, 8);
  Function f;
  Value a = f.add_param(f32({n, 2}), "a"), b = f.add_param(f32({n, 2}), "b");
  f.add_result(a + b);
  EXPECT_EQ(refusal(f, {zeros({3, 2}), zeros({3, 2})}), "");
  EXPECT_EQ(refusal(f, {zeros({3, 2}), zeros({4, 2})}),
            "input 'b': axis 0 of f32[n,2] is 4, but symbol 'n' is, by input 'a', 3; give inputs "
            "of consistent sizes");
  EXPECT_EQ(
      refusal(f, {zeros({3, 2}), zeros({3, 5})}),
      "input 'b': axis 1 of f32[n,2] is 5, but it must be 2; give inputs of consistent sizes");
  EXPECT_EQ(refusal(f, {zeros({9, 2}), zeros({9, 2})}),
            "input 'a': axis 0 is 9, expected 1 to 8 for size 'n'; give such an input, or "
            "read the model for a wider range, as with --dim n=1..9");
  EXPECT_EQ(refusal(f, {zeros({3, 2})}), "evaluate: got 1 inputs, expected 2");
  EXPECT_NE(refusal(f, {zeros({3}), zeros({3, 2})}).find("reshape it"), std::string::npos);
  Array wrong = Array::zeros(DType::f16, {3, 2});
  EXPECT_NE(refusal(f, {wrong, zeros({3, 2})}).find("is f16[3,2], expected f32"),
            std::string::npos);
}

TEST(Evaluate, ChecksExpressionsOfSymbols) {
  Dim n = Dim::symbol("n", 1, 8);
  Function f;
  f.add_param(f32({n * Dim(2)}), "twice");
  Value once = f.add_param(f32({n}), "once");
  f.add_result(once);
  EXPECT_EQ(refusal(f, {zeros({6}), zeros({3})}), "");
  EXPECT_NE(refusal(f, {zeros({7}), zeros({3})}).find("is 7, but (2*n) is 6"), std::string::npos);
}

TEST(Evaluate, EvaluatesRecordedChecks) {
  Dim n = Dim::symbol("n", 1, 8), m = Dim::symbol("m", 1, 8);
  Function f;
  Value a = f.add_param(f32({n}), "a"), b = f.add_param(f32({m}), "b");
  f.add_result(a + b);
  EXPECT_EQ(refusal(f, {zeros({3}), zeros({3})}), "");
  std::string said = refusal(f, {zeros({3}), zeros({4})});
  EXPECT_NE(said.find("add: sizes at axis 0 differ: n against m"), std::string::npos) << said;
  EXPECT_NE(said.find("(here n = 3, m = 4)"), std::string::npos) << said;
}

// 100,000 nodes in a row, forwards and backwards, without recursion.
TEST(Evaluate, LongChains) {
  Function f;
  Value x = f.add_param(f32({2}), "x"), one = constant_like(x, 1);
  for (int i = 0; i < 100000; ++i) x = ops::add(x, one);
  f.add_result(x);
  Array in = ramp({2});
  EXPECT_EQ(evaluate_wide(f, std::span(&in, 1), Mode::strict)[0].reals, (Reals{100000, 100001}));
  const std::int64_t last[] = {1};
  EXPECT_EQ(evaluate_element(f, std::span(&in, 1), 0, last), 100001);
}

FunctionRef made(const std::vector<Type>& params, const std::function<Values(Function&)>& results) {
  auto f = std::make_shared<Function>();
  for (const Type& t : params) f->add_param(t, "x");
  for (const Value& v : results(*f)) f->add_result(v);
  return f;
}

TEST(Evaluate, OnlyTheTakenBranchIsReached) {
  Function f;
  Value c = f.add_param(b1({}), "c"), x = f.add_param(f32({2}), "x");
  FunctionRef yes = made({f32({2})}, [](Function& b) { return Values{b.param(0) * 2.0}; });
  FunctionRef no = made({f32({2})}, [](Function& b) {
    return Values{b.graph().intern(
        ops::refuse, {},
        {{"message", std::string("not here")}, {"dtype", DType::f32}, {"shape", Dims{2}}})};
  });
  f.add_result(ops::if_else(Values{c, x}, {{"then", yes}, {"else", no}}));
  Array in = ramp({2});
  std::vector<Array> good = {Array::scalar_int(1, DType::b1), in};
  EXPECT_EQ(evaluate_wide(f, good, Mode::strict)[0].reals, (Reals{0, 2}));
  EXPECT_EQ(ElementEvaluator(f, good).at(0, 1).strict.real, 2);
  std::vector<Array> bad = {Array::scalar_int(0, DType::b1), in};
  EXPECT_EQ(refusal(f, bad), "not here");
  EXPECT_THROW(ElementEvaluator(f, bad).at(0, 1), UserError);
}

// A body binds its own symbols to its operands, and may use its caller's symbols.
TEST(Evaluate, BodiesBindTheirOwnSymbols) {
  Dim n = Dim::symbol("n", 1, 100), k = Dim::symbol("k", 1, 100);
  auto body = [&](double by) {
    return made({f32({k})}, [&](Function& b) {
      Value sum = reduce_axes(ops::reduce_sum, b.param(0), {0});
      Value size = size_value(b.graph(), k, DType::f32) + size_value(b.graph(), n, DType::f32);
      return Values{concat_values(Values{b.param(0), reshape_to(sum * by + size, {1})}, 0)};
    });
  };
  Function f;
  Value c = f.add_param(b1({}), "c"), x = f.add_param(f32({n}), "x");
  const Value twice[] = {x, x};
  Value y =
      ops::if_else(Values{c, concat_values(twice, 0)}, {{"then", body(1)}, {"else", body(2)}});
  EXPECT_EQ(y.shape(), Shape{n * Dim(2) + Dim(1)});
  f.add_result(y);
  std::vector<Array> inputs = {Array::scalar_int(0, DType::b1), ramp({3})};
  EXPECT_EQ(evaluate_wide(f, inputs, Mode::strict)[0].reals, (Reals{0, 1, 2, 0, 1, 2, 21}));
  EXPECT_EQ(ElementEvaluator(f, inputs).at(0, 6).strict.real, 21);
}

// If a symbol has the same name inside and outside, the body uses its own.
TEST(Evaluate, BodySymbolsHideTheCallers) {
  Dim n = Dim::symbol("n", 1, 100);
  FunctionRef body =
      made({f32({n})}, [&](Function& b) { return Values{size_value(b.graph(), n, DType::f32)}; });
  Function f;
  Value c = f.add_param(b1({}), "c"), x = f.add_param(f32({n}), "x");
  const Value twice[] = {x, x};
  f.add_result(ops::if_else(Values{c, concat_values(twice, 0)}, {{"then", body}, {"else", body}}));
  f.add_result(size_value(f.graph(), n, DType::f32));
  std::vector<Array> inputs = {Array::scalar_int(1, DType::b1), ramp({3})};
  EXPECT_EQ(evaluate_wide(f, inputs, Mode::strict)[0].reals, Reals{6});
  EXPECT_EQ(evaluate_wide(f, inputs, Mode::strict)[1].reals, Reals{3});
  EXPECT_EQ(ElementEvaluator(f, inputs).at(0, 0).strict.real, 6);
}

TEST(Evaluate, LoopsCarryValues) {
  std::vector<Type> types = {i64({}), f32({2}), f32({2})};
  FunctionRef go = made(
      types, [](Function& b) { return Values{ops::lt(b.param(0), integer_like(b.param(0), 10))}; });
  FunctionRef body = made(types, [](Function& b) {
    return Values{ops::add(b.param(0), integer_like(b.param(0), 1)), b.param(1) + b.param(2)};
  });
  Function f;
  Value count = f.add_param(types[0], "i"), x = f.add_param(types[1], "x"),
        by = f.add_param(types[2], "by");
  Value loop = ops::while_loop(Values{count, x, by}, {{"condition", go}, {"body", body}});
  EXPECT_EQ(loop.result_count(), 2u);
  f.add_result(loop.result(1));
  std::vector<Array> inputs = {Array::scalar_int(4, DType::i64), ramp({2}), ramp({2})};
  EXPECT_EQ(evaluate_wide(f, inputs, Mode::strict)[0].reals, (Reals{0, 7}));
  EXPECT_EQ(ElementEvaluator(f, inputs).at(0, 1).strict.real, 7);
}

// Reductions over long rows are evaluated in boxes. Here they go through every movement that a box
// follows, and a reshape that it does not (the last).
TEST(Evaluate, ElementsOfLongRowsAreThoseOfTheWhole) {
  Function f;
  const Value x = f.add_param(f32({3, 40, 20}), "x"), by = f.add_param(f32({3}), "by");
  const Value rows = reshape_to(x, {3, 800}),
              mean = reduce_axes(ops::reduce_sum, rows, {1}, true) * (1 / 800.0),
              off = rows - broadcast_to(mean, rows.shape()),
              scaled = off * broadcast_to(unsqueeze(by, {1}), rows.shape());
  f.add_result(reduce_axes(ops::reduce_sum, scaled * scaled, {1}));
  f.add_result(reduce_axes(ops::reduce_max, transpose_by(scaled, std::vector{1, 0}), {0}));
  f.add_result(reduce_axes(ops::reduce_sum, ops::exp(reshape_to(off, {3, 40, 20})), {1, 2}));
  f.add_result(reduce_axes(ops::reduce_min, reshape_to(scaled, {2400}), {0}));
  const std::vector<Array> inputs = {ramp({3, 40, 20}), ramp({3})};
  for (const Mode mode : {Mode::strict, Mode::stepwise}) {
    const std::vector<Wide> strict = evaluate_wide(f, inputs, mode),
                            wide = evaluate_wide(f, inputs, Mode::wide);
    ElementEvaluator elements(f, inputs, mode);
    for (std::size_t r = 0; r < strict.size(); ++r)
      for (std::int64_t i = 0; i < strict[r].count(); ++i) {
        const ElementOfModes e = elements.at(r, i);
        EXPECT_EQ(e.strict.real, strict[r].reals[static_cast<std::size_t>(i)]) << r << " " << i;
        EXPECT_EQ(e.wide.real, wide[r].reals[static_cast<std::size_t>(i)]) << r << " " << i;
      }
  }
}

// Elements in two rows of a softmax need only the elements of these rows.
TEST(ElementEvaluator, GivesUpWhenManyElementsAreNeeded) {
  Function f;
  Value x = f.add_param(f32({64, 100}), "x");
  f.add_result(ops::softmax(ops::exp(x * 1e-3), {{"axis", 1}}), "y");
  const std::vector<Array> inputs = {ramp({64, 100})};
  const std::vector<std::int64_t> places = {5, 6399};
  EXPECT_FALSE(ElementEvaluator(f, inputs).all_at(0, places, 200));
  const auto few = ElementEvaluator(f, inputs).all_at(0, places, 2000);
  ASSERT_TRUE(few);
  const Wide all = evaluate_wide(f, inputs, Mode::wide)[0];
  EXPECT_DOUBLE_EQ((*few)[0].wide.real, all.reals[5]);
  EXPECT_DOUBLE_EQ((*few)[1].wide.real, all.reals[6399]);
}

TEST(ElementEvaluator, ManyElementsOfAResultThatIsAnInput) {
  Function f;
  f.add_result(f.add_param(f32({3}), "x"), "y");
  const std::vector<Array> inputs = {ramp({3})};
  const std::vector<std::int64_t> places = {2, 0};
  const auto found = ElementEvaluator(f, inputs).all_at(0, places, 10);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[0].wide.real, inputs[0].real(2));
  EXPECT_EQ((*found)[1].strict.real, inputs[0].real(0));
}

TEST(ElementEvaluator, WideModeRoundsNothing) {
  Function f;
  Value x = f.add_param(f32({10}), "x");
  f.add_result(ops::exp(x * 0.1), "y");
  const std::vector<Array> inputs = {ramp({10})};
  ElementEvaluator both(f, inputs), wide(f, inputs, Mode::wide);
  EXPECT_NE(both.at(0, 3).strict.real, both.at(0, 3).wide.real);
  EXPECT_EQ(wide.at(0, 3).wide.real, both.at(0, 3).wide.real);
  EXPECT_EQ(wide.at(0, 3).strict.real, both.at(0, 3).wide.real);
}

// More channels than are summed at once, and rows longer than a piece.
TEST(Evaluate, ConvolutionsOfManyChannelsAndLongRows) {
  Function f;
  const Value x = f.add_param(f32({2, 22, 2, 300}), "x"), w = f.add_param(f32({38, 11, 2, 3}), "w");
  f.add_result(conv_of(x, w, {1, 2}, 2, {1, 1}, {0, 2}));
  std::vector<Array> inputs = {ramp({2, 22, 2, 300}), ramp({38, 11, 2, 3})};
  for (Array& a : inputs)
    for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i * 37 % 101));
  const Wide all = evaluate_wide(f, inputs, Mode::strict)[0];
  ElementEvaluator one(f, inputs);
  for (std::int64_t i = 0; i < all.count(); i += 89)
    ASSERT_EQ(one.at(0, i).strict.real, all.reals[static_cast<std::size_t>(i)]) << i;
}

// Sums of thirds, in which every step rounds.
TEST(ElementEvaluator, RoundsSumsStepByStepWhereItIsAsked) {
  const auto thirds = [](std::vector<std::int64_t> dims) {
    Array a = ramp(std::move(dims));
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, (static_cast<double>(i * 7 % 101) - 40) / 3);
    return a;
  };
  Function f;
  const Value a = f.add_param(f32({4, 600}), "a"), b = f.add_param(f32({600, 4}), "b"),
              x = f.add_param(f32({1, 30, 6, 6}), "x"), w = f.add_param(f32({4, 30, 3, 3}), "w");
  f.add_result(ops::matmul(a, b));
  f.add_result(conv_of(x, w, {1, 1}, 1, {0, 0}, {0, 0}));
  f.add_result(reduce_axes(ops::reduce_sum, a, {1}));
  const std::vector<Array> inputs = {thirds({4, 600}), thirds({600, 4}), thirds({1, 30, 6, 6}),
                                     thirds({4, 30, 3, 3})};
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          stepwise = evaluate_wide(f, inputs, Mode::stepwise);
  ElementEvaluator once(f, inputs), each(f, inputs, Mode::stepwise);
  for (std::size_t r = 0; r < strict.size(); ++r) {
    SCOPED_TRACE(r);
    double by_element = 0, by_tensor = 0;  // sums of squared rounding errors
    for (std::int64_t i = 0; i < strict[r].count(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      EXPECT_EQ(once.at(r, i).strict.real, strict[r].reals[k]);
      const ElementOfModes e = each.at(r, i);
      by_element += std::pow(e.strict.real - e.wide.real, 2);
      by_tensor += std::pow(stepwise[r].reals[k] - e.wide.real, 2);
    }
    EXPECT_GT(by_element, by_tensor / 9);
    EXPECT_LT(by_element, by_tensor * 9);
  }
}

TEST(Evaluate, ExpandAllLeavesCoreOpsOnly) {
  Function f;
  Value x = f.add_param(f16({2, 4}), "x");
  f.add_result(ops::gelu(ops::softmax(ops::silu(x), {{"axis", 1}})), "y");
  Function core = expand_composites(f);
  for (NodeId n : live_nodes(core)) EXPECT_TRUE(core.graph().op(n).is_core());
  EXPECT_EQ(core.results()[0].name, "y");
  EXPECT_EQ(core.result_types(), f.result_types());
}

// Large contractions are split over threads, which must not change any element.
TEST(Evaluate, ThreadsDoNotShow) {
  Function f;
  Value a = f.add_param(f32({64, 256}), "a"), b = f.add_param(f32({256, 96}), "b");
  f.add_result(ops::matmul(a, b));
  std::vector<Array> inputs = {ramp({64, 256}), ramp({256, 96})};
  Wide all = evaluate_wide(f, inputs, Mode::wide)[0];
  for (std::int64_t i : {0, 1, 95, 96, 3000, 3071, 3072, 6143}) {
    std::int64_t row = i / 96, column = i % 96;
    double sum = 0;
    for (std::int64_t k = 0; k < 256; ++k)
      sum += inputs[0].real(row * 256 + k) * inputs[1].real(k * 96 + column);
    EXPECT_EQ(all.reals[static_cast<std::size_t>(i)], sum);
  }
}

// An iteration updates carried values in place, except values that are read later or that the loop
// does not carry.
TEST(Evaluate, ALoopThatFillsATensorKeepsWhatIsReadAgain) {
  constexpr std::int64_t n = 20'000;
  const Type count = i64({}), filled = f32({n});
  auto go = std::make_shared<Function>(), body = std::make_shared<Function>();
  for (Function* g : {go.get(), body.get()}) {
    g->add_param(count, "i");
    for (const char* name : {"y", "before", "x"}) g->add_param(filled, name);
  }
  go->add_result(ops::lt(go->param(0), scalar(go->graph(), static_cast<double>(n), DType::i64)));
  const Value i = body->param(0), y = body->param(1), x = body->param(3);
  const Value next =
      updated_at(y, ops::dynamic_slice(Values{x, reshape_to(i, {1})}, {{"sizes", Dims{1}}}),
                 reshape_to(i, {1}));
  body->add_result(i + 1.0);
  body->add_result(next);
  body->add_result(y);
  Function f;
  const Value given = f.add_param(filled, "x"), start = f.add_param(filled, "start");
  const Value loop = ops::while_loop(Values{scalar(f.graph(), 0, DType::i64), start, start, given},
                                     {{"condition", FunctionRef(go)}, {"body", FunctionRef(body)}});
  f.add_result(loop.result(1), "y");
  f.add_result(loop.result(2), "before");
  f.add_result(start, "start");
  const std::vector<Array> got = evaluate(f, {{ramp({n}), zeros({n})}});
  EXPECT_EQ(got[0], ramp({n}));
  EXPECT_EQ(got[1].real(n - 2), static_cast<double>(n - 2));
  EXPECT_EQ(got[1].real(n - 1), 0);
  EXPECT_EQ(got[2], zeros({n}));
}

}  // namespace
}  // namespace hone
