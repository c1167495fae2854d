// Data-dependent sizes, from a function to a plan file: the plan runs again with other numbers, in
// the caller's memory, and refuses sizes that exceed their bound.
#include "ir/measured.h"
#include "ops/common.h"
#include "pass/expand.h"
#include "plan/plan_file.h"
#include "test/compile/models.h"
#include "verify/sizes.h"

namespace hone {
namespace {

using namespace test;

Source dynamic(const Function& f) { return {"dynamic", {{{}, f}}, {}}; }

Array numbers(const std::vector<float>& values) {
  return Array::of<float>(DType::f32, {static_cast<std::int64_t>(values.size())}, values);
}

// The first `count` of 2 * x, and their sum; count is a parameter.
Function first_of(const Dim& size) {
  Function f;
  Value x = f.add_param(f32({size}), "x"), count = f.add_param(i64({}), "count");
  const Dim s = Dim::symbol("count.n", 0, size.high());
  ops::measure(count, {{"symbol", Dims{s}}, {"high", Dims{size}}});
  Value front = slice_axis(x + x, 0, 0, s);
  f.add_result(front, "front");
  f.add_result(reduce_axes(ops::reduce_sum, front, {0}), "sum");
  f.add_result(dims_value(f.graph(), {s * Dim(10)}, DType::i64, {}), "tenfold");
  f.add_result(broadcast_to(count, Shape{s, 2}), "counts");
  return f;
}

void expect_front(const std::vector<Array>& got, const Array& x, std::int64_t count) {
  ASSERT_EQ(got.size(), 4u);
  ASSERT_EQ(got[0].dims(), std::vector<std::int64_t>{count});
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(got[0].real(i), 2 * x.real(i));
    sum += 2 * x.real(i);
  }
  EXPECT_EQ(got[1].real(0), sum);
  EXPECT_EQ(got[2].integer(0), count * 10);
  ASSERT_EQ(got[3].dims(), (std::vector<std::int64_t>{count, 2}));
  for (std::int64_t i = 0; i < 2 * count; ++i) EXPECT_EQ(got[3].integer(i), count);
}

Array integer(std::int64_t n) { return Array::scalar_int(n, DType::i64); }

// 2 * x in a data-dependent shape, twice. One of its kernels would read past the end of x if the
// element counts differed.
Function reshaped_twice(const Dim& size) {
  Function f;
  Value v = f.add_param(f32({size}), "x");
  for (const char* name : {"a", "b", "c", "d"}) {
    if (name[0] == 'c') v = reshape_to(v + v, {v.shape().count()});
    const Dim s = Dim::symbol(cat(name, ".n"), 0, 1 << 20);
    ops::measure(f.add_param(i64({}), name), {{"symbol", Dims{s}}, {"high", Dims{size}}});
    if (name[0] == 'b') v = reshape_to(v, {Dim::symbol("a.n", 0, 1 << 20), s});
    if (name[0] == 'd') v = reshape_to(v, {Dim::symbol("c.n", 0, 1 << 20), s});
  }
  f.add_result(v, "y");
  return f;
}

TEST(Dynamic, SizesToTryFitWhatIsRequiredOfThem) {
  const Function f = reshaped_twice(Dim::symbol("n", 1, 1 << 20));
  for (const std::int64_t n : {1, 2, 19, 64, 19456, 65521}) {
    const Sizing sizes = with_measured({{"n", n}}, measured_sizes(f.graph()), f.graph().checks());
    EXPECT_EQ(sizes.at("a.n") * sizes.at("b.n"), n);
    EXPECT_EQ(sizes.at("c.n") * sizes.at("d.n"), n);
    EXPECT_TRUE(checks_hold(f.graph().checks(), sizes));
  }
  EXPECT_FALSE(
      checks_hold(f.graph().checks(), {{"n", 8}, {"a.n", 2}, {"b.n", 2}, {"c.n", 2}, {"d.n", 4}}));
}

// Two sizes must be equal; one is at most 5, the other on its own at most 65,536.
TEST(Dynamic, SizesToTryFitTheLesserBound) {
  const Dim n = Dim::symbol("n", 1, 1 << 24), m = Dim::symbol("m", 0, 5);
  const DimCheck checks[] = {{max(Dim(65536), n), Dim(65536)}, {n, m}};
  const Sizing sizes = with_measured({}, {{n, 65536}, {m, 5}}, checks);
  EXPECT_TRUE(checks_hold(checks, sizes));
  EXPECT_GT(sizes.at("m"), 1);
}

TEST(Dynamic, ReshapesByDataRun) {
  EmptyCache cache;
  const Function f = reshaped_twice(Dim::symbol("n", 1, 4096));
  auto plan = std::make_shared<const Plan>(compile(dynamic(f), {.strategy = "cpu"}));
  std::unique_ptr<Session> session = session_of(plan);
  const Array x = numbers({1, 2, 3, 4, 5, 6});
  const std::vector<Array> y =
      session->run(std::vector<Array>{x, integer(2), integer(3), integer(3), integer(2)});
  EXPECT_EQ(y[0], Array::of<float>(DType::f32, {3, 2}, std::vector<float>{2, 4, 6, 8, 10, 12}));
  // Each size can be 6, but not both at once.
  EXPECT_EQ(session->output_dims()[0], (std::vector<std::int64_t>{6, 6}));
  EXPECT_EQ(session->output_bytes()[0], 6 * sizeof(float));
  EXPECT_THROW(session->run(std::vector<Array>{x, integer(2), integer(2), integer(3), integer(2)}),
               UserError);
}

TEST(Dynamic, IsMeasuredAnewInEachRun) {
  EmptyCache cache;
  const fs::path file = cache.directory() / "first.hone";
  for (const Dim& size : {Dim(8), Dim::symbol("n", 1, 1000)}) {
    const Function f = first_of(size);
    const Plan compiled = compile(dynamic(f), {.strategy = "cpu"});
    write_plan(file, compiled);
    for (bool from_file : {false, true}) {
      auto plan = std::make_shared<const Plan>(from_file ? read_plan(file) : compiled);
      std::unique_ptr<Session> session = session_of(plan);
      const Array x = numbers({1, -2, 3, 4, 5, 6, 7, 8});
      for (std::int64_t count : {3, 8, 0, 3, 1}) {
        SCOPED_TRACE(cat(count, " of ", size));
        const std::vector<Array> inputs = {x, integer(count)};
        expect_front(evaluate(f, inputs), x, count);
        expect_front(session->run(inputs), x, count);
      }
    }
  }
}

TEST(Dynamic, RefusesWhatBreaksItsBound) {
  EmptyCache cache;
  const Function f = first_of(4);
  auto plan = std::make_shared<const Plan>(compile(dynamic(f), {.strategy = "cpu"}));
  std::unique_ptr<Session> session = session_of(plan);
  for (std::int64_t count : {std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    const std::vector<Array> inputs = {numbers({1, 2, 3, 4}), integer(count)};
    for (bool by_reference : {true, false}) try {
        by_reference ? evaluate(f, inputs) : session->run(inputs);
        ADD_FAILURE() << count << " was taken";
      } catch (const UserError& e) {
        EXPECT_NE(std::string(e.what()).find("count.n"), std::string::npos) << e.what();
      }
  }
  expect_front(session->run(std::vector<Array>{numbers({1, 2, 3, 4}), integer(2)}),
               numbers({1, 2, 3, 4}), 2);
}

TEST(Dynamic, WritesIntoMemoryOfTheBound) {
  EmptyCache cache;
  auto plan = std::make_shared<const Plan>(compile(dynamic(first_of(6)), {.strategy = "cpu"}));
  std::unique_ptr<Session> session = session_of(plan);
  const std::int64_t six[] = {6}, pairs[] = {6, 2};
  alignas(64) float x[6] = {1, 2, 3, 4, 5, 6};
  alignas(64) std::int64_t count[8] = {2};
  alignas(64) float front[16], sum[16];
  alignas(64) std::int64_t tenfold[8], counts[16];
  session->bind_input(0, {DType::f32, six, memory_of(x, 6)});
  session->bind_input(1, {DType::i64, {}, memory_of(count, 1)});
  EXPECT_EQ(session->output_dims()[0], std::vector<std::int64_t>{6});
  session->bind_output(0, {DType::f32, six, memory_of(front, 6)});
  session->bind_output(1, {DType::f32, {}, memory_of(sum, 1)});
  session->bind_output(2, {DType::i64, {}, memory_of(tenfold, 1)});
  session->bind_output(3, {DType::i64, pairs, memory_of(counts, 12)});
  for (std::int64_t n : {2, 5, 5, 4}) {
    count[0] = n;
    session->run();
    EXPECT_EQ(session->result_dims()[0], std::vector<std::int64_t>{n});
    EXPECT_EQ(session->result_dims()[3], (std::vector<std::int64_t>{n, 2}));
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(front[i], 2 * x[i]);
    EXPECT_EQ(tenfold[0], 10 * n);
  }
  // The steps after the size are bound again for 2, 5 and 4.
  EXPECT_EQ(session->counters().binds, 4);
  const std::int64_t two[] = {2};
  session->bind_output(0, {DType::f32, two, memory_of(front, 2)});
  EXPECT_THROW(session->run(), UserError);
}

// Requirements on a data-dependent size are checked once the size is known.
TEST(Dynamic, ChecksComeAfterTheSize) {
  EmptyCache cache;
  Function f;
  Value x = f.add_param(f32({6}), "x"), count = f.add_param(i64({}), "count");
  const Dim s = Dim::symbol("s", 0, 6);
  ops::measure(count, {{"symbol", Dims{s}}, {"high", Dims{6}}});
  f.add_result(reshape_to(slice_axis(x, 0, 0, s), {2, 2}), "four");
  auto plan = std::make_shared<const Plan>(compile(dynamic(f), {.strategy = "cpu"}));
  std::unique_ptr<Session> session = session_of(plan);
  const Array six = numbers({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(session->run(std::vector<Array>{six, integer(4)})[0].real(3), 4);
  EXPECT_THROW(session->run(std::vector<Array>{six, integer(3)}), UserError);
  EXPECT_THROW(evaluate(f, std::vector<Array>{six, integer(3)}), UserError);
}

// A body measures its own size in every iteration.
TEST(Dynamic, IsMeasuredInABody) {
  EmptyCache cache;
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* f : {go.get(), next.get()})
    f->add_param(i64({}), "turn"), f->add_param(f32({}), "sum"), f->add_param(f32({5}), "x");
  go->add_result(ops::lt(go->param(0), constant(go->graph(), integer(5))));
  const Dim s = Dim::symbol("turn.n", 0, 5);
  ops::measure(next->param(0), {{"symbol", Dims{s}}, {"high", Dims{5}}});
  Value part = reduce_axes(ops::reduce_sum, slice_axis(next->param(2), 0, 0, s) * 3, {0});
  next->add_result(ops::add(next->param(0), constant(next->graph(), integer(1))));
  next->add_result(next->param(1) + part);
  Function f;
  Value x = f.add_param(f32({5}), "x");
  Value zero = constant(f.graph(), integer(0));
  f.add_result(ops::while_loop(std::vector<Value>{zero, scalar(f.graph(), 0, DType::f32), x},
                               {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}})
                   .result(1),
               "sum");
  auto plan = std::make_shared<const Plan>(compile(dynamic(f), {.strategy = "cpu"}));
  const std::vector<Array> inputs = {numbers({1, 2, 3, 4, 5})};
  const double expected = 3 * (1 * 4 + 2 * 3 + 3 * 2 + 4 * 1);
  EXPECT_EQ(evaluate(f, inputs)[0].real(0), expected);
  std::unique_ptr<Session> session = session_of(plan);
  EXPECT_EQ(session->run(inputs)[0].real(0), expected);
  EXPECT_EQ(session->run(inputs)[0].real(0), expected);
}

TEST(Dynamic, ABodyKeepsItsSizesToItself) {
  auto yes = std::make_shared<Function>(), no = std::make_shared<Function>();
  for (Function* f : {yes.get(), no.get()}) f->add_param(i64({}), "n"), f->add_param(f32({5}), "x");
  const Dim s = Dim::symbol("own", 0, 5);
  ops::measure(yes->param(0), {{"symbol", Dims{s}}, {"high", Dims{5}}});
  yes->add_result(slice_axis(yes->param(1), 0, 0, s));
  no->add_result(no->param(1));
  Function f;
  Value on = f.add_param(b1({}), "on"), n = f.add_param(i64({}), "n"),
        x = f.add_param(f32({5}), "x");
  try {
    ops::if_else(std::vector<Value>{on, n, x},
                 {{"then", FunctionRef(yes)}, {"else", FunctionRef(no)}});
    ADD_FAILURE() << "the size left its body";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("own"), std::string::npos) << e.what();
  }
}

TEST(Dynamic, MemoryIsPlannedAtTheBound) {
  EmptyCache cache;
  const Dim n = Dim::symbol("n", 1, 1 << 20);
  const Plan plan = compile(dynamic(first_of(n)), {.strategy = "cpu"});
  ASSERT_EQ(plan.main().variants[0].measured.size(), 1u);
  EXPECT_EQ(plan.main().variants[0].measured[0].most, n);
  for (const PlanBuffer& b : plan.main().variants[0].buffers) {
    EXPECT_FALSE(holds_symbol(b.bytes, "count.n"));
    EXPECT_FALSE(holds_symbol(b.offset, "count.n"));
  }
  EXPECT_FALSE(holds_symbol(plan.main().variants[0].devices[0].arena_bytes, "count.n"));
}

// Only the strides of the last columns depend on the number of columns.
TEST(Dynamic, AKernelIsForAllSizesOfItsVariant) {
  const Dim m = Dim::symbol("m", 1, 50), n = Dim::symbol("n", 4, 100'000);
  Function f;
  f.add_result(reverse_axes(slice_axis(f.add_param(f32({m, n}), "x"), 1, n - 4, 4), {1}), "y");
  const Source source{
      "columns",
      {{{{Guard::Kind::less_equal, n, 100}}, f}, {{{Guard::Kind::greater, n, 100}}, f}},
      {}};
  CompileReport report;
  const Plan plan = compile(source, {.strategy = "cpu", .keep = true}, &report);
  ASSERT_EQ(plan.main().variants.size(), 2u);
  int found = 0;
  for (const bool is_large : {false, true})
    for_each_step(plan.main().variants[is_large].steps, [&](const Step& s) {
      if (s.kind != Step::Kind::launch) return;
      for (const Dim& size : report.kernels_made.at(s.index).sizes) {
        if (size.name() != "n") continue;
        EXPECT_LE(size.low(), is_large ? 101 : 4);
        EXPECT_GE(size.high(), is_large ? 100'000 : 100);
        ++found;
      }
    });
  EXPECT_EQ(found, 2);
}

// A branch may require more of an input's size than the function does: kernels are checked at sizes
// that the branch accepts.
TEST(Verification, TakesSizesThatBranchesTake) {
  const Dim n = Dim::symbol("n", 1, 64);
  const auto body = [&](bool adds) {
    Function g;
    Value x = g.add_param(f32({n, 16}), "x");
    if (adds) x = x + constant(g.graph(), Array::zeros(DType::f32, {1, 16}));
    g.add_result(reduce_axes(ops::reduce_sum, x, {0, 1}), "y");
    return std::make_shared<const Function>(std::move(g));
  };
  Function f;
  Value condition = f.add_param(Type(DType::b1, Shape{}), "condition");
  Value x = f.add_param(f32({n, 16}), "x");
  f.add_result(ops::if_else(std::vector<Value>{condition, x}, {{"then", FunctionRef(body(true))},
                                                               {"else", FunctionRef(body(false))}}),
               "y");
  CompileReport report;
  compile(dynamic(f), {.strategy = "cpu", .threads = 1, .cache = false}, &report);
  EXPECT_GT(report.verified, 0);
}

// In f32, 1 plus a tiny number is 1, so none differ; in the reference's f64 all do.
TEST(Verification, TakesSizesThatRoundingDecides) {
  Function f;
  Value x = f.add_param(f32({35}), "x"), more = x + 1.0;
  Value differ = cast_to(ops::ne(more, constant_like(more, 1)), DType::i64);
  const Dim count = Dim::symbol("count", 0, 35);
  ops::measure(reduce_axes(ops::reduce_sum, differ, {0}),
               {{"symbol", Dims{count}}, {"high", Dims{35}}});
  f.add_result(slice_axis(x, 0, 0, count), "y");
  CompileReport report;
  compile(dynamic(f),
          {.strategy = "cpu", .verification = Verification::model, .threads = 1, .cache = false},
          &report);
  EXPECT_GT(report.verified, 0);
}

}  // namespace
}  // namespace hone
