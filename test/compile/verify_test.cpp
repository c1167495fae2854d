// Wrong kernels, given as text, that a check would miss if it used only ordinary inputs, one size,
// one order of chunks or memory with room after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "backend/backend.h"
#include "compile/compile.h"
#include "compile/kernels.h"
#include "compile/options.h"
#include "compile/store.h"
#include "ir/measured.h"
#include "ops/check.h"
#include "ops/common.h"
#include "ops/eval.h"
#include "ops/samples.h"
#include "test/kernel/steps.h"
#include "verify/kernel/candidate.h"
#include "verify/masks.h"
#include "verify/model/expansion.h"
#include "verify/sample.h"

namespace hone {
namespace {

using test::spec_of;

Type f32(Dims dims) { return {DType::f32, Shape(std::move(dims))}; }

// The message of verification for a kernel whose operands are the function's parameters and
// results; empty if it passes.
std::string refusal(const Function& f, const std::string& kernel, const Sizing& sizes = {},
                    const std::vector<Sizing>& others = {}) {
  const Backend& backend = default_backend();
  const std::unique_ptr<Target> target = backend.target(backend.target_names.front());
  CompileStore store(false);
  const std::unique_ptr<ThreadPool> pool = make_thread_pool({.threads = 1, .affinity = {}});
  KernelCompiler compile(*target, *pool, store.code);
  using Operand = Candidate::Operand;
  Candidate::Step step{parse_kernel(kernel), {}, {}, false};
  for (std::size_t i = 0; i < f.params().size(); ++i)
    step.operands.push_back({Operand::Kind::param, static_cast<int>(i)});
  for (std::size_t i = 0; i < f.results().size(); ++i)
    step.operands.push_back({Operand::Kind::result, static_cast<int>(i)});
  const Candidate candidate{"text", {step}, {}};
  const auto memory = std::make_shared<TrialMemory>(device_of(CompileOptions{}));
  try {
    const Comparison c = verify(spec_of(f), candidate, compile, memory, sizes, others);
    return c.ok ? "" : cat(c);
  } catch (const UserError& e) {
    return e.what();
  }
}

template <class Make>
Function of_x(const Type& type, Make make) {
  Function f;
  f.add_result(make(f.add_param(type, "x")), "y");
  return f;
}

Function negated(const Type& type) {
  return of_x(type, [](Value x) { return ops::neg(x); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Verify, AReadBehindAnOperandIsAFaultAlsoWhenItsValueIsNotUsed) {
  const auto kernel = [](const std::string& first) {
    return R"(kernel past
p0: f32[4096] strides [1]
p1: f32[4096] strides [1] written
chunks 1
for loop:0 < 4096
  %0 = load f32 p0[)" +
           first + R"(loop:0]
  p1[loop:0] = %0
for loop:1 < 4096
  %1 = load f32 p0[loop:1]
  %2 = neg %1
  p1[loop:1] = %2
)";
  };
  EXPECT_EQ(refusal(negated(f32({4096})), kernel("")), "");
  const std::string why = refusal(negated(f32({4096})), kernel("1+"));
  EXPECT_TRUE(contains(why, "memory that is not its own")) << why;
}

TEST(Verify, ChunksMayNotWriteOverEachOther) {
  const auto kernel = [](const std::string& also) {
    return R"(kernel order
p0: f32[400000] strides [1]
p1: f32[400000] strides [1] written
chunks 4
grid loop:0 < 4
)" + also +
           R"(  for loop:1 < 100000
    %0 = load f32 p0[100000*loop:0+loop:1]
    %1 = neg %0
    p1[100000*loop:0+loop:1] = %1
)";
  };
  EXPECT_EQ(refusal(negated(f32({400000})), kernel("")), "");
  const std::string why = refusal(negated(f32({400000})), kernel("  p1[399999] = f32(7)\n"));
  EXPECT_TRUE(contains(why, "order of its chunks")) << why;
}

// A check of a large computation runs only some of the chunks. It still finds a wrong last chunk,
// and a chunk that overwrites the result of another.
TEST(Verify, SomeChunksOfMuchWorkAreChecked) {
  const auto kernel = [](const std::string& also, const std::string& from) {
    return R"(kernel some
p0: f32[400000] strides [1]
p1: f32[400000] strides [1] written
chunks 200
grid loop:0 < 200
)" + also + "  for loop:1 < 2000\n    %0 = load f32 p0[2000*loop:0+" +
           from + R"(]
    %1 = neg %0
    p1[2000*loop:0+loop:1] = %1
)";
  };
  const Function f = of_x(f32({400000}), [](Value x) {
    for (int i = 0; i < 101; ++i) x = ops::neg(x);
    return x;
  });
  EXPECT_EQ(refusal(f, kernel("", "loop:1")), "");
  const std::string why = refusal(f, kernel("  p1[399999] = f32(7)\n", "loop:1"));
  EXPECT_TRUE(contains(why, "order of its chunks")) << why;
  // The last chunk reads the next element.
  const std::string last = "mod(loop:1+floor_div(loop:0,199),2000)";
  EXPECT_NE(refusal(f, kernel("", last)), "");
}

// Each chunk makes one result, so the chunks that run make too few for the first check, and all
// run. In the next check, the results of the first must not count as those of chunks that did not
// run.
TEST(Verify, ResultsOfAnEarlierRunAreNotThoseOfTheNext) {
  const Function f = of_x({DType::i8, {200, 176'000}},
                          [](Value x) { return reduce_axes(ops::reduce_max, x, {1}); });
  EXPECT_EQ(refusal(f, R"(kernel rows
p0: i8[200,176000] strides [176000,1]
p1: i8[200] strides [1] written
chunks 200
grid loop:0 < 200
  var r0: i8 = i8(-128)
  for loop:1 < 176000
    %0 = load i8 p0[176000*loop:0+loop:1]
    r0 maximum= %0
  p1[loop:0] = r0
)"),
            "");
}

// Two operands of sizes that only data knows are repeated to the larger of both, which a group
// requires to be equal.
TEST(Verify, SizesThatDoNotFitTogetherAreNotTried) {
  const Dim m = Dim::symbol("m", 0, 100), q = Dim::symbol("q", 0, 100);
  Function f;
  const Value x = f.add_param({DType::i64, {m}}, "x"), y = f.add_param({DType::i64, {q}}, "y");
  const Shape both{max(m, q)};
  f.add_result(ops::bit_or(broadcast_to(x, both), broadcast_to(y, both)), "z");
  const GroupSpec spec = spec_of(f);
  const Sizing fits = {{"m", 5}, {"q", 5}}, other = {{"m", 4}, {"q", 19}};
  EXPECT_EQ(allowed_sizes(spec, fits, {}), fits);
  EXPECT_EQ(allowed_sizes(spec, other, std::vector{other, fits}), fits);
  const std::optional<Sizing> made = allowed_sizes(spec, other, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("m"), made->at("q"));
}

// If most of a few sampled elements are zero, they do not show how large the others are, so many
// are compared. Elements in chunks that did not run must not count.
TEST(Verify, FewElementsOfMuchWorkMayBeSmallBesideTheOthers) {
  const auto kernel = [](const std::string& depth) {
    return R"(kernel sums
p0: f32[2560,6400] strides [6400,1]
p1: f32[6400] strides [1]
p2: f32[2560] strides [1] written
chunks 40
grid loop:0 < 40
  for loop:1 < 64
    var r0: f32 = f32(0)
    for loop:2 < )" +
           depth + R"(
      %0 = load f32 p0[409600*loop:0+6400*loop:1+loop:2]
      %1 = load f32 p1[loop:2]
      %2 = mul %0 %1
      r0 add= %2
    %3 = sub r0 f32(27)
    %4 = maximum %3 f32(0)
    p2[64*loop:0+loop:1] = %4
)";
  };
  Function f;
  const Value x = f.add_param(f32({2560, 6400}), "x"), w = f.add_param(f32({6400}), "w");
  f.add_result(ops::relu(dot_general(x, w, {}, {{1, 0}}) - 27.0));
  for (const char* seed : {"0", "1", "2", "3"}) {
    ::setenv("HONE_SEED", seed, 1);
    EXPECT_EQ(refusal(f, kernel("6400")), "") << seed;
    EXPECT_NE(refusal(f, kernel("6399")), "") << seed;
  }
  ::unsetenv("HONE_SEED");
}

TEST(Verify, RowsMayBeNegativeAllAlong) {
  const auto kernel = [](const std::string& start) {
    return R"(kernel top
p0: f32[4,8] strides [8,1]
p1: f32[4] strides [1] written
chunks 4
grid loop:0 < 4
  var r0: f32 = f32()" +
           start + R"()
  for loop:1 < 8
    %0 = load f32 p0[8*loop:0+loop:1]
    r0 maximum= %0
  p1[loop:0] = r0
)";
  };
  const Function f =
      of_x(f32({4, 8}), [](Value x) { return reduce_axes(ops::reduce_max, x, {1}); });
  EXPECT_EQ(refusal(f, kernel("-inf")), "");
  const std::string why = refusal(f, kernel("0"));
  EXPECT_TRUE(contains(why, "got 0,")) << why;
}

// tanh, but 0 where |x| lies between `low` and `high`.
std::string tanh_without(const std::string& low, const std::string& high) {
  return cat(R"(kernel piece
p0: f32[512] strides [1]
p1: f32[512] strides [1] written
chunks 1
for loop:0 < 512
  %0 = load f32 p0[loop:0]
  %1 = abs %0
  %2 = lt f32()",
             low, R"() %1
  %3 = lt %1 f32()",
             high, R"()
  %4 = bit_and %2 %3
  %5 = tanh %0
  %6 = select %4 f32(0) %5
  p1[loop:0] = %6
)");
}

Function tanh_of_many() {
  return of_x(f32({512}), [](Value x) { return ops::tanh(x); });
}

// Random numbers are below 8 and extreme ones mostly above 30,000.
TEST(Verify, NumbersBetweenUsualAndHugeOnesCount) {
  EXPECT_EQ(refusal(tanh_of_many(), tanh_without("30000", "30000")), "");
  EXPECT_NE(refusal(tanh_of_many(), tanh_without("8", "30000")), "");
}

// Other numbers repeat, so the maximum would not occur only at the end of a long row.
TEST(Verify, TheEndOfALongRowCounts) {
  const auto kernel = [](int end) {
    return cat(R"(kernel top
p0: f32[9000] strides [1]
p1: f32[] strides [] written
chunks 1
var r0: f32 = f32(-inf)
for loop:0 < )",
               end, R"(
  %0 = load f32 p0[loop:0]
  r0 maximum= %0
p1[0] = r0
)");
  };
  const Function f =
      of_x(f32({9000}), [](Value x) { return reduce_axes(ops::reduce_max, x, {0}); });
  EXPECT_EQ(refusal(f, kernel(9000)), "");
  EXPECT_NE(refusal(f, kernel(8999)), "");
}

TEST(Verify, SmallNumbersCountBesideLargeOnes) {
  EXPECT_EQ(refusal(tanh_of_many(), tanh_without("-1", "0")), "");
  EXPECT_NE(refusal(tanh_of_many(), tanh_without("-1", "1e-07")), "");
}

TEST(Verify, OtherSizesTakeOtherPaths) {
  const auto kernel = [](const std::string& extent) {
    return R"(kernel tail
size n 0..100
p0: f32[n] strides [1]
p1: f32[n] strides [1] written
chunks 1
for loop:0 < )" +
           extent + R"(
  %0 = load f32 p0[loop:0]
  %1 = neg %0
  p1[loop:0] = %1
)";
  };
  const Function f = negated(f32({Dim::symbol("n", 0, 100)}));
  const std::vector<Sizing> others = {{{"n", 0}}, {{"n", 7}}};
  EXPECT_EQ(refusal(f, kernel("n"), {{"n", 16}}, others), "");
  const std::string short_tail = "8*floor_div(n,8)";
  EXPECT_EQ(refusal(f, kernel(short_tail), {{"n", 16}}), "");
  const std::string why = refusal(f, kernel(short_tail), {{"n", 16}}, others);
  EXPECT_TRUE(contains(why, "at n = 7")) << why;
}

constinit const Op half = {
    .name = "half",
    .doc = "x / 2.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_equal(c, 1, Accept::real); },
    .expand = [](const Call& c) -> Values { return {c.operands[0] * 0.5}; },
    .real = [](double x) { return x / 2; },
    .eval = eval_real<half>,
    .samples = real_unary_samples,
};

// Plans and the reference both compute the expansion, so neither shows that it is wrong.
TEST(Verify, AnExpansionIsHeldAgainstTheDefinition) {
  const auto check = [](const Op& op) -> std::string {
    const Function f = of_x(f32({Dim(3), Dim::symbol("n", 1, 9)}), [&](Value x) {
      const OriginScope scope(x.graph(), Origin{7, "middle", "Half"});
      return ops::exp(x.graph().intern(op, std::vector{x}, {}));
    });
    try {
      check_expansions(f, {{"n", 5}});
      return "";
    } catch (const InternalError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(check(half), "");
  const Function open =
      of_x(f32({Dim::symbol("data", 1, 9)}), [](Value x) { return ops::relu(x); });
  check_expansions(open, {});  // a size known only at run time is not checked
  Function measured;
  const Dim some = Dim::symbol("some", 0, 9);
  ops::measure(measured.add_param(i64({}), "n"), {{"symbol", Dims{some}}, {"high", Dims{9}}});
  const Value one = scalar(measured.graph(), 1, DType::f32);
  measured.add_result(ops::softmax(broadcast_to(one, {some}), {{"axis", std::int64_t{0}}}), "y");
  check_expansions(measured, {});  // unless the function measures it
  Function special;                // the definition subtracts infinities
  Array few = Array::zeros(DType::f32, {1, 3});
  few.set_real(0, -INFINITY);
  special.add_result(ops::softmax(constant(special.graph(), few), {{"axis", std::int64_t{1}}}));
  check_expansions(special, {});
  Op wrong = half;
  wrong.expand = [](const Call& c) -> Values { return {c.operands[0] * 0.51}; };
  std::string why = check(wrong);
  EXPECT_TRUE(contains(why, "refused: half") && contains(why, "'middle'")) << why;
  // Wrong for large numbers only.
  wrong.expand = [](const Call& c) -> Values {
    const Value y = c.operands[0] * 0.5;
    return {ops::minimum(y, constant_like(y, 100))};
  };
  why = check(wrong);
  EXPECT_TRUE(contains(why, "refused: half") && contains(why, "'middle'")) << why;
}

// For numbers near 1000, the sum of squares minus the square of the sum is only rounding error.
TEST(Verify, AnExpansionOfRowsKeepsWhatIsLeftOfLargeNumbers) {
  const auto check = [](const Op& op) -> std::string {
    Function f;
    const Value x = f.add_param(f32({4, 64}), "x");
    f.add_result(f.graph().intern(op, std::vector{x}, {{"axes", Dims{1}}}));
    try {
      check_expansions(f, {});
      return "";
    } catch (const InternalError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(check(ops::variance), "");
  Op wrong = ops::variance;
  wrong.expand = [](const Call& c) -> Values {
    const Value x = c.operands[0];
    const auto mean = [&](Value v) { return reduce_axes(ops::reduce_sum, v, {1}) / 64.0; };
    return {mean(x * x) - mean(x) * mean(x)};
  };
  const std::string why = check(wrong);
  EXPECT_TRUE(contains(why, "refused: variance") && contains(why, "next to 1000")) << why;
}

int evaluated = 0;

constinit const Op same = {
    .name = "same",
    .doc = "x, at the price of a product.",
    .kind = OpKind::elementwise,
    .infer = [](const Call& c) { return infer_equal(c, 1, Accept::real); },
    .expand = [](const Call& c) -> Values {
      const Value x = c.operands[0];
      return {x + ops::matmul(x, x) * 0.0};
    },
    .eval = [](const Evaluation& e) -> std::vector<Wide> {
      ++evaluated;
      return {*e.inputs[0]};
    },
    .samples = real_unary_samples,
};

// Only expansions that are cheap to compute are evaluated; the same expansion in several layers is
// evaluated once, whatever the weights are.
TEST(Verify, FewExpansionsOfAModelAreEvaluated) {
  Function large;
  large.add_result(
      large.graph().intern(same, std::vector{large.add_param(f32({512, 512}), "x")}, {}));
  check_expansions(large, {});
  EXPECT_EQ(evaluated, 0);
  Function layers;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Value w = constant(layers.graph(), sample_array(f32({9, 9}), {}, Fill::random, seed));
    layers.add_result(layers.graph().intern(same, std::vector{w}, {}));
  }
  check_expansions(layers, {});
  EXPECT_EQ(evaluated, 2);  // on ordinary and on wide numbers
}

// Both branches of an if on a parameter are tried.
TEST(Verify, AConditionIsTrueAndFalse) {
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    const Type t{DType::b1, {}};
    EXPECT_NE(sample_array(t, {}, Fill::spread, seed).integer(0),
              sample_array(t, {}, Fill::negative, seed).integer(0));
  }
}

TEST(Samples, ADigestCountsEveryByte) {
  for (const DType t : {DType::f32, DType::f16, DType::i8})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{40}, std::size_t{20'000},
                                    std::size_t{60'000}, 3 * sample_period_bytes + 1000}) {
      std::vector<std::byte> memory(bytes);
      sample(memory, t, Fill::random, 5);
      const auto digest = sample_digest(memory, t);
      ASSERT_TRUE(digest);
      for (std::size_t at = 0; at < bytes; at += at < 40 ? 1 : 997) {
        memory[at] ^= std::byte{16};
        EXPECT_NE(sample_digest(memory, t), digest) << at << " of " << bytes;
        memory[at] ^= std::byte{16};
      }
      if (bytes > 0) {
        memory.back() ^= std::byte{1};
        EXPECT_NE(sample_digest(memory, t), digest);
      }
    }
}

TEST(Samples, ASeedTriesOtherNumbers) {
  const auto made = [](std::uint64_t seed) {
    return sample_array(f32({1000}), {}, Fill::random, seed);
  };
  const Array first = made(1), second = made(2);
  ::setenv("HONE_SEED", "7", 1);
  EXPECT_FALSE(made(1) == first);
  EXPECT_FALSE(made(1) == second);
  ::unsetenv("HONE_SEED");
  EXPECT_TRUE(made(1) == first);
  // Two inputs do not hold the same numbers, not even at different positions.
  const std::span<const float> a = first.as<float>(), b = second.as<float>();
  const std::set<float> of_first(a.begin(), a.end());
  EXPECT_LT(std::ranges::count_if(b, [&](float x) { return of_first.contains(x); }), 3);
}

// All pairs of integer extremes occur, such as the lowest integer with the divisor -1.
TEST(Samples, SpecialNumbersMeet) {
  const Array a = sample_array(Type(DType::i32, {4000}), {}, Fill::extreme, 1),
              b = sample_array(Type(DType::i32, {4000}), {}, Fill::extreme, 2);
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (i % 16 == 3) pairs.emplace(a.integer(i), b.integer(i));
  EXPECT_EQ(pairs.size(), 36u);
  EXPECT_TRUE(pairs.contains({std::numeric_limits<std::int32_t>::min(), -1}));
}

// An array of any size holds each special number in some draw.
TEST(Samples, DrawsHoldEverySpecialNumber) {
  const auto text = [](const Array& a, std::int64_t i) {
    if (!is_float(a.dtype())) return cat(a.integer(i));
    return std::isnan(a.real(i)) ? std::string("nan") : cat(a.real(i));
  };
  for (const DType t : {DType::f32, DType::f16, DType::i32, DType::u8}) {
    std::set<std::string> special;
    const Array all = sample_array(Type(t, {4000}), {}, Fill::extreme, 1);
    for (std::int64_t i = 3; i < all.count(); i += 16)
      if (i / 64 % 6 != 1) special.insert(text(all, i));
    for (const std::int64_t count : {1, 2, 3, 4, 5, 16, 20, 63, 64, 100, 130, 500}) {
      std::set<std::string> found;
      const std::int64_t draws = extreme_draws(count, t);
      EXPECT_LE(draws, 22);
      for (std::int64_t draw = 0; draw < draws; ++draw) {
        const Array a =
            sample_array(Type(t, {count}), {}, Fill::extreme, seed_of_draw(5, draw, count, t));
        for (std::int64_t i = 0; i < count; ++i) found.insert(text(a, i));
      }
      for (const std::string& x : special) EXPECT_TRUE(found.contains(x)) << t << count << " " << x;
    }
  }
}

// Some rows of a mask hide their whole first half, or nearly everything, but not their end.
TEST(Samples, MasksHideTheBeginningsOfRows) {
  for (const DType t : {DType::b1, DType::f32})
    for (const std::int64_t width : {2, 16, 100, 300}) {
      Array a = sample_array(Type(t, {16, width}), {}, Fill::random, 1);
      hide_rows(a.writable_bytes(), t, a.dims(), 1);
      int halves = 0, most = 0;
      for (std::int64_t row = 0; row < 16; ++row) {
        std::int64_t hidden = 0;
        const auto is_hidden = [&](std::int64_t i) {
          return is_float(t) ? std::isinf(a.real(i)) : a.integer(i) == 0;
        };
        while (hidden < width && is_hidden(row * width + hidden)) ++hidden;
        const bool has_end = !is_hidden(row * width + width - 1);
        halves += has_end && hidden >= width / 2;
        most += has_end && hidden >= width - 1 - width / 8;
      }
      EXPECT_GE(halves, 6) << t << width;
      EXPECT_GE(most, 4) << t << width;
    }
}

// A rounding that adds to the bits of a NaN turns some NaNs into other numbers.
TEST(Samples, NaNHasSeveralBits) {
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Array a = sample_array(Type(t, {4000}), {}, Fill::extreme, 1);
    const auto size = static_cast<std::size_t>(byte_size(t));
    std::set<std::vector<std::byte>> found;
    for (std::int64_t i = 0; i < a.count(); ++i)
      if (std::isnan(a.real(i))) {
        const auto from = a.bytes().begin() + i * byte_size(t);
        found.emplace(from, from + static_cast<std::ptrdiff_t>(size));
      }
    EXPECT_EQ(found.size(), 4u) << t;
  }
}

// A mask row that hides everything is a different case from one that hides some elements.
TEST(Samples, SomeRowsOfBoolsAreOneNumber) {
  for (const Fill fill : {Fill::random, Fill::negative, Fill::extreme})
    for (const std::int64_t width : {2, 16, 64, 100, 256}) {
      const Array a = sample_array(Type(DType::b1, {64, width}), {}, fill, 1);
      int of_false = 0, of_true = 0;
      for (std::int64_t row = 0; row < 64; ++row) {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < width; ++i) sum += a.integer(row * width + i);
        of_false += sum == 0;
        of_true += sum == width;
      }
      EXPECT_TRUE(of_false > 0 && of_false < 32) << width;
      EXPECT_TRUE(of_true > 0 && of_true < 32) << width;
    }
}

// Devices that may flush denormals to zero get none, but all other special numbers.
TEST(Samples, HoldDenormalsOnlyForDevicesThatKeepThem) {
  for (const bool keeps : {true, false}) {
    const Array a = sample_array(f32({4000}), {}, extreme_of(keeps), 1);
    int denormals = 0, infinities = 0, nans = 0;
    for (std::int64_t i = 0; i < a.count(); ++i) {
      const double x = a.real(i);
      denormals += std::fpclassify(static_cast<float>(x)) == FP_SUBNORMAL;
      infinities += std::isinf(x);
      nans += std::isnan(x);
    }
    EXPECT_EQ(denormals > 0, keeps);
    EXPECT_GT(infinities, 0);
    EXPECT_GT(nans, 0);
  }
}

}  // namespace
}  // namespace hone
