// Reductions with few results, scatters with many updates and sorts of long rows are divided
// between threads, and give the same bits on any number of threads.
#include <limits>

#include "kernel/forms/forms.h"
#include "kernel/nest/lower.h"
#include "ops/common.h"
#include "ref/evaluate.h"
#include "target/target_info.h"
#include "test/compile/models.h"

namespace hone {
namespace {

using namespace test;

Plan plan_of(const Function& f) {
  return compile({"parallel", {{{}, f}}, {}}, {.strategy = "cpu", .cache = false});
}

std::int64_t most_chunks(const Plan& plan) {
  std::int64_t most = 0;
  for (const Step& s : plan.main().variants[0].steps)
    if (s.kind == Step::Kind::launch) most = std::max(most, s.chunks.number());
  return most;
}

std::vector<Array> inputs_of(const Function& f) {
  std::vector<Array> out;
  for (const Type& t : f.param_types()) {
    std::vector<std::int64_t> dims;
    for (const Dim& d : t.shape.dims) dims.push_back(d.number());
    Array a = Array::zeros(t.dtype, dims);
    std::uint32_t x = 12345;
    for (std::int64_t i = 0; i < a.count(); ++i) {
      x = x * 1664525 + 1013904223;
      if (is_float(t.dtype))
        a.set_real(i, static_cast<double>(x >> 8) / (1 << 23) - 1);
      else
        a.set_integer(i, static_cast<std::int64_t>(x >> 8) % (t.dtype == DType::b1 ? 2 : 1000));
    }
    out.push_back(std::move(a));
  }
  return out;
}

// Correct, in several chunks, and equal on one thread and on three.
void expect_divided(const Function& f) {
  const Plan plan = plan_of(f);
  EXPECT_GE(most_chunks(plan), 4) << print(f);
  const std::vector<Array> inputs = inputs_of(f);
  auto shared = std::make_shared<const Plan>(plan);
  std::vector<std::vector<Array>> got;
  for (int threads : {1, 3}) {
    Session session(Executable::load(shared, open_device("cpu")), {.threads = threads});
    got.push_back(session.run(inputs));
  }
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got[0].size(); ++i) {
    EXPECT_TRUE(got[0][i] == got[1][i]) << "result " << i << " of\n" << print(f);
    EXPECT_TRUE(accept(got[0][i], strict[i], wide[i]).ok) << "result " << i << " of\n" << print(f);
  }
}

constexpr std::int64_t many = (1 << 19) + 37;

TEST(Parallel, FullReductions) {
  for (const Op* op : {&ops::reduce_sum, &ops::reduce_max, &ops::reduce_min, &ops::reduce_prod}) {
    Function f;
    Value x = f.add_param(f32({many}), "x");
    // Only -1, 1 and a few 2: exact in every order.
    if (op == &ops::reduce_prod)
      x = (ops::floor(x) * 2.0 + 1.0) * (ops::relu(ops::ceil(x - 0.9999)) + 1.0);
    f.add_result(reduce_axes(*op, x, {0}), "y");
    expect_divided(f);
  }
}

TEST(Parallel, ReductionsOfNarrowNumbersAndBits) {
  Function f;
  Value x = f.add_param(Type(DType::f16, Shape{many}), "x");
  f.add_result(reduce_axes(ops::reduce_sum, x, {0}), "sum");
  expect_divided(f);
  for (const Op* op : {&ops::reduce_and, &ops::reduce_or}) {
    Function g;
    g.add_result(reduce_axes(*op, g.add_param(Type(DType::b1, Shape{8 * many}), "x"), {0}), "y");
    expect_divided(g);
  }
}

TEST(Parallel, FewRows) {
  Function f;
  Value x = f.add_param(f32({3, 1 << 18}), "x");
  f.add_result(reduce_axes(ops::reduce_sum, x * x, {1}), "rows");
  expect_divided(f);
  Function g;
  Value y = g.add_param(f32({1 << 17, 5}), "y");
  g.add_result(reduce_axes(ops::reduce_max, y, {0}), "columns");
  expect_divided(g);
  Function h;
  Value z = h.add_param(f32({1, 1 << 19}), "z");
  h.add_result(ops::softmax(z, {{"axis", 1}}), "y");
  expect_divided(h);
}

// Every step that reads a whole row is divided, not only the maximum.
TEST(Parallel, EveryPartOfALongSoftmax) {
  Function f;
  f.add_result(ops::softmax(f.add_param(f32({1, 1 << 20}), "x"), {{"axis", 1}}), "y");
  const Plan plan = plan_of(f);
  const Variant& v = plan.main().variants[0];
  int long_ones = 0;
  for (const Step& s : v.steps)
    if (s.kind == Step::Kind::launch && s.operands[0].dims == Dims{1, 1 << 20}) {
      ++long_ones;
      EXPECT_GE(s.chunks.number(), 4) << plan.kernels[s.index].entry;
    }
  EXPECT_EQ(long_ones, 3);  // the maximum, the sum and the quotient
}

// The first of equal elements, wherever the parts end; NaN comes before all others.
TEST(Parallel, PlacesOfExtremes) {
  const Attrs at_0 = {{"axis", 0}, {"dtype", DType::i64}};
  for (const Op* op : {&ops::argmax, &ops::argmin}) {
    Function f;
    Value x = f.add_param(f32({1 << 19}), "x");
    f.add_result((*op)(ops::floor(x * 4.0), at_0), "first");
    f.add_result((*op)(x, at_0), "only");
    f.add_result((*op)(ops::sqrt(x), at_0), "nan");
    expect_divided(f);
  }
}

TEST(Parallel, SmallReductionsStayOneKernel) {
  Function f;
  f.add_result(reduce_axes(ops::reduce_sum, f.add_param(f32({1000}), "x"), {0}), "y");
  EXPECT_EQ(plan_of(f).main().variants[0].steps.size(), 1u);
}

TEST(Parallel, ScattersDivideTheirRows) {
  for (const char* kind : {"set", "add", "max"}) {
    Function f;
    Value x = f.add_param(f32({1001, 64}), "x"), rows = f.add_param(i64({8000}), "rows"),
          change = f.add_param(f32({8000, 64}), "change");
    f.add_result(ops::scatter(Values{x, rows - integer_like(rows, 300), change},
                              {{"axis", 0}, {"kind", std::string(kind)}}),
                 "y");
    expect_divided(f);
  }
}

// Few distinct numbers, with infinities, NaN and zeros of both signs.
Array with_ties(std::int64_t n) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double special[] = {nan, infinity, -infinity, 0.0, -0.0};
  Array a = Array::zeros(DType::f32, {n});
  std::uint32_t x = 12345;
  for (std::int64_t i = 0; i < n; ++i) {
    x = x * 1664525 + 1013904223;
    const std::uint32_t random = x >> 16;
    a.set_real(i, random % 100 < 5 ? special[random % 100] : static_cast<double>(random % 997));
  }
  return a;
}

TEST(Parallel, SortsOfLongRows) {
  const std::int64_t n = (1 << 16) + 37;
  for (const Dim& length : {Dim(n), Dim::symbol("n", 1 << 15, 1 << 20)})
    for (int descending : {0, 1}) {
      SCOPED_TRACE(cat(length, descending ? " descending" : " ascending"));
      Function f;
      const Value x = f.add_param(Type(DType::f32, Shape{length}), "x"),
                  sorted = ops::sort(x, {{"axis", 0}, {"descending", descending}});
      f.add_result(sorted.result(0), "y");
      f.add_result(sorted.result(1), "places");
      f.add_result(slice_axis(sorted.result(1), 0, 0, 5), "first");
      const Value top =
          ops::sort(x, {{"axis", 0}, {"descending", descending}, {"count", Dims{50}}});
      f.add_result(top.result(0), "top");
      f.add_result(top.result(1), "top_places");
      auto plan = std::make_shared<const Plan>(plan_of(f));
      EXPECT_GE(most_chunks(*plan), 8);
      const Array inputs[] = {with_ties(n)};
      const std::vector<Array> expected = evaluate(f, inputs);
      for (int threads : {1, 2, 4}) {
        Session session(Executable::load(plan, open_device("cpu")), {.threads = threads});
        const std::vector<Array> got = session.run(inputs);
        for (std::size_t i = 0; i < expected.size(); ++i)
          EXPECT_TRUE(got[i] == expected[i]) << "result " << i << ", " << threads << " threads";
      }
    }
}

TEST(Parallel, SortsOfFewLongRows) {
  Function f;
  const Value x = f.add_param(f32({3, 50'021}), "x");
  f.add_result(ops::sort(x, {{"axis", 1}, {"descending", 1}}).result(1), "order");
  expect_divided(f);
}

}  // namespace
}  // namespace hone
