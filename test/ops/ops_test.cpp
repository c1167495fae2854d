// Every operation on every sample: type, meaning, expansion, text, single elements.
#include <gtest/gtest.h>

#include <set>

#include "ir/measured.h"
#include "ops/expand.h"
#include "ref/element.h"
#include "test/ops/harness.h"

namespace hone {
namespace {

using harness::Case;

double largest(const Wide& w) {
  double most = 0;
  for (double x : w.reals)
    if (std::isfinite(x)) most = std::max(most, std::fabs(x));
  return most;
}

// Why an op cannot be tested; empty if it can.
std::string untestable(const Op& op) {
  if (op.name.empty() || op.doc.empty()) return "has no name or no doc";
  if (!op.infer) return "has no type rule";
  if (!op.expand && !op.eval) return "has neither eval nor expand";
  if (!op.samples || op.samples().empty()) return "has no samples";
  return "";
}

TEST(Ops, AreComplete) {
  std::set<std::string_view> names;
  std::size_t core = 0, samples = 0;
  for (const Op* op : all_ops()) {
    EXPECT_EQ(untestable(*op), "") << op->name;
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(find_op(op->name), op);
    core += op->is_core();
    samples += op->samples().size();
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
  std::cout << all_ops().size() << " operations (" << core << " core), " << samples << " samples\n";
}

// Functions of one real number list the points where kernels are likely to fail; each is a finite
// f64.
TEST(Ops, FunctionsOfOneNumberStateTheirEdges) {
  int checked = 0;
  for (const Op* op : all_ops()) {
    if (!op->real) continue;
    EXPECT_FALSE(op->edges.empty()) << op->name;
    for (const double edge : op->edges) EXPECT_TRUE(std::isfinite(edge) && edge >= 0) << op->name;
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST(Ops, WithoutSamplesFail) {
  Op op = ops::add;
  op.samples = nullptr;
  EXPECT_EQ(untestable(op), "has no samples");
}

TEST(Ops, HaveWellFormedSamples) {
  for (const Case& c : harness::all_cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_NO_THROW(verify(c.function));
    EXPECT_NO_THROW(verify(expand_composites(c.function)));
  }
}

TEST(Ops, ExpandToTheSameTypes) {
  int checked = 0;
  for (const Case& c : harness::all_cases()) {
    if (c.op->is_core()) continue;
    SCOPED_TRACE(c.name);
    EXPECT_EQ(expand_composites(c.function).result_types(), c.function.result_types());
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

TEST(Ops, RoundTripThroughText) {
  for (const Case& c : harness::all_cases()) {
    SCOPED_TRACE(c.name);
    for (const Function& f : {c.function, expand_composites(c.function)}) {
      std::string text = print(f);
      Function again = parse(text, find_op);
      EXPECT_EQ(print(again), text);
      EXPECT_TRUE(same_structure(f, again)) << text;
    }
  }
}

// The reference in its strict mode is a backend that must pass.
TEST(Ops, StrictAgreesWithWide) {
  for (const Case& c : harness::all_cases())
    EXPECT_EQ(harness::judge(
                  c, [](const Function& f, std::span<const Array> in) { return evaluate(f, in); }),
              "")
        << c.name;
}

TEST(Ops, KeepTheirValueThroughText) {
  for (const Case& c : harness::all_cases())
    EXPECT_EQ(harness::judge(c,
                             [](const Function& f, std::span<const Array> in) {
                               return evaluate(parse(print(f), find_op), in);
                             }),
              "")
        << c.name;
}

// A backend with one wrong element must not pass.
TEST(Ops, HarnessNoticesOneWrongElement) {
  int noticed = 0;
  for (const Case& c : harness::all_cases()) {
    if (c.op == &ops::refuse) continue;
    bool changed = false;
    auto wrong = [&](const Function& f, std::span<const Array> in) {
      std::vector<Wide> results = evaluate_wide(f, in, Mode::strict);
      std::vector<Array> out;
      for (Wide& w : results) {
        std::size_t last = static_cast<std::size_t>(w.count()) - 1;
        if (w.count() > 0 && !changed) {
          changed = true;
          if (w.is_real()) {
            const double x = w.reals[last], other = x + std::fabs(x) + 3;
            // Some dtypes round all larger numbers to their largest one.
            w.reals[last] = std::isfinite(x) && round_real(w.dtype, other) != x ? other : 0;
          } else
            w.integers[last] ^= 1;
        }
        out.push_back(narrow(w));
      }
      return out;
    };
    std::string verdict = harness::judge(c, wrong);
    if (changed) {
      EXPECT_NE(verdict, "") << c.name;
    }
    noticed += changed;
  }
  EXPECT_GT(noticed, 300);
}

// Every composite has its own reference, and its expansion must compute the same.
TEST(Ops, ExpansionsAgreeWithMeaning) {
  int checked = 0;
  for (std::int64_t size : {1, 3, 8})
    for (const Case& c : harness::all_cases(7 + static_cast<std::uint64_t>(size), size)) {
      if (c.op->is_core()) continue;
      SCOPED_TRACE(c.name);
      ASSERT_TRUE(c.op->eval);
      Op plain = *c.op;
      plain.expand = nullptr;
      Function meaning = harness::function_of(plain, c.sample);
      std::vector<Wide> expected = evaluate_wide(meaning, c.inputs, Mode::wide),
                        strict = evaluate_wide(c.function, c.inputs, Mode::strict),
                        wide = evaluate_wide(c.function, c.inputs, Mode::wide);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(strict[i].integers, expected[i].integers);
        double spread = 0;
        for (std::size_t k = 0; k < wide[i].reals.size(); ++k)
          spread = std::max(spread, std::fabs(strict[i].reals[k] - wide[i].reals[k]));
        double limit = 4 * spread + 16 * epsilon_of(expected[i].dtype) * largest(expected[i]);
        for (std::size_t k = 0; k < wide[i].reals.size(); ++k)
          if (std::isnan(expected[i].reals[k]))
            EXPECT_TRUE(std::isnan(strict[i].reals[k]));
          else
            EXPECT_NEAR(strict[i].reals[k], expected[i].reals[k], limit) << "element " << k;
      }
      ++checked;
    }
  EXPECT_GT(checked, 100);
}

TEST(Ops, GiveTheSameEachTimeAndInEachOrderOfModes) {
  std::int64_t checked = 0;
  const auto same = [](const Wide& a, const Wide& b) {
    return a.dtype == b.dtype && a.dims == b.dims && a.integers == b.integers &&
           std::ranges::equal(a.reals, b.reals, [](double x, double y) {
             return x == y || (std::isnan(x) && std::isnan(y));
           });
  };
  for (const Case& c : harness::all_cases(7, 5)) {
    if (c.op == &ops::refuse) continue;
    SCOPED_TRACE(c.name);
    Evaluator evaluate(c.function);
    for (const Mode mode : {Mode::wide, Mode::strict, Mode::stepwise, Mode::wide}) {
      const std::vector<Wide> alone = evaluate_wide(c.function, c.inputs, mode),
                              again = evaluate.in(mode, c.inputs);
      for (std::size_t i = 0; i < alone.size(); ++i, ++checked)
        EXPECT_TRUE(same(again.at(i), alone[i]));
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Ops, GiveTheSameElementsOneByOne) {
  std::int64_t checked = 0;
  for (std::int64_t size : {1, 3, 8})
    for (const Case& c : harness::all_cases(7 + static_cast<std::uint64_t>(size), size)) {
      if (c.op == &ops::refuse) continue;
      SCOPED_TRACE(c.name);
      for (Mode mode : {Mode::strict, Mode::wide}) {
        std::vector<Wide> all = evaluate_wide(c.function, c.inputs, mode);
        ElementEvaluator one(c.function, c.inputs);
        for (std::size_t r = 0; r < all.size(); ++r) {
          EXPECT_EQ(one.result_dims(r), all[r].dims);
          double slack =
              (mode == Mode::strict ? epsilon_of(all[r].dtype) : 1e-14) * largest(all[r]);
          for (std::int64_t i = 0; i < all[r].count(); ++i, ++checked) {
            const ElementOfModes modes = one.at(r, i);
            const Element e = mode == Mode::strict ? modes.strict : modes.wide;
            auto k = static_cast<std::size_t>(i);
            if (!all[r].is_real())
              EXPECT_EQ(e.integer, all[r].integers[k]);
            else if (std::isfinite(all[r].reals[k]))
              EXPECT_NEAR(e.real, all[r].reals[k], slack);
            else
              EXPECT_TRUE(e.real == all[r].reals[k] ||
                          (std::isnan(e.real) && std::isnan(all[r].reals[k])));
          }
        }
      }
    }
  EXPECT_GT(checked, 5000);
}

// NaN, infinities, denormals, zeros of both signs and the ends of the integer ranges.
TEST(Ops, TakeExtremeInputs) {
  std::mt19937_64 random(11);
  for (const Case& c : harness::all_cases()) {
    // These may run for years, or refuse by design.
    if (c.op == &ops::while_loop || c.op == &ops::refuse || c.op == &ops::require ||
        c.op == &ops::measure)
      continue;
    SCOPED_TRACE(c.name);
    std::vector<Array> inputs =
        harness::inputs_of(c.sample, [&](DType t) { return harness::extreme_number(t, random); });
    std::vector<Array> once, twice;
    EXPECT_NO_THROW(once = evaluate(c.function, inputs));
    EXPECT_NO_THROW(twice = evaluate(c.function, inputs));
    EXPECT_EQ(once.size(), c.function.results().size());
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i], twice[i]);
  }
}

}  // namespace
}  // namespace hone
