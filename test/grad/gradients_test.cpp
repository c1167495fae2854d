// Gradients against finite differences: every operation with floats, on all its samples, and
// graphs.
#include "grad/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ops/common.h"
#include "test/ops/harness.h"

namespace hone {
namespace {

// Operations without a derivative. Adding a rule removes its operation from this list.
const std::set<std::string_view> not_differentiated = {
    "cumulative",  // except sums
    "lstm",
};

// Operations that jump; a small divisor brings their jumps close to each other.
const std::set<std::string_view> jumps = {"mod", "rem"};

using Sizes = std::vector<std::int64_t>;

double weight(std::size_t i) { return std::cos(static_cast<double>(i) + 1); }

// The sum of all float results, each element times a weight of its own.
double weighed(const Function& f, std::span<const Array> inputs) {
  double sum = 0;
  for (const Wide& y : evaluate_wide(f, inputs, Mode::wide))
    for (std::size_t i = 0; i < y.reals.size(); ++i) sum += y.reals[i] * weight(i);
  return sum;
}

Array weights(const Sizes& dims) {
  Array a = Array::zeros(DType::f64, dims);
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, weight(static_cast<std::size_t>(i)));
  return a;
}

Array as_f64(const Array& a) {
  Array out = Array::zeros(DType::f64, a.dims());
  for (std::int64_t i = 0; i < a.count(); ++i) out.set_real(i, a.real(i));
  return out;
}

// The same case in f64, where differences are exact enough; empty if its floats cannot be f64 or if
// it has no float operands or results.
std::optional<harness::Case> in_f64(harness::Case c) {
  bool takes = false, gives = false;
  for (std::size_t i = 0; i < c.sample.operands.size(); ++i) {
    Type& t = c.sample.operands[i];
    if (!t.is_tensor() || !is_float(t.dtype)) continue;
    if (is_coded(t.dtype)) return std::nullopt;
    t.dtype = DType::f64;
    c.inputs[i] = as_f64(c.inputs[i]);
    takes = true;
  }
  try {
    c.function = harness::function_of(*c.op, c.sample);
  } catch (const UserError&) {
    return std::nullopt;
  }
  for (const auto& r : c.function.results())
    gives = gives || (r.value.type().is_tensor() && r.value.dtype() == DType::f64);
  return takes && gives ? std::optional(std::move(c)) : std::nullopt;
}

// The case's function with weights of the results as further parameters, and the gradients of its
// float operands.
Function backward(const harness::Case& c) {
  Function g;
  Values operands, xs, ys, dys;
  for (const Type& t : c.sample.operands)
    operands.push_back(g.add_param(t, cat("x", operands.size())));
  for (const Value& x : operands)
    if (x.dtype() == DType::f64) xs.push_back(x);
  const Value y = g.graph().intern(*c.op, operands, c.sample.attrs);
  for (std::size_t i = 0; i < y.result_count(); ++i) {
    if (y.result(i).dtype() != DType::f64) continue;
    ys.push_back(y.result(i));
    dys.push_back(g.add_param(ys.back().type(), cat("dy", i)));
  }
  for (const Value& dx : gradients(ys, dys, xs)) g.add_result(dx);
  return g;
}

void expect_differences(const harness::Case& c) {
  SCOPED_TRACE(c.name);
  const Function g = backward(c);
  std::vector<Array> all = c.inputs;
  for (const Wide& y : evaluate_wide(c.function, c.inputs, Mode::wide))
    if (y.is_real()) all.push_back(weights(y.dims));
  const std::vector<Wide> got = evaluate_wide(g, all, Mode::wide);
  std::size_t next = 0;
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    if (c.inputs[k].dtype() != DType::f64) continue;
    const Wide& dx = got.at(next++);
    ASSERT_EQ(dx.dims, c.inputs[k].dims());
    for (std::int64_t i = 0; i < std::min<std::int64_t>(c.inputs[k].count(), 12); ++i) {
      const auto at = [&](double step) {
        std::vector<Array> inputs = c.inputs;
        inputs[k] = as_f64(c.inputs[k]);
        inputs[k].set_real(i, c.inputs[k].real(i) + step);
        return weighed(c.function, inputs);
      };
      const auto slope = [&](double h) { return (at(h) - at(-h)) / (2 * h); };
      // Near a pole of a quotient, the distance between the two slopes bounds their error.
      const double step = jumps.contains(c.op->name) ? 1e-9 : 1e-5;
      const double wide = slope(2 * step), narrow = slope(step);
      EXPECT_NEAR(dx.reals[static_cast<std::size_t>(i)], narrow,
                  1e-4 * std::max(1.0, std::fabs(narrow)) + std::fabs(wide - narrow))
          << "by operand " << k << " element " << i;
    }
  }
}

// Counts each use once and treats x as constant: y = (x + z) z with z = 3 x, by z.
TEST(Gradients, OfAValueInsideCountOtherValuesAsConstant) {
  Function f;
  const Value x = f.add_param(Type(DType::f64, {2}), "x"), z = x * 3.0, y = (x + z) * z,
              one = constant_like(y, 1);
  for (const Value& d : gradients(std::span(&y, 1), std::span(&one, 1), Values{z})) f.add_result(d);
  const Array in = Array::of<double>(DType::f64, {2}, std::vector{1.0, 2.0});
  EXPECT_EQ(evaluate_wide(f, std::span(&in, 1), Mode::wide)[0].reals, (std::vector<double>{7, 14}));
}

TEST(Gradients, OfWhatNothingDependsOnAreZeroAndOfIntegersRefused) {
  Function f;
  const Value x = f.add_param(Type(DType::f64, {2}), "x"),
              n = f.add_param(Type(DType::i64, {2}), "n"), y = cast_to(n, DType::f64),
              one = constant_like(y, 1);
  const Values dx = gradients(std::span(&y, 1), std::span(&one, 1), Values{x});
  EXPECT_EQ(dx.at(0), constant_like(x, 0));
  EXPECT_THROW(gradients(std::span(&y, 1), std::span(&one, 1), Values{n}), UserError);
}

TEST(Gradients, OfProductsDivideByNoZero) {
  Function f;
  const Value x = f.add_param(Type(DType::f64, {3, 3}), "x"),
              y = reduce_axes(ops::reduce_prod, x, {1}), one = constant_like(y, 1);
  for (const Value& d : gradients(std::span(&y, 1), std::span(&one, 1), Values{x})) f.add_result(d);
  const Array in =
      Array::of<double>(DType::f64, {3, 3}, std::vector<double>{2, 0, 3, 0, 5, 0, 2, 3, 4});
  EXPECT_EQ(evaluate_wide(f, std::span(&in, 1), Mode::wide)[0].reals,
            (std::vector<double>{0, 6, 0, 0, 0, 0, 12, 8, 6}));
}

TEST(Gradients, OfEveryOperationAreItsDifferences) {
  std::set<std::string_view> tried, refused;
  for (const harness::Case& c : harness::all_cases()) {
    const std::optional<harness::Case> wide = in_f64(c);
    if (!wide) continue;
    try {
      expect_differences(*wide);
      tried.insert(c.op->name);
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("derivative"), std::string::npos) << e.what();
      refused.insert(c.op->name);
    }
  }
  EXPECT_EQ(refused, not_differentiated);
  EXPECT_GE(tried.size(), 50u);
  std::printf("%zu operations\n", tried.size());
}

}  // namespace
}  // namespace hone
