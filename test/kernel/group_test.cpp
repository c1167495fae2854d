// Kernels for machines whose threads run in groups, in the interpreter, against the reference:
// checks races, unwritten memory and barriers.
#include <gtest/gtest.h>

#include <array>

#include "../codegen/cases.h"
#include "kernel/forms/forms.h"
#include "kernel/groups/contraction.h"
#include "kernel/groups/few_row_product.h"
#include "kernel/groups/made_row.h"
#include "kernel/groups/tensor.h"
#include "kernel/nest/nest_candidate.h"
#include "kernel/walk.h"
#include "machines.h"
#include "run.h"

namespace hone::test {

namespace {

TargetInfo group_target(int threads = 256, std::int64_t bytes = 32 << 10) {
  TargetInfo t;
  t.name = "groups";
  t.group_threads = threads, t.group_bytes = bytes;
  return t;
}

std::vector<Array> inputs_of(const Function& f, std::int64_t size) {
  std::vector<Array> out;
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    Type t = f.param(i).type();
    for (Dim& d : t.shape.dims)
      d = d.substitute([&](const Dim&) { return std::optional<Dim>(size); });
    out.push_back(random_array(t, i + 1));
  }
  return out;
}

void expect_agrees(const Candidate& candidate, const Function& f,
                   const std::vector<Array>& inputs) {
  std::string text;
  for (const Candidate::Step& s : candidate.steps) text += print(std::get<Kernel>(s.what));
  SCOPED_TRACE(text);
  std::vector<Array> got;
  ASSERT_NO_THROW(got = interpret_candidate(candidate, f, inputs, all_checks));
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::strict),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison r = accept(got[i], strict[i], wide[i]);
    ASSERT_TRUE(r.ok) << r;
  }
  // The kernel survives a round trip through text.
  for (const Candidate::Step& s : candidate.steps) {
    const Kernel& k = std::get<Kernel>(s.what);
    const std::string printed = print(k);
    ASSERT_EQ(print(parse_kernel(printed)), printed);
    ASSERT_EQ(hash(parse_kernel(printed)), hash(k));
  }
}

void expect_agrees(const Candidate& candidate, const Function& f, std::int64_t size = 37) {
  expect_agrees(candidate, f, inputs_of(f, size));
}

void expect_contraction(const Function& f, const Tuning& tuning = {}, std::int64_t size = 37) {
  SCOPED_TRACE(print(f));
  const std::optional<Candidate> c =
      group_contraction_candidate(spec_of(f), group_target(), tuning);
  ASSERT_TRUE(c);
  ASSERT_EQ(c->steps.size(), 1u);
  expect_agrees(*c, f, size);
}

Function product(Type a, Type b) {
  Function f;
  const Value x = f.add_param(a, "x"), w = f.add_param(b, "w");
  f.add_result(ops::matmul(x, w));
  return f;
}

TargetInfo row_target() { return group_target(1024, 200 << 10); }

void expect_rows(const Function& f, const Tuning& tuning, std::int64_t size = 37) {
  SCOPED_TRACE(print(f));
  const std::optional<Candidate> c = few_row_product_candidate(spec_of(f), row_target(), tuning);
  ASSERT_TRUE(c);
  expect_agrees(*c, f, size);
}

// x times w, or times its transpose.
Function rows_of(const Type& x, const Type& w, bool is_transposed) {
  Function f;
  const Value a = f.add_param(x, "x"), b = f.add_param(w, "w");
  f.add_result(is_transposed ? dot_general(a, b, {}, {{1, 1}}) : ops::matmul(a, b));
  return f;
}

// A product whose depth is n steps of 16, and may be empty; another parameter provides n.
Function product_of_open_depth(DType t, std::int64_t rows, std::int64_t columns) {
  const Dim n = Dim::symbol("n", 0, 300);
  Function f = product(Type(t, {rows, n * Dim(16)}), Type(t, {n * Dim(16), columns}));
  f.add_param(Type(t, {n}), "n");
  return f;
}

TEST(FewRowProduct, SizesAroundTheTile) {
  for (const bool is_transposed : {false, true})
    for (const Tuning& t : {Tuning{{"threads", 64}, {"vectors", 2}, {"unroll", 2}},
                            Tuning{{"threads", 32}, {"vectors", 4}, {"unroll", 4}}})
      for (const DType d : {DType::f16, DType::f32})
        for (const std::int64_t m : {1, 3})
          for (const std::int64_t n : {16, 31, 40, 64})
            for (const std::int64_t k : {64, 71, 72, 256})
              expect_rows(rows_of(Type(d, {m, k}),
                                  is_transposed ? Type(d, {n, k}) : Type(d, {k, n}), is_transposed),
                          t);
}

TEST(FewRowProduct, EveryTuning) {
  for (const bool is_transposed : {false, true}) {
    const Function f =
        rows_of(Type(DType::bf16, {2, 768}),
                is_transposed ? Type(DType::bf16, {300, 768}) : Type(DType::bf16, {768, 300}),
                is_transposed);
    const std::vector<Tuning> space = few_row_product_space(spec_of(f), row_target());
    EXPECT_GT(space.size(), 5u);
    for (const Tuning& t : space) expect_rows(f, t);
  }
}

// Symbolic sizes, matrices of a batch, weights converted from narrow dtypes, and epilogues.
TEST(FewRowProduct, WhatIsAroundIt) {
  const Dim n = Dim::symbol("n", 0, 4096);
  const Tuning t = {{"threads", 32}, {"vectors", 2}, {"unroll", 2}};
  for (const std::int64_t size : {0, 16, 37, 64}) {
    expect_rows(rows_of(Type(DType::f16, {2, 96}), Type(DType::f16, {96, n}), false), t, size);
    expect_rows(rows_of(Type(DType::f16, {1, n}), Type(DType::f16, {40, n}), true), t, size);
  }
  Function f;
  const Value x = f.add_param(Type(DType::f16, {3, 2, 72}), "x"),
              w = f.add_param(Type(DType::i8, {3, 72, 24}), "w"),
              b = f.add_param(Type(DType::f16, {24}), "b");
  const Value y = dot_general(x, cast_to(w, DType::f16) * 0.25, {{0, 0}}, {{2, 1}});
  f.add_result(ops::gelu(y + broadcast_to(b, y.shape())));
  expect_rows(f, t);
}

TEST(FewRowProduct, LeavesManyRowsAndShortOnesToTiles) {
  for (const Function& f :
       {rows_of(f32({5, 256}), f32({256, 256}), false),
        rows_of(Type(DType::f32, {Dim::symbol("n", 1, 9), 256}), f32({256, 256}), false),
        rows_of(f32({1, 32}), f32({32, 256}), false)})
    EXPECT_FALSE(few_row_product_candidate(spec_of(f), row_target(), {}));
}

// A product of one row, [1, k] or [k], that a norm or a softmax makes, with a bias behind it.
Function made_row(const Type& x, std::int64_t columns, bool is_norm, bool is_transposed) {
  const std::int64_t k = x.shape[-1].number();
  Function f;
  const Value a = f.add_param(x, "x"),
              w = f.add_param(Type(x.dtype, is_transposed ? Shape{columns, k} : Shape{k, columns}),
                              "w"),
              b = f.add_param(Type(x.dtype, {columns}), "b");
  const int axis = x.shape.rank() - 1;
  Value row = a + a * 0.5;
  if (is_norm) {
    const Type of_row(x.dtype, {k});
    row = ops::layer_norm(Values{row, f.add_param(of_row, "s"), f.add_param(of_row, "t")},
                          {{"axis", axis}, {"epsilon", 1e-5}});
  } else {
    row = ops::softmax(row, {{"axis", axis}});
  }
  const Value y = dot_general(reshape_to(row, {1, k}), w, {}, {{1, is_transposed ? 1 : 0}});
  f.add_result(ops::gelu(y + broadcast_to(b, y.shape())));
  return f;
}

std::optional<Candidate> made_row_of(const Function& f, const TargetInfo& target) {
  return made_row_candidate(spec_of(f), target, {}, [&](const GroupSpec& row, const Tuning& t) {
    return nest_candidate(row, target, t);
  });
}

TEST(MadeRow, EachGroupComputesItFirst) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t k : {64, 100, 768})
      for (const std::int64_t columns : {16, 45, 96})
        for (const bool is_norm : {false, true})
          for (const bool is_transposed : {false, true}) {
            const Type x(t, is_norm ? Shape{1, k} : Shape{k});
            const Function f = made_row(x, columns, is_norm, is_transposed);
            SCOPED_TRACE(print(f));
            const std::optional<Candidate> c = made_row_of(f, row_target());
            ASSERT_TRUE(c);
            EXPECT_EQ(c->steps.size(), 1u);
            EXPECT_TRUE(c->temporaries.empty());
            expect_agrees(*c, f);
            // Where the row does not fit, the group has two kernels.
            const TargetInfo small = group_target(1024, 4 << 10);
            EXPECT_FALSE(made_row_of(f, small));
            expect_agrees(generated_candidates(spec_of(f), small).front(), f);
          }
}

TEST(MadeRow, NotWhereNothingIsReducedOrThereAreMoreRows) {
  Function f;
  const Value x = f.add_param(f32({2, 256}), "x");
  f.add_result(ops::matmul(ops::softmax(x, {{"axis", 1}}), f.add_param(f32({256, 64}), "w")));
  EXPECT_FALSE(made_row_of(f, row_target()));
  EXPECT_FALSE(made_row_of(rows_of(f32({1, 256}), f32({256, 64}), false), row_target()));
}

TEST(GroupContraction, SizesAroundTheTile) {
  const Tuning tuning = {
      {"tile_m", 16}, {"tile_n", 16}, {"tile_k", 8}, {"rows", 2}, {"columns", 4}};
  Tuning in_stages = tuning;
  in_stages.emplace_back("stages", 2);
  for (std::int64_t m : {1, 15, 16, 17, 33})
    for (std::int64_t n : {1, 16, 31})
      for (std::int64_t k : {0, 1, 7, 8, 9, 24}) {
        SCOPED_TRACE(cat(m, " x ", n, " x ", k));
        expect_contraction(product(f32({m, k}), f32({k, n})), tuning);
        expect_contraction(product(f32({m, k}), f32({k, n})), in_stages);
        expect_contraction(product(f32({m, k}), f32({k, n})));
      }
}

// Operands are fetched before the first step only if there is a step.
TEST(GroupContraction, OpenDepthsMayBeEmpty) {
  for (const std::int64_t stages : {1, 2})
    for (const std::int64_t size : {0, 1, 3})
      expect_contraction(product_of_open_depth(DType::f32, 9, 7),
                         {{"tile_m", 16}, {"tile_n", 16}, {"tile_k", 16}, {"stages", stages}},
                         size);
}

TEST(GroupContraction, EveryTuning) {
  const Function f = product(f32({130, 70}), f32({70, 67}));
  const std::vector<Tuning> space = group_contraction_space(spec_of(f), group_target());
  EXPECT_GE(space.size(), 6u);
  for (const Tuning& t : space) expect_contraction(f, t);
}

TEST(GroupContraction, DtypesAndBatches) {
  for (DType t : {DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64})
    expect_contraction(product(Type(t, {19, 23}), Type(t, {23, 18})));
  expect_contraction(product(f32({3, 17, 9}), f32({3, 9, 20})));
  expect_contraction(product(f32({2, 3, 17, 9}), f32({9, 20})));
  const Dim n = Dim::symbol("n", 1, 300);
  expect_contraction(product(f32({n, 21}), f32({21, n})), {}, 45);
}

TEST(GroupContraction, ProducersAndConsumersAreFused) {
  Function f;
  Value x = f.add_param(f16({33, 40}), "x"), w = f.add_param(f16({40, 21}), "w"),
        bias = f.add_param(f16({21}), "bias"), residual = f.add_param(f16({33, 21}), "r");
  Value y = ops::matmul(x * 0.5, transpose_matrix(transpose_matrix(w)));
  y = ops::gelu(y + broadcast_to(bias, y.shape()));
  f.add_result(y + residual, "y");
  f.add_result(y, "gelu");
  expect_contraction(f);
  Function g;
  x = g.add_param(f32({40, 33}), "x"), w = g.add_param(f32({21, 40}), "w");
  g.add_result(transpose_matrix(ops::matmul(transpose_matrix(x), transpose_matrix(w))));
  expect_contraction(g);
}

struct Conv {
  std::vector<Dim> x, w;
  Dims strides, dilations, low, high;
  std::int64_t groups = 1;
  bool channels_last = true;
};

TEST(GroupContraction, Convolutions) {
  const Conv list[] = {
      {{2, 9, 11, 6}, {3, 3, 6, 20}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 12, 13, 5}, {3, 2, 5, 7}, {2, 3}, {1, 2}, {0, 1}, {1, 0}},
      {{2, 6, 9, 11}, {20, 6, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, false},
      {{1, 8, 7, 7}, {12, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4, false},
      {{1, 7, 7, 8}, {3, 3, 1, 8}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 8},
      {{3, 21, 4}, {5, 4, 9}, {1}, {1}, {2}, {2}},
      {{1, 4, 8, 8}, {6, 4, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false},
  };
  for (const Conv& c : list) {
    Function f;
    const Value x = f.add_param(f32(Shape(Dims(c.x.begin(), c.x.end()))), "x"),
                w = f.add_param(f32(Shape(Dims(c.w.begin(), c.w.end()))), "w");
    f.add_result(ops::relu(ops::conv(Values{x, w}, {{"strides", c.strides},
                                                    {"dilations", c.dilations},
                                                    {"pads_low", c.low},
                                                    {"pads_high", c.high},
                                                    {"groups", c.groups},
                                                    {"channels_last", c.channels_last ? 1 : 0}})));
    expect_contraction(f);
  }
}

TEST(GroupContraction, RefusesWhatIsNoContraction) {
  Function f;
  f.add_result(ops::relu(f.add_param(f32({20, 30}), "x")));
  EXPECT_FALSE(group_contraction_candidate(spec_of(f), group_target()));
  const Function g = product(f32({8, 8}), f32({8, 8}));
  EXPECT_FALSE(group_contraction_candidate(spec_of(g), with_vectors_of_256_bits()));
}

void expect_every_barrier_needed(std::int64_t stages, int expected) {
  const Function f = product(f32({20, 40}), f32({40, 20}));
  const Tuning tuning = {{"tile_m", 16}, {"tile_n", 16}, {"tile_k", 8},
                         {"rows", 2},    {"columns", 2}, {"stages", stages}};
  const Kernel k = std::get<Kernel>(
      group_contraction_candidate(spec_of(f), group_target(), tuning)->steps[0].what);
  const std::string text = print(k), word = "barrier\n";
  std::vector<float> memory(3 * 800);
  auto run = [&](const Kernel& kernel) {
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory));
    const std::span<std::byte> params[] = {bytes.subspan(0, 3200), bytes.subspan(3200, 3200),
                                           bytes.subspan(6400, 1600)};
    interpret(kernel, params, {}, all_checks);
  };
  run(k);
  int barriers = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at, ++barriers) {
    std::string without = text;
    without.replace(at, word.size(), "\n");
    try {
      run(parse_kernel(without));
      ADD_FAILURE() << "no race in:\n" << without;
    } catch (const UserError& e) {
      EXPECT_NE(std::string_view(e.what()).find("a race"), std::string_view::npos) << e.what();
    }
  }
  EXPECT_EQ(barriers, expected);
}

TEST(GroupContraction, EveryBarrierIsNeeded) {
  expect_every_barrier_needed(1, 2);
  expect_every_barrier_needed(2, 1);
}

TEST(GroupContraction, SmallMachines) {
  for (int threads : {1, 8, 32})
    for (std::int64_t bytes : {64, 1024}) {
      const Function f = product(f32({37, 21}), f32({21, 18}));
      const std::optional<Candidate> c =
          group_contraction_candidate(spec_of(f), group_target(threads, bytes));
      ASSERT_TRUE(c);
      const Kernel& k = std::get<Kernel>(c->steps[0].what);
      std::int64_t shared = 0;
      for (const KernelMemory& m : k.memory) shared += m.elements.number() * byte_size(m.dtype);
      EXPECT_LE(shared, bytes);
      expect_agrees(*c, f);
    }
}

// ---- nests

int count(const Candidate& c, Stmt::Kind kind) {
  int n = 0;
  for (const Candidate::Step& s : c.steps)
    for_each_statement(std::get<Kernel>(s.what).body, [&](const Stmt& s) { n += s.kind == kind; });
  return n;
}

// ---- tiles whose layout over threads is opaque

TargetInfo matrix_target() {
  TargetInfo t = group_target(1024, 40 << 10);
  t.multiplies_halves = t.has_opaque_tiles = true;
  return t;
}

void expect_matrices(const Function& f, const Tuning& tuning, std::size_t steps,
                     std::int64_t size = 37) {
  SCOPED_TRACE(print(f));
  const std::optional<Candidate> c =
      group_tensor_candidate(spec_of(f), matrix_target(), tuning,
                             [](const GroupSpec& s) { return nest_candidate(s, matrix_target()); });
  ASSERT_TRUE(c);
  ASSERT_EQ(c->steps.size(), steps);
  std::size_t multiplications = 0, stores = 0;
  for (const Candidate::Step& step : c->steps)
    for_each_statement(std::get<Kernel>(step.what).body, [&](const Stmt& s) {
      multiplications += s.name == "multiply_matrices";
      stores += s.name == "store_matrices";
    });
  EXPECT_EQ(multiplications, static_cast<std::size_t>(value_or(tuning, "ahead", 1)));
  EXPECT_GE(stores, 1u);
  expect_agrees(*c, f, size);
}

// Sizes that are multiples of tiles, and others; each side along the depth and across it.
TEST(GroupMatrices, SidesLieEitherWay) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{64, 64, 64}, {16, 48, 136}, {33, 19, 21}})
    for (const bool a_is_turned : {false, true})
      for (const bool b_is_turned : {false, true}) {
        Function f;
        const auto side = [&](std::int64_t rows, std::int64_t columns, bool is_turned) {
          const Value v = f.add_param(
              Type(DType::f16, is_turned ? Shape{columns, rows} : Shape{rows, columns}), "x");
          return is_turned ? transpose_matrix(v) : v;
        };
        const Value a = side(m, k, a_is_turned), b = side(k, n, b_is_turned),
                    bias = f.add_param(Type(DType::f16, {n}), "bias");
        f.add_result(ops::relu(ops::matmul(a, b) + broadcast_to(bias, Shape{m, n})), "y");
        expect_matrices(f, {}, 1);
      }
}

TEST(GroupMatrices, PartsOfTheDepthAndOfAStep) {
  for (const auto& [parts, depths, stages, ahead] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                                     {3, 1, 1, 1},
                                                     {1, 2, 1, 1},
                                                     {1, 4, 1, 1},
                                                     {1, 1, 2, 1},
                                                     {3, 1, 2, 1},
                                                     {4, 1, 1, 2},
                                                     {1, 4, 1, 2},
                                                     {1, 4, 2, 2}})
    for (const bool is_turned : {false, true}) {
      Function f;
      const Value a = f.add_param(f16({40, 200}), "a"), b = f.add_param(f16({200, 72}), "b"),
                  y = ops::matmul(a, b);
      f.add_result(is_turned ? transpose_matrix(y) : y, "y");
      expect_matrices(f,
                      {{"tile_m", 64},
                       {"tile_n", 64},
                       {"tile_k", 16 * depths},
                       {"rows", 32},
                       {"columns", 32},
                       {"stages", stages},
                       {"parts", parts},
                       {"depths", depths},
                       {"ahead", ahead}},
                      parts > 1 ? 2 : 1);
    }
}

TEST(GroupMatrices, OpenDepthsMayBeEmpty) {
  for (const std::int64_t stages : {1, 2})
    for (const std::int64_t size : {0, 1, 3})
      expect_matrices(product_of_open_depth(DType::f16, 40, 24),
                      {{"tile_k", 16}, {"stages", stages}}, 1, size);
}

TEST(GroupMatrices, Convolutions) {
  Function f;
  const Value x = f.add_param(f16({2, 9, 9, 16}), "x"), w = f.add_param(f16({3, 3, 16, 24}), "w");
  f.add_result(ops::conv(Values{x, w}, {{"strides", Dims{1, 1}},
                                        {"dilations", Dims{1, 1}},
                                        {"pads_low", Dims{1, 1}},
                                        {"pads_high", Dims{1, 1}},
                                        {"groups", std::int64_t{1}},
                                        {"channels_last", std::int64_t{1}}}));
  expect_matrices(f, {}, 1);
}

// Only f16 matrices are supported.
TEST(GroupMatrices, OthersAreLeftToOtherBuilders) {
  for (const DType t : {DType::bf16, DType::f32})
    EXPECT_NE(generated_candidates(spec_of(product(Type(t, {64, 64}), Type(t, {64, 64}))),
                                   matrix_target())
                  .front()
                  .name,
              "tensor");
}

TEST(GroupNest, EveryOperationAgreesWithTheReference) {
  int checked = 0;
  for (const harness::Case& c : as_codes(harness::all_cases())) {
    if (holds_control(c.function)) continue;
    std::string verdict;
    try {
      verdict = harness::judge(c, [&](const Function& f, std::span<const Array> inputs) {
        return interpret_candidate(nest_candidate(spec_of(f), group_target()), f, inputs,
                                   all_checks);
      });
    } catch (const std::exception& e) {
      verdict = e.what();
    }
    EXPECT_EQ(verdict, "") << c.name << "\n" << print(c.function);
    ++checked;
  }
  EXPECT_GT(checked, 400);
}

TEST(GroupNest, LargeFunctionsAgreeWithTheReference) {
  for (const Large& l : large_functions()) {
    SCOPED_TRACE(l.name);
    if (l.name == "dot" || l.name == "sort") continue;  // below, and in the samples
    const Candidate candidate = nest_candidate(spec_of(l.function), group_target());
    const std::vector<Array> got = interpret_candidate(candidate, l.function, l.inputs, all_checks);
    const std::vector<Wide> strict = evaluate_wide(l.function, l.inputs, Mode::strict),
                            wide = evaluate_wide(l.function, l.inputs, Mode::wide);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Comparison r = accept(got[i], strict[i], wide[i]);
      EXPECT_TRUE(r.ok) << r;
    }
  }
}

TEST(GroupNest, LongRowsAreSharedByTheThreadsOfAGroup) {
  for (std::int64_t length : {33, 255, 256, 257, 700}) {
    SCOPED_TRACE(length);
    Function softmax, norm, sum;
    Value x = softmax.add_param(f32({5, length}), "x");
    softmax.add_result(ops::softmax(x, {{"axis", 1}}));
    x = norm.add_param(f16({5, length}), "x");
    norm.add_result(ops::layer_norm(
        Values{x, norm.add_param(f16({length}), "s"), norm.add_param(f16({length}), "b")},
        {{"axis", 1}, {"epsilon", 1e-5}}));
    x = sum.add_param(f32({5, length}), "x");
    sum.add_result(reduce_axes(ops::reduce_max, ops::exp(x), {1}));
    sum.add_result(reduce_axes(ops::reduce_sum, x, {0, 1}));
    for (const auto& [f, reductions] : {std::pair(&softmax, 2), {&norm, 2}, {&sum, 2}}) {
      const Candidate c = nest_candidate(spec_of(*f), group_target());
      EXPECT_GE(count(c, Stmt::Kind::reduce_group), reductions);
      expect_agrees(c, *f);
    }
  }
}

// The number of times a word occurs in the text of a candidate of one kernel.
std::size_t words(const Candidate& c, std::string_view word) {
  const std::string text = print(std::get<Kernel>(c.steps.at(0).what));
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    ++out;
  return out;
}

// Values that a later loop needs of the same element are not recomputed: the exponentials of a
// softmax, the differences from the mean of a norm.
TEST(GroupNest, RowsKeepWhatTheyComputed) {
  TargetInfo target = group_target(1024);
  target.vector_bits = 128;
  for (DType t : {DType::f32, DType::bf16, DType::f64}) {
    Function softmax, norm;
    Value x = softmax.add_param(Type(t, {3, 512}), "x");
    softmax.add_result(ops::softmax(x, {{"axis", 1}}));
    x = norm.add_param(Type(t, {3, 512}), "x");
    norm.add_result(ops::layer_norm(
        Values{x, norm.add_param(Type(t, {512}), "s"), norm.add_param(Type(t, {512}), "b")},
        {{"axis", 1}, {"epsilon", 1e-5}}));
    for (const Function* f : {&softmax, &norm}) {
      const Candidate c = nest_candidate(spec_of(*f), target);
      expect_agrees(c, *f);
      EXPECT_EQ(words(c, cat("load ", t, " p0[")), 1u);
      EXPECT_LE(words(c, "= exp "), 1u);
    }
  }
}

// With few rows a thread takes few elements; with many, more.
TEST(GroupNest, FewRowsHaveMoreThreads) {
  TargetInfo target = group_target(1024);
  target.vector_bits = 128;
  for (const auto& [rows, threads] : {std::pair{2, 512}, {127, 512}, {128, 128}}) {
    SCOPED_TRACE(rows);
    Function f;
    const Value x = f.add_param(f32({rows, 2048}), "x");
    f.add_result(ops::softmax(x, {{"axis", 1}}));
    const Candidate c = nest_candidate(spec_of(f), target);
    EXPECT_EQ(group_threads(std::get<Kernel>(c.steps.at(0).what)), threads);
    expect_agrees(c, f);
  }
}

// An image of 3 channels is padded to vectors of 8 channels. One thread stores a whole vector,
// where neighbouring threads load neighbouring pixels.
TEST(GroupNest, OneThreadTakesAWholeAxisWhereThreadsLoadNeighbours) {
  TargetInfo target = group_target();
  target.vector_bits = 128;
  const auto lanes_of = [&](const std::vector<int>& order) {
    Function f;
    const Value x = f.add_param(Type(DType::f16, {2, 3, 100, 130}), "x"),
                moved = transpose_by(x, order);
    Dims high(4, 0);
    high[3] = mod(moved.shape()[3] * Dim(-1), 8);
    f.add_result(pad_with(moved, scalar(f.graph(), 0, DType::f16), Dims(4, 0), high));
    const Candidate c = nest_candidate(spec_of(f), target);
    expect_agrees(c, f);
    std::int64_t lanes = 0;
    for_each_statement(std::get<Kernel>(c.steps.at(0).what).body, [&](const Stmt& s) {
      if (s.kind == Stmt::Kind::loop && s.loop == LoopKind::lanes) lanes = s.extent.number();
    });
    return lanes;
  };
  EXPECT_EQ(lanes_of({0, 2, 3, 1}), 8);
  EXPECT_EQ(lanes_of({0, 1, 2, 3}), 0);  // the lanes would be a part of the last axis
  EXPECT_EQ(lanes_of({0, 3, 2, 1}), 0);  // threads would load elements far apart
}

TEST(GroupNest, RowsLoadAllBeforeTheyStore) {
  TargetInfo target = group_target(1024);
  target.vector_bits = 128;
  for (const auto& [dtype, rows] :
       {std::pair{DType::f32, 3}, {DType::bf16, 3}, {DType::bf16, 2048}}) {
    Function f;
    const Value x = f.add_param(Type(dtype, {rows, 1024}), "x"),
                scale = f.add_param(Type(dtype, {1024}), "s");
    f.add_result(ops::softmax(x, {{"axis", 1}}) * broadcast_to(scale, x.shape()));
    const Candidate c = nest_candidate(spec_of(f), target);
    const StoringLoops loops = storing_loops(std::get<Kernel>(c.steps.at(0).what));
    EXPECT_EQ(loops.all, 1);
    EXPECT_EQ(loops.load_as_well, 0);
    if (rows < 16) expect_agrees(c, f);
  }
}

// A row may have more elements than the threads of a block can hold.
TEST(GroupNest, LongRowsAreSharedByThreadsThatShareNoMemory) {
  TargetInfo target = group_target(128);
  target.vector_bits = 128;
  target.row_threads = 1024;
  for (const auto& [length, threads] :
       {std::pair{4096, 128}, {8192, 256}, {32768, 1024}, {65536, 128}}) {
    SCOPED_TRACE(length);
    Function f;
    const Value x = f.add_param(f32({2, length}), "x");
    f.add_result(ops::softmax(x, {{"axis", 1}}));
    const Candidate c = nest_candidate(spec_of(f), target);
    const Kernel& k = std::get<Kernel>(c.steps.at(0).what);
    EXPECT_EQ(group_threads(k), threads);
    for (const KernelMemory& m : k.memory) EXPECT_EQ(m.scope, MemoryScope::thread);
    EXPECT_EQ(words(c, "load f32 p0["), threads * 32 >= length ? 1u : 3u);
    expect_agrees(c, f);
  }
}

// For still longer rows, the blocks that share a row keep the part that does not fit in registers
// in their memory.
TEST(GroupNest, RowsThatRegistersDoNotHoldAreSpread) {
  TargetInfo target = group_target(128, 200 << 10);
  target.vector_bits = 128;
  target.row_threads = 1024;
  target.row_blocks = 4;
  for (const auto& [t, threads] : {std::pair{DType::f32, 1024}, {DType::bf16, 512}}) {
    SCOPED_TRACE(t);
    Function f;
    const Value x = f.add_param(Type(t, {2, 65536}), "x");
    f.add_result(ops::softmax(x, {{"axis", 1}}));
    const Candidate c = nest_candidate(spec_of(f), target);
    const Kernel& k = std::get<Kernel>(c.steps.at(0).what);
    EXPECT_EQ(group_threads(k), threads);
    ASSERT_EQ(k.memory.size(), 1u);
    EXPECT_EQ(k.memory[0].scope, MemoryScope::spread);
    EXPECT_EQ(k.memory[0].elements, Dim(65536 / threads));
    EXPECT_EQ(words(c, " = async p0["), 1u);
    EXPECT_EQ(words(c, cat("load ", t, " p0[")), 0u);
    // Blocks wait for each other once.
    EXPECT_EQ(words(c, "intrinsic join_exponentials"), blocks_of_spread(threads) > 1 ? 1u : 0u);
    expect_agrees(c, f);
  }
}

// Threads subtract the maximum of their own elements, which may be infinite or NaN.
TEST(GroupNest, SpreadRowsOfSpecialNumbersAgree) {
  TargetInfo target = group_target(128, 200 << 10);
  target.vector_bits = 128;
  target.row_threads = 1024;
  target.row_blocks = 4;
  constexpr std::int64_t length = 65536, rows = 5;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Function f;
  const Value x = f.add_param(f32({rows, length}), "x");
  f.add_result(ops::softmax(x, {{"axis", 1}}));
  f.add_result(ops::log_softmax(x, {{"axis", 1}}));
  const Candidate c = nest_candidate(spec_of(f), target);
  EXPECT_EQ(words(c, "intrinsic join_exponentials"), 1u);
  Array in = random_array(x.type(), 1);
  for (std::int64_t i = 0; i < length; ++i) {
    if (i % 4096 != 100) in.set_real(i, -infinity);  // most threads hold nothing else
    in.set_real(length + i, -infinity);
  }
  in.set_real(2 * length + 5000, infinity);
  in.set_real(3 * length + 5000, std::numeric_limits<double>::quiet_NaN());
  in.set_real(4 * length + 5000, -infinity);
  in.set_real(4 * length + 5001, 3e38);
  expect_agrees(c, f, {in});
}

// As many operands are kept as fit in the memory of the blocks.
TEST(GroupNest, SpreadOperandsThatDoNotFitAreReadAgain) {
  for (const auto& [kibibytes, kept] : {std::pair{100, 1u}, {200, 2u}}) {
    SCOPED_TRACE(kibibytes);
    TargetInfo target = group_target(128, kibibytes << 10);
    target.vector_bits = 128;
    target.row_threads = 1024;
    target.row_blocks = 4;
    Function f;
    const Value x = f.add_param(f32({2, 65536}), "x"), y = f.add_param(f32({2, 65536}), "y");
    f.add_result(ops::softmax(x + y, {{"axis", 1}}));
    const Candidate c = nest_candidate(spec_of(f), target);
    EXPECT_EQ(std::get<Kernel>(c.steps.at(0).what).memory.size(), kept);
    EXPECT_EQ(words(c, " = async p"), kept);
    EXPECT_EQ(words(c, "load f32 p0[") + words(c, "load f32 p1["), kept == 1 ? 3u : 0u);
    expect_agrees(c, f);
  }
}

TEST(GroupNest, ShortRowsAreAThreadEach) {
  Function f;
  const Value x = f.add_param(f32({700, 5}), "x");
  f.add_result(ops::softmax(x, {{"axis", 1}}));
  const Candidate c = nest_candidate(spec_of(f), group_target());
  EXPECT_EQ(count(c, Stmt::Kind::reduce_group), 0);
  expect_agrees(c, f);
}

}  // namespace

}  // namespace hone::test
