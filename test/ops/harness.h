// One list of cases (every operation x its samples, with inputs) for every backend: what a case
// computes, the expected results, and how a callback's results are judged. Header only; not a test
// itself.
#pragma once

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ops/ops.h"
#include "ref/compare.h"
#include "ref/evaluate.h"

namespace hone::harness {

struct Case {
  const Op* op = nullptr;
  Sample sample;
  Function function;  // the sample's operands as parameters, all results of one node
  std::vector<Array> inputs;
  std::string name;  // "softmax/2"
};

// Compiles and runs a function somewhere.
using Run = std::function<std::vector<Array>(const Function&, std::span<const Array>)>;

inline Function function_of(const Op& op, const Sample& sample) {
  Function f;
  Values operands;
  for (const Type& t : sample.operands)
    operands.push_back(f.add_param(t, cat("x", operands.size())));
  Value y = f.graph().intern(op, operands, sample.attrs);
  for (std::size_t i = 0; i < y.result_count(); ++i) f.add_result(y.result(i), cat("y", i));
  return f;
}

// Sizes of a type when every symbol is `size`, or its nearest bound.
inline std::vector<std::int64_t> sizes_of(const Type& t, std::int64_t size = 3) {
  std::vector<std::int64_t> out;
  for (const Dim& d : t.shape.dims) {
    Dim fixed = d.substitute([=](const Dim& s) {
      return std::optional<Dim>(std::clamp<std::int64_t>(size, s.low(), s.high()));
    });
    out.push_back(fixed.number());
  }
  return out;
}

inline double random_number(DType t, double low, double high, std::mt19937_64& random) {
  if (t == DType::b1) return static_cast<double>(random() % 2);
  if (is_float(t)) return std::uniform_real_distribution<double>(low, high)(random);
  if (!is_signed(t)) low = std::max(low, 0.0);
  std::uniform_int_distribution<std::int64_t> pick(static_cast<std::int64_t>(std::ceil(low)),
                                                   static_cast<std::int64_t>(std::floor(high)));
  return static_cast<double>(pick(random));
}

// Values on which arithmetic is most likely to fail.
inline double extreme_number(DType t, std::mt19937_64& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (t == DType::b1) return static_cast<double>(random() % 2);
  static constexpr double reals[] = {
      0.0,     -0.0,     1.0,       -1.0,
      0.5,     -2.5,     1e-7,      -6e-8,
      65504.0, -7e4,     3e38,      1e-45,
      88.8,    infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  static constexpr double integers[] = {0,   1,   -1,    2,      7,       -128,         127,
                                        255, 300, 65535, -32768, 1 << 30, -2147483648.0};
  if (is_float(t)) return reals[random() % std::size(reals)];
  double n = integers[random() % std::size(integers)];
  return is_signed(t) ? n : std::fabs(n);
}

using Fill = std::function<double(DType)>;

inline Array filled(const Type& t, const Fill& fill, std::int64_t size = 3) {
  Array a = Array::zeros(t.dtype, sizes_of(t, size));
  for (std::int64_t i = 0; i < a.count(); ++i) {
    double x = fill(t.dtype);
    if (is_float(t.dtype))
      a.set_real(i, x);
    else
      a.set_integer(i, static_cast<std::int64_t>(x));
  }
  return a;
}

inline std::vector<Array> inputs_of(const Sample& sample, const Fill& fill, std::int64_t size = 3) {
  std::vector<Array> inputs;
  for (const Type& t : sample.operands) inputs.push_back(filled(t, fill, size));
  return inputs;
}

// Cases of one op, with seeded inputs in its range; every symbol has the value `size`.
inline std::vector<Case> cases_of(const Op& op, std::uint64_t seed = 7, std::int64_t size = 3) {
  std::vector<Case> cases;
  if (!op.samples) return cases;
  std::mt19937_64 random(seed);
  for (const Sample& sample : op.samples()) {
    Case c{&op, sample, function_of(op, sample), {}, cat(op.name, "/", cases.size())};
    c.inputs =
        inputs_of(sample, [&](DType t) { return random_number(t, op.low, op.high, random); }, size);
    cases.push_back(std::move(c));
  }
  return cases;
}

inline std::vector<Case> all_cases(std::uint64_t seed = 7, std::int64_t size = 3) {
  std::vector<Case> cases;
  for (const Op* op : all_ops())
    for (Case& c : cases_of(*op, seed, size)) cases.push_back(std::move(c));
  return cases;
}

// Empty if every result of a case on these inputs agrees with the reference; else the reason.
inline std::string judge(const Case& c, const Run& run, std::span<const Array> inputs) {
  if (c.op == &ops::refuse) {
    try {
      run(c.function, inputs);
    } catch (const UserError& e) {
      return e.what() == c.sample.attrs.get<std::string>("message") ? "" : cat("said ", e.what());
    }
    return "did not refuse";
  }
  std::vector<Wide> strict = evaluate_wide(c.function, inputs, Mode::strict),
                    wide = evaluate_wide(c.function, inputs, Mode::wide);
  std::vector<Array> got = run(c.function, inputs);
  if (got.size() != wide.size()) return cat(got.size(), " results, expected ", wide.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (Comparison r = accept(got[i], strict[i], wide[i]); !r) return cat("result ", i, ": ", r);
  return "";
}
inline std::string judge(const Case& c, const Run& run) { return judge(c, run, c.inputs); }

}  // namespace hone::harness
