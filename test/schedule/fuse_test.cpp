// Tests of which nodes are fused into one group.
#include "simulate.h"

namespace hone {
namespace {

std::vector<std::string> names(const Schedule& s) {
  std::vector<std::string> out;
  for (const ScheduledGroup& g : s.groups) out.push_back(s.specs[g.spec].name);
  return out;
}

Value weight(Function& f, std::vector<std::int64_t> dims) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i % 7) - 3);
  return constant(f.graph(), a);
}

TEST(Fuse, ContractionTakesItsEpilogue) {
  Function f;
  Value x = f.add_param(f32({5, 8}), "x"), y = dot_general(x, weight(f, {8, 6}), {}, {{1, 0}});
  Value b = broadcast_to(weight(f, {6}), y.shape());
  f.add_result(ops::gelu(y + b));
  EXPECT_EQ(names(simulate(f).schedule), std::vector<std::string>{"dot+add+gelu"});
}

// Where asked, a product of one row takes what makes the row.
TEST(Fuse, ProductsOfOneRowTakeItsNorm) {
  const ScheduleOptions wanted = {.rows_into_products = true};
  const auto norm = [](Function& f, Value x) {
    return ops::layer_norm(Values{x, weight(f, {64}), weight(f, {64})},
                           {{"axis", 1}, {"epsilon", 1e-5}});
  };
  const auto product = [&](std::int64_t rows, bool is_read_again) {
    Function f;
    const Value row = norm(f, f.add_param(f32({rows, 64}), "x") * 2.0),
                y = dot_general(row, weight(f, {64, 32}), {}, {{1, 0}});
    f.add_result(y + broadcast_to(weight(f, {32}), y.shape()));
    if (is_read_again) f.add_result(ops::matmul(row, weight(f, {64, 8})));
    return f;
  };
  EXPECT_EQ(names(simulate(product(1, false), wanted).schedule),
            std::vector<std::string>{"mul+layer_norm+dot+add"});
  const std::vector<std::string> two = {"mul+layer_norm", "dot+add"};
  EXPECT_EQ(names(simulate(product(1, false)).schedule), two);
  EXPECT_EQ(names(simulate(product(2, false), wanted).schedule), two);
  EXPECT_EQ(names(simulate(product(1, true), wanted).schedule),
            (std::vector<std::string>{"mul+layer_norm", "dot+add", "dot"}));
}

TEST(Fuse, TwoContractionsStayTwoAndTheLaterTakesTheSum) {
  Function f;
  Value x = f.add_param(f32({6, 6}), "x");
  Value a = dot_general(x, weight(f, {6, 6}), {}, {{1, 0}});
  Value b = dot_general(ops::relu(a), weight(f, {6, 6}), {}, {{1, 1}});
  f.add_result(ops::relu(a + b));
  Simulated s = simulate(f);
  EXPECT_EQ(names(s.schedule), (std::vector<std::string>{"dot+relu", "dot+add+relu"}));
  EXPECT_EQ(s.schedule.groups[0].results().size(), 2u);
}

TEST(Fuse, RowsTakeProducersAndConsumers) {
  Function f;
  Value x = f.add_param(f32({5, 8}), "x"), r = f.add_param(f32({5, 8}), "r");
  Value y = ops::layer_norm(Values{x + r, weight(f, {8}), weight(f, {8})},
                            {{"axis", 1}, {"epsilon", 1e-5}});
  f.add_result(ops::gelu(y));
  EXPECT_EQ(simulate(f).launches, 1);
  Function g;
  Value z = g.add_param(f32({5, 8}), "z");
  g.add_result(ops::softmax(z * 0.125, {{"axis", 1}}) * z);
  EXPECT_EQ(simulate(g).launches, 1);
}

// Two attentions over a window of keys before each query.
Function windowed(const Dim& length, bool is_read) {
  Function f;
  Values in;
  for (const char* name : {"q", "k", "v"}) in.push_back(f.add_param(f32({2, length, 4}), name));
  const Shape rows{length, 1}, columns{1, length}, scores{length, length};
  const Value query = iota_value(f.graph(), DType::i64, rows, 0),
              key = broadcast_to(iota_value(f.graph(), DType::i64, columns, 1), scores),
              first = broadcast_to(query - 3.0, scores);
  const Value mask = ops::bit_and(ops::le(key, broadcast_to(query, scores)), ops::lt(first, key));
  in.push_back(mask);
  const Value x = ops::attention(in, {{"scale", 0.5}});
  in[0] = x;
  f.add_result(ops::attention(in, {{"scale", 0.5}}));
  if (is_read) f.add_result(mask);
  return f;
}

// Attention fuses a large mask of positions to skip keys; reading a small mask is as fast.
TEST(Fuse, AttentionTakesLargeMasksOfPositions) {
  const Dim n = Dim::symbol("n", 1, 1 << 16);
  EXPECT_EQ(simulate(windowed(n, false), {}, {{"n", 7}}).launches, 2);
  EXPECT_EQ(schedule(windowed(1024, false)).groups.size(), 2u);
  EXPECT_GT(schedule(windowed(1023, false)).groups.size(), 2u);
  EXPECT_GT(schedule(windowed(1024, true)).groups.size(), 2u) << "somebody reads the mask";
}

TEST(Fuse, ReductionTakesItsProducersAndScalarConsumers) {
  Function f;
  Value x = f.add_param(f32({5, 8}), "x");
  f.add_result(ops::sqrt(reduce_axes(ops::reduce_sum, x * x, {1}) * 0.125));
  EXPECT_EQ(simulate(f).launches, 1);
}

// The squares are a result and need memory, and the sum has another shape.
TEST(Fuse, ReductionLeavesWhatOthersRead) {
  Function f;
  Value x = f.add_param(f32({5, 8}), "x"), squares = x * x;
  f.add_result(reduce_axes(ops::reduce_sum, squares, {1}));
  f.add_result(squares);
  EXPECT_EQ(simulate(f).launches, 2);
}

TEST(Fuse, ExpensiveProducersAreNotRepeated) {
  Function f;
  Value x = f.add_param(f32({64, 300}), "x"), v = f.add_param(f32({300}), "v");
  f.add_result(x + broadcast_to(ops::exp(v), x.shape()));
  EXPECT_EQ(simulate(f).launches, 2);
  Function g;
  x = g.add_param(f32({64, 300}), "x"), v = g.add_param(f32({300}), "v");
  g.add_result(x + broadcast_to(v * 2.0 + 1.0, x.shape()));
  EXPECT_EQ(simulate(g).launches, 1);
}

TEST(Fuse, StatisticsOfTheSameRowsAreOnePass) {
  Function f;
  Value x = f.add_param(f32({5, 8}), "x");
  Value mean = reduce_axes(ops::reduce_sum, x, {1}) * 0.125;
  Value squares = reduce_axes(ops::reduce_sum, x * x, {1}) * 0.125;
  f.add_result(mean);
  f.add_result(squares - mean * mean);
  EXPECT_EQ(simulate(f).launches, 1);
  Function g;
  x = g.add_param(f32({8, 8}), "x");
  g.add_result(reduce_axes(ops::reduce_sum, x, {1}) + reduce_axes(ops::reduce_sum, x, {0}));
  EXPECT_EQ(simulate(g).launches, 2);
}

TEST(Fuse, WideningIsLeftToTheReduction) {
  Function f;
  Value x = f.add_param(f16({6, 8}), "x");
  Value y = ops::relu(dot_general(x, x, {}, {{1, 1}}));
  f.add_result(reduce_axes(ops::reduce_sum, cast_to(y, DType::f32), {1}));
  Simulated s = simulate(f);
  EXPECT_EQ(names(s.schedule), (std::vector<std::string>{"dot+relu", "reduce_sum"}));
  EXPECT_EQ(s.schedule.groups[0].results()[0].dtype, DType::f16);
}

// neg(x) could join its user exp(n + d), but the nodes between depend on both.
TEST(Fuse, CirclesAreSeen) {
  Function f;
  Value x = f.add_param(f32({6, 6}), "x"), n = ops::neg(x);
  Value d = dot_general(n, n, {}, {{1, 1}});
  f.add_result(ops::exp(n + ops::softmax(d, {{"axis", 1}}) + n * d));
  simulate(f);
}

TEST(Fuse, SharedNumbersDoNotKeepGroupsApart) {
  Function f;
  Value x = f.add_param(f32({4}), "x"), y = f.add_param(f32({4}), "y");
  Value two = constant_like(x, 2);
  f.add_result(ops::exp(x * two) + two);
  f.add_result(ops::exp(y * two) + two);
  EXPECT_EQ(simulate(f).launches, 2);
}

Function graph_of(const std::function<void(Function&, Value)>& make) {
  Function f;
  make(f, f.add_param(f32({8}), "x"));
  return f;
}

// Kernels have limits, and scheduling time must grow only linearly with the graph.
TEST(Fuse, LargeGraphs) {
  constexpr std::size_t n = 20'000;
  Function chain = graph_of([](Function& f, Value v) {
    for (std::size_t i = 0; i < n; ++i) v = i % 2 ? ops::exp(v) : ops::neg(v);
    f.add_result(v);
  });
  EXPECT_LE(schedule(chain).groups.size(), n / 32);
  Function wide = graph_of([](Function& f, Value v) {
    for (std::size_t i = 0; i < n; ++i) f.add_result(ops::exp(v * static_cast<double>(i)));
  });
  EXPECT_EQ(schedule(wide).groups.size(), n);
  Function diamonds = graph_of([](Function& f, Value v) {
    for (std::size_t i = 0; i < n / 3; ++i) v = ops::maximum(ops::exp(v), ops::neg(v));
    f.add_result(v);
  });
  EXPECT_LE(schedule(diamonds).groups.size(), n / 32);
}

// A group whose result is read before its last node may depend on nodes after the reader.
TEST(Fuse, GroupsDoNotDependOnEachOther) {
  Function f;
  Value x = f.add_param(f32({4, 4}), "x"), y = f.add_param(f32({4, 4}), "y");
  Value early = ops::exp(x), sorted = ops::sort(early, {{"axis", 1}, {"descending", 0}});
  Value rows = ops::softmax(y, {{"axis", 1}});
  f.add_result(sorted.result(0));
  f.add_result(early * ops::transpose(rows, {{"perm", Dims{1, 0}}}));
  f.add_result(sorted.result(0) + rows);
  simulate(f);
}

}  // namespace
}  // namespace hone
