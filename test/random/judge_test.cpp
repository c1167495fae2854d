// Tests the judge in both directions: everything that the reference gives in any of its modes
// passes, and wrong rules and kernels planted in random functions are found.
#include "verify/reduce/judge.h"

#include <gtest/gtest.h>

#include "ops/common.h"
#include "ops/host.h"
#include "test/random/generate.h"
#include "type/text.h"

namespace hone::fuzz {
namespace {

std::vector<Array> narrowed(const std::vector<Wide>& values) {
  std::vector<Array> out;
  for (const Wide& w : values) out.push_back(narrow(w));
  return out;
}

// Each mode rounds at different places; all results lie inside the enclosure.
TEST(Judge, EveryModeOfTheReferenceLiesInsideTheEnclosure) {
  double share = 0;  // of undecided elements, summed over the functions
  constexpr int functions = 250;
  for (std::uint64_t seed = 1; seed <= functions; ++seed) {
    const Case c = generate(seed);
    std::int64_t elements = 0, open = 0;
    for (const CaseRun& run : c.runs) {
      const std::vector<Array> inputs = inputs_of(c.function, run);
      const std::vector<Enclosure> enclosures = enclose(c.function, inputs);
      for (Mode mode : {Mode::strict, Mode::stepwise, Mode::wide}) {
        const std::vector<Array> got = narrowed(evaluate_wide(c.function, inputs, mode));
        for (std::size_t i = 0; i < got.size(); ++i) {
          const Comparison inside = hone::accept(got[i], enclosures[i]);
          EXPECT_TRUE(inside.ok) << "seed " << seed << " result " << i << ": " << inside;
          elements += got[i].count();
          open += inside.undecided;
        }
      }
    }
    if (elements > 0) share += static_cast<double>(open) / static_cast<double>(elements);
  }
  // An enclosure that is too wide would pass the checks above.
  std::printf("%.2f %% of the elements of a function undecided\n", 100 * share / functions);
  EXPECT_LT(share, 0.06 * functions);
}

Enclosure enclosed(const Function& f, const std::vector<float>& x) {
  const Array input =
      Array::of(DType::f32, {static_cast<std::int64_t>(x.size())}, std::span<const float>(x));
  return enclose(f, std::span(&input, 1)).at(0);
}

TEST(Judge, AnEnclosureIsAsWideAsItsRounding) {
  Function f;
  Value x = f.add_param(f32({2}), "x");
  f.add_result(x * 3.0 + 1.0);
  const Enclosure e = enclosed(f, {1.0f, 0.1f});
  EXPECT_EQ(e.low.reals[0], 4);  // exact in f32
  EXPECT_EQ(e.high.reals[0], 4);
  const double width = e.high.reals[1] - e.low.reals[1];
  EXPECT_GT(width, 1e-8);
  EXPECT_LT(width, 1e-6);
}

// A cast of an exact number has exactly one result, even if two numbers are equally near.
TEST(Judge, ACastOfAnExactNumberIsOneNumber) {
  struct Row {
    DType from, to;
    double given, rounded;
  };
  const Row rows[] = {{DType::f32, DType::bf16, 1 + 0x1p-8, 1},
                      {DType::f32, DType::bf16, 1 + 0x3p-8, 1 + 0x4p-8},
                      {DType::f32, DType::bf16, 1 + 0x1p-8 + 0x1p-23, 1 + 0x2p-8},
                      {DType::f64, DType::f16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x2p-11},
                      {DType::f32, DType::f16, 65520, HUGE_VAL}};
  for (const Row& r : rows) {
    Function f;
    f.add_result(cast_to(f.add_param(Type(r.from, {1}), "x"), r.to), "y");
    Array x = Array::zeros(r.from, {1});
    x.set_real(0, r.given);
    const Enclosure e = enclose(f, std::span(&x, 1)).at(0);
    EXPECT_EQ(round_real(r.to, e.low.reals[0]), r.rounded) << r.from << " to " << r.to;
    EXPECT_EQ(round_real(r.to, e.high.reals[0]), r.rounded) << r.from << " to " << r.to;
  }
}

// Multiplied from the left, the first input gives infinity; its second half alone gives zero, and
// zero times infinity is NaN.
TEST(Judge, AProductThatOverflowsOnTheWayHangsOnItsOrder) {
  Function f;
  Value x = f.add_param(f32({4}), "x");
  f.add_result(reduce_axes(ops::reduce_prod, x, {0}));
  EXPECT_TRUE(enclosed(f, {1e30f, 1e30f, 1e-30f, 1e-30f}).hangs_on_order(0));
  EXPECT_TRUE(enclosed(f, {INFINITY, 1, 1e-30f, 1e-30f}).hangs_on_order(0));
  EXPECT_FALSE(enclosed(f, {1e30f, 2, 3, 4}).hangs_on_order(0));
}

// x / x may be slightly different from 1, but a negative number to that power is a number only if
// the exponent is exactly 1.
TEST(Judge, APowerHangsOnAnExponentThatMayBeWhole) {
  Function f;
  Value x = f.add_param(f32({4}), "x");
  f.add_result(ops::pow(x, x / x));
  const Enclosure e = enclosed(f, {-3, 3, NAN, -0.0f});
  EXPECT_TRUE(e.hangs_on_order(0));
  EXPECT_LT(e.low.reals[1], 3);
  EXPECT_GT(e.high.reals[1], 3);
  EXPECT_TRUE(std::isnan(e.high.reals[2]) && std::isnan(e.high.reals[3]));
  Function half;
  x = half.add_param(f32({1}), "x");
  half.add_result(ops::pow(x, x / x * 0.5));
  EXPECT_TRUE(std::isnan(enclosed(half, {-3}).high.reals[0])) << "no whole number is next to it";
}

// Rounding decides whether what a sum of cancelled numbers leaves is in the domain of a root, and
// whether an overflowed number has a sine.
TEST(Judge, RoundingDecidesWhatIsOutsideTheDomain) {
  Function root;
  Value x = root.add_param(f32({2}), "x");
  root.add_result(ops::sqrt(x * 3.0 - x * 3.0 + x * 0x1p-30));
  EXPECT_TRUE(enclosed(root, {0.1f, 1}).hangs_on_order(0));
  EXPECT_TRUE(std::isnan(enclosed(root, {NAN, 1}).high.reals[0])) << "it is NaN";
  Function wave;
  x = wave.add_param(f32({2}), "x");
  wave.add_result(ops::sin(x + x));
  const Enclosure e = enclosed(wave, {INFINITY, 1.7014118e38f});
  EXPECT_TRUE(std::isnan(e.high.reals[0])) << "it is infinite";
  EXPECT_TRUE(e.hangs_on_order(1));
}

// erf of -3.92 is -1 or the next number, so a kernel may choose either operand.
TEST(Judge, RoundingDecidesBetweenANumberAndNaN) {
  Function f;
  const Value x = f.add_param(f32({2}), "x"), one = ops::erf(x) + 1.0;
  f.add_result(ops::select(Values{cast_to(one, DType::b1), one, ops::sqrt(x)}));
  const Enclosure e = enclosed(f, {-3.92f, 1});
  EXPECT_TRUE(e.hangs_on_order(0));
  EXPECT_LT(e.high.reals[1], 2);
}

TEST(Judge, TextsAreKnown) {
  Function f;
  const std::vector<std::int64_t> ends = {1, 2};
  const Value all = constant(f.graph(), Array::of<char>(DType::u8, {2}, std::string_view("ab")));
  f.add_result(ops::text_literal(all, constant(f.graph(), Array::from_ints(ends))));
  const Enclosure e = enclose(f, {}).at(0);
  EXPECT_EQ(e.low.integers,
            widen(text_array({2}, std::vector<std::string_view>{"a", "b"})).integers);
  EXPECT_EQ(e.low.integers, e.high.integers);
}

// Where one element is open, the others stay known; complements turn an interval around.
TEST(Judge, BitsOfIntegersThatRoundingDecides) {
  Function f;
  const Value x = f.add_param(f32({2}), "x"), i = cast_to(ops::floor(x * 10.0), DType::i32);
  f.add_result(ops::bit_not(i));
  f.add_result(ops::bit_or(i, i * 0));
  const std::vector<float> numbers = {2.1f, 0.5f};
  const Array a = Array::of(DType::f32, {2}, std::span<const float>(numbers));
  const std::vector<Enclosure> e = enclose(f, std::span(&a, 1));
  EXPECT_EQ(e[0].low.integers, (std::vector<std::int64_t>{-22, -6}));
  EXPECT_EQ(e[0].high.integers, (std::vector<std::int64_t>{-21, -6}));
  EXPECT_EQ(e[1].low.integers[1], 5);
  EXPECT_EQ(e[1].high.integers[1], 5);
  EXPECT_LT(e[1].low.integers[0], e[1].high.integers[0]);
}

// The sum of two large numbers may be kept wider than f32 or become infinite, so the result of
// cancelling it may be either, or NaN.
TEST(Judge, InfinitiesOfRoundingMayCancel) {
  const auto left = [](bool is_sum, const std::vector<float>& numbers) {
    Function f;
    Value x = f.add_param(f32({1}), "x"), twice = x + x;
    f.add_result(is_sum ? twice + -twice : twice - twice);
    return enclosed(f, numbers);
  };
  for (const bool is_sum : {false, true}) {
    EXPECT_TRUE(left(is_sum, {3e38f}).hangs_on_order(0));
    EXPECT_TRUE(std::isnan(left(is_sum, {INFINITY}).high.reals[0])) << "it is infinite";
    EXPECT_EQ(left(is_sum, {1}).high.reals[0], 0);
  }
}

TEST(Judge, ADecisionOnRoundingIsOpenAndOthersAreNot) {
  Function f;
  Value x = f.add_param(f32({3}), "x");
  f.add_result(ops::floor(x * 10.0));
  const Enclosure e = enclosed(f, {0.3f, 0.25f, 0.5f});
  EXPECT_EQ(e.low.reals[0], 2);  // 0.3f * 10 is 3 after rounding and above 3 before
  EXPECT_EQ(e.high.reals[0], 3);
  EXPECT_EQ(e.low.reals[1], 2);
  EXPECT_EQ(e.high.reals[1], 2);
  EXPECT_EQ(e.low.reals[2], 5);
  EXPECT_EQ(e.high.reals[2], 5);
}

// Finds results that jump when a rounded number moves a little, and values computed from them. A
// choice between equal values does not jump.
TEST(Judge, AStepThatRoundingDecidesIsKnown) {
  const auto hangs = [](const auto& make, const std::vector<float>& numbers) {
    Function f;
    f.add_result(make(f.add_param(f32({1}), "x") * 0.1));
    return enclosed(f, numbers).hangs_on_step;
  };
  const auto chosen = [](double above, double below) {
    return [=](Value x) {
      const Value low = broadcast_to(scalar(x.graph(), 0.3f, DType::f32), x.shape());
      return ops::select(ops::lt(x, low), x * below, x * above) * 2.0;
    };
  };
  const std::vector<float> tie = {3}, clear = {7.5};
  const auto whole = [](Value x) { return ops::exp(ops::floor(x * 10.0)); };
  EXPECT_TRUE(hangs(whole, tie));
  EXPECT_FALSE(hangs(whole, clear));
  EXPECT_TRUE(hangs(chosen(1, 2), tie));
  EXPECT_FALSE(hangs(chosen(1, 2), clear));
  EXPECT_FALSE(hangs(chosen(1, 1), tie)) << "both give the same";
  EXPECT_FALSE(hangs([](Value x) { return ops::tanh(x); }, tie)) << "it has no step";
}

TEST(Judge, APositionAmongNearTiesIsOneOfThem) {
  Function f;
  Value x = f.add_param(f32({4}), "x");
  f.add_result(ops::argmax(x * 0.1, {{"axis", 0}, {"dtype", DType::i64}}));
  const Enclosure tie = enclosed(f, {1, 3, 3, 2});
  EXPECT_EQ(tie.low.integers[0], 1);
  EXPECT_EQ(tie.high.integers[0], 2);
  const Enclosure clear = enclosed(f, {1, 3, 4, 2});
  EXPECT_EQ(clear.low.integers[0], 2);
  EXPECT_EQ(clear.high.integers[0], 2);
}

// ---- planted faults: a wrong operation replaces a right one, as a wrong kernel or rule would do

struct Fault {
  const char* name;
  const Op* op;
  Value (*wrong)(const Op&, const Values&, const Attrs&);
};

Value like(Value x, double number) { return constant_like(x, number); }

const Fault faults[] = {
    {"minimum emitted as maximum", &ops::minimum,
     [](const Op&, const Values& x, const Attrs&) { return ops::maximum(x[0], x[1]); }},
    {"upper bound of clip lost", &ops::clip,
     [](const Op&, const Values& x, const Attrs&) { return ops::maximum(x[0], x[1]); }},
    {"floor truncates", &ops::floor,
     [](const Op&, const Values& x, const Attrs&) { return ops::trunc(x[0]); }},
    {"less becomes less or equal", &ops::lt,
     [](const Op&, const Values& x, const Attrs&) { return ops::le(x[0], x[1]); }},
    {"gelu by its approximation", &ops::gelu,
     [](const Op&, const Values& x, const Attrs&) { return ops::gelu_tanh(x[0]); }},
    {"tanh of half the digits", &ops::tanh,
     [](const Op&, const Values& x, const Attrs&) {
       return is_float(x[0].dtype()) && x[0].dtype() != DType::bf16
                  ? cast_to(cast_to(ops::tanh(x[0]), DType::bf16), x[0].dtype())
                  : ops::tanh(x[0]);
     }},
    {"exp off by 1e-4", &ops::exp,
     [](const Op&, const Values& x, const Attrs&) {
       return x[0].dtype() == DType::f32 ? ops::exp(x[0]) * 1.0001 : ops::exp(x[0]);
     }},
    {"a sum loses its last row", &ops::reduce_sum,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       const Axes axes = axes_of(attrs, "axes");
       if (axes.empty() || x[0].shape()[axes[0]].low() < 2) return op(x[0], attrs);
       return op(slice_axis(x[0], axes[0], 0, x[0].shape()[axes[0]] - Dim(1)), attrs);
     }},
    {"epsilon of a norm forgotten", &ops::layer_norm,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       Attrs a = attrs;
       a.set("epsilon", 1e-12);
       return op(x, a);
     }},
    {"a cast to integers rounds", &ops::cast,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       const bool whole = is_float(x[0].dtype()) && is_integer(attrs.get<DType>("dtype"));
       return op(whole ? ops::round(x[0]) : x[0], attrs);
     }},
    {"a scatter takes the first of equals", &ops::scatter,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       if (x[1].rank() != 1) return op(x, attrs);
       const int axis = static_cast<int>(attrs.integer("axis"));
       return op(Values{x[0], reverse_axes(x[1], {0}), reverse_axes(x[2], {axis})}, attrs);
     }},
    {"argmax takes the last of equals", &ops::argmax,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       const int axis = static_cast<int>(attrs.integer("axis"));
       Value from_end = op(reverse_axes(x[0], {axis}), attrs);
       Value last = size_value(from_end.graph(), x[0].shape()[axis] - Dim(1), from_end.dtype());
       return broadcast_to(last, from_end.shape()) - from_end;
     }},
    {"a matrix product in f16", &ops::matmul,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       if (x[0].dtype() != DType::f32) return op(x, attrs);
       Value a = cast_to(x[0], DType::f16), b = cast_to(x[1], DType::f16);
       return cast_to(op(Values{a, b}, attrs), DType::f32);
     }},
    {"remainder of the divisor's sign", &ops::rem,
     [](const Op&, const Values& x, const Attrs&) { return ops::mod(x[0], x[1]); }},
    {"a running sum that is never exclusive", &ops::cumulative,
     [](const Op& op, const Values& x, const Attrs& attrs) {
       Attrs a = attrs;
       a.set("exclusive", 0);
       return op(x[0], a);
     }},
    {"NaN lost by relu", &ops::relu,
     [](const Op&, const Values& x, const Attrs&) {
       return ops::select(ops::lt(like(x[0], 0), x[0]), x[0], like(x[0], 0));
     }},
};

std::optional<Function> with_fault(const Function& f, const Fault& fault) {
  bool any = false;
  Function out = transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    const Graph& g = f.graph();
    if (&g.op(n) != fault.op) return {};
    Values operands;
    for (const Value& v : g.operands(n)) operands.push_back(copy(v));
    any = true;
    return {fault.wrong(g.op(n), operands, g.attrs(n))};
  });
  return any ? std::optional(std::move(out)) : std::nullopt;
}

bool is_found(std::uint64_t seed, const Fault& fault) {
  const Case c = generate(seed);
  const std::optional<Function> wrong = with_fault(c.function, fault);
  if (!wrong) return false;
  for (const CaseRun& run : c.runs) {
    Judge judge(c.function, run);
    if (!judge(evaluate(*wrong, judge.inputs())).empty()) return true;
  }
  return false;
}

// A CI campaign tries 1,000 functions, so it would find each of these faults.
TEST(Judge, PlantedFaultsAreFound) {
  constexpr std::uint64_t most = 1000;
  for (const Fault& fault : faults) {
    std::uint64_t seed = 1;
    while (seed <= most && !is_found(seed, fault)) ++seed;
    std::printf("%-40s found in function %llu\n", fault.name,
                static_cast<unsigned long long>(seed));
    EXPECT_LE(seed, most) << fault.name;
  }
}

}  // namespace
}  // namespace hone::fuzz
