// A function for several batches gives each what it gets alone, or is refused by name.
#include "pass/rebatch.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "ops/common.h"
#include "test/ops/harness.h"

namespace hone {
namespace {

constexpr std::int64_t batches = 3;

std::vector<std::int64_t> as_vector(const Shape& s) {
  std::vector<std::int64_t> out;
  for (const Dim& d : s.dims) out.push_back(d.number());
  return out;
}

// The arrays one behind the other along an axis, or along a new first one.
Array joined(const std::vector<Array>& parts, int axis, bool is_new) {
  Function f;
  Values params;
  for (const Array& a : parts) params.push_back(f.add_param(a.type(), cat("p", params.size())));
  for (Value& p : params)
    if (is_new) p = unsqueeze(p, {0});
  f.add_result(concat_values(params, is_new ? 0 : axis), "y");
  return evaluate(f, parts)[0];
}

// Where a result keeps its rows, told by its sizes.
Array expected_of(const std::vector<Array>& alone, const Array& got) {
  if (got.rank() > alone[0].rank()) return joined(alone, 0, true);
  for (int i = 0; i < got.rank(); ++i)
    if (got.dims()[static_cast<std::size_t>(i)] != alone[0].dims()[static_cast<std::size_t>(i)])
      return joined(alone, i, false);
  return alone[0];
}

bool same(const Array& a, const Array& b) {
  if (a.type() != b.type()) return false;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    if (!is_float(a.dtype())) {
      if (a.integer(i) != b.integer(i)) return false;
    } else if (a.real(i) != b.real(i) && !(std::isnan(a.real(i)) && std::isnan(b.real(i)))) {
      return false;
    }
  }
  return true;
}

// Each case with some parameters that differ from batch to batch.
void check(const Function& f, const std::vector<std::vector<Array>>& inputs,
           const std::vector<bool>& has_batch) {
  const Function many = rebatch(f, has_batch, batches).function;
  verify(many);
  std::vector<Array> given;
  for (std::size_t i = 0; i < has_batch.size(); ++i) {
    std::vector<Array> parts;
    for (const std::vector<Array>& one : inputs) parts.push_back(one[i]);
    given.push_back(has_batch[i] ? joined(parts, 0, false) : inputs[0][i]);
  }
  std::vector<std::vector<Array>> alone;
  for (std::vector<Array> one : inputs) {
    for (std::size_t i = 0; i < has_batch.size(); ++i)
      if (!has_batch[i]) one[i] = inputs[0][i];
    alone.push_back(evaluate(f, one));
  }
  const std::vector<Array> got = evaluate(many, given);
  for (std::size_t r = 0; r < got.size(); ++r) {
    std::vector<Array> of_result;
    for (const std::vector<Array>& one : alone) of_result.push_back(one[r]);
    EXPECT_TRUE(same(got[r], expected_of(of_result, got[r])))
        << "result " << r << " " << got[r].type() << " of " << alone[0][r].type();
  }
}

TEST(Rebatch, EveryOperationKeepsBatchesApartOrIsRefusedByName) {
  std::mt19937_64 random(11);
  std::map<std::string_view, int> refused;
  int checked = 0;
  const std::vector<harness::Case> first = harness::all_cases(1), second = harness::all_cases(2),
                                   third = harness::all_cases(3);
  for (std::size_t k = 0; k < first.size(); ++k) {
    const harness::Case& c = first[k];
    if (c.op == &ops::refuse || c.op == &ops::random_bits) continue;
    SCOPED_TRACE(c.name);
    for (int draw = 0; draw < 4; ++draw) {
      std::vector<bool> has_batch;
      for (const Type& t : c.function.param_types())
        has_batch.push_back(t.rank() > 0 && t.shape[0].is_number() && (draw == 0 || random() % 2));
      if (std::ranges::count(has_batch, true) == 0) continue;
      try {
        check(c.function, {c.inputs, second[k].inputs, third[k].inputs}, has_batch);
        ++checked;
      } catch (const UserError& e) {
        EXPECT_NE(std::string(e.what()).find(c.op->name), std::string::npos) << e.what();
        ++refused[c.op->name];
      }
    }
  }
  // Weights, indices or places that differ from batch to batch, and pads by a number of each batch.
  const std::set<std::string_view> may_be_refused = {"conv", "scatter", "dynamic_slice",
                                                     "dynamic_update"};
  for (const auto& [op, n] : refused) EXPECT_TRUE(may_be_refused.contains(op)) << op << " " << n;
  EXPECT_GE(checked, 900);
}

// One layer after another, as exporters write them for a batch of one.
TEST(Rebatch, ShapesWithTheOldNumberFollow) {
  Function f;
  const Value x = f.add_param(f32({1, 3, 4, 4}), "x");
  Graph& g = f.graph();
  const auto weights = [&](Dims dims) {
    Array a = Array::zeros(DType::f32, as_vector(Shape(dims)));
    for (std::int64_t i = 0; i < a.count(); ++i)
      a.set_real(i, 0.1 * static_cast<double>(i % 7) - 0.2);
    return constant(g, a);
  };
  Value y = ops::conv(Values{x, weights({2, 3, 3, 3})}, {{"groups", std::int64_t{1}},
                                                         {"channels_last", std::int64_t{0}},
                                                         {"strides", Dims{1, 1}},
                                                         {"dilations", Dims{1, 1}},
                                                         {"pads_low", Dims{1, 1}},
                                                         {"pads_high", Dims{1, 1}}});
  y = ops::relu(y + broadcast_to(weights({1, 2, 1, 1}), y.shape()));
  y = reshape_to(y, {1, 32});
  y = ops::matmul(y, weights({32, 8}));
  Value heads = transpose_by(reshape_to(y, {1, 2, 4}), Axes{1, 0, 2});  // the batch in the middle
  heads = ops::softmax(heads, {{"axis", std::int64_t{2}}});
  f.add_result(heads, "heads");
  f.add_result(reshape_to(ops::matmul(y, weights({8, 5})), {5}), "flat");
  f.add_result(reduce_axes(ops::reduce_max, y, {0, 1}), "most");
  const Rebatched made = rebatch(f, {true}, batches);
  EXPECT_EQ(made.function.result(0).type(), f32({2, batches, 4}));
  EXPECT_EQ(made.function.result(1).type(), f32({batches, 5}));
  EXPECT_EQ(made.function.result(2).type(), f32({batches}));
  EXPECT_EQ(made.notes.size(), 2U);
  std::mt19937_64 random(5);
  std::vector<std::vector<Array>> inputs;
  for (int i = 0; i < batches; ++i)
    inputs.push_back({harness::filled(
        f.param(0).type(), [&](DType t) { return harness::random_number(t, -1, 1, random); })});
  check(f, inputs, {true});
}

TEST(Rebatch, WhatMixesBatchesIsNamed) {
  Function f;
  const Value x = f.add_param(f32({1, 4}), "x");
  OriginScope scope(f.graph(), Origin{3, "pick", "NonZero"});
  const Value n = cast_to(reduce_axes(ops::reduce_sum, x, {0, 1}), DType::i64);
  const Value places = ops::dynamic_slice(
      Values{x, concat_values(Values{reshape_to(n, {1}), reshape_to(n, {1})}, 0)},
      {{"sizes", Dims{1, 2}}});
  f.add_result(places, "y");
  try {
    rebatch(f, {true}, 2);
    FAIL() << "not refused";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("node 3 'pick' (NonZero)"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("differs from batch to batch"), std::string::npos);
  }
}

}  // namespace
}  // namespace hone
