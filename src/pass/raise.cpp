#include "pass/raise.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "pass/raise_attention.h"

namespace hone {

namespace {

Pattern hole(std::string name) { return Pattern::any(std::move(name)); }

// A row statistic with the reduced axes kept as size 1, and its broadcast over the rows it came
// from.
Pattern kept(Pattern p) { return ops::reshape(std::move(p)); }
Pattern repeated(Pattern p) { return ops::broadcast(std::move(p)); }

Pattern named(std::string name, Pattern p) {
  p.hole = std::move(name);
  return p;
}

Axes reduced_axes(const Match& m, std::string_view name) {
  return axes_of(m[name].attrs(), "axes");
}

// Whether it broadcasts to x's shape a value with size 1 along the reduced `axes`.
bool repeats_over(Value broadcast, const Axes& axes, const Shape& x) {
  Shape statistic = x;
  for (int axis : axes) statistic[axis] = 1;
  return broadcast.shape() == x && broadcast.operand(0).shape() == statistic;
}

// Both statistics reduce the same single axis.
bool is_softmax(const Match& m) {
  Axes axes = reduced_axes(m, "sum");
  return axes.size() == 1 && axes == reduced_axes(m, "max") &&
         repeats_over(m["sums"], axes, m["x"].shape()) &&
         repeats_over(m["maxima"], axes, m["x"].shape());
}

Value softmax_of(const Match& m) {
  const Op& op = m.root.is(ops::div) ? ops::softmax : ops::log_softmax;
  return op(m["x"], {{"axis", reduced_axes(m, "sum")[0]}});
}

// The first axis if both means reduce all axes from it to the last; else -1.
int first_norm_axis(const Match& m) {
  Axes axes = reduced_axes(m, "mean");
  int count = static_cast<int>(axes.size()), first = m["x"].rank() - count;
  if (count == 0 || axes != reduced_axes(m, "variance")) return -1;
  for (int i = 0; i < count; ++i)
    if (axes[static_cast<std::size_t>(i)] != first + i) return -1;
  return first;
}

// A broadcast with one number for each element of a row.
bool is_row_vector(Value v, int first) {
  if (!v.is(ops::broadcast)) return false;
  const Shape &full = v.shape(), &from = v.operand(0).shape();
  Dims want(full.dims.begin() + first, full.dims.end());
  Dims have = from.dims;
  while (have.size() > want.size() && have.front() == Dim(1)) have.erase(have.begin());
  return have == want;
}

Value row_vector(Value broadcast, int first) {
  const Dims& full = broadcast.shape().dims;
  return reshape_to(broadcast.operand(0), Dims(full.begin() + first, full.end()));
}

bool is_norm(const Match& m, std::initializer_list<const char*> vectors) {
  std::optional<double> epsilon = uniform_number(m["epsilon"]);
  int first = first_norm_axis(m);
  if (!epsilon || !(*epsilon > 0) || first < 0) return false;
  Axes axes = reduced_axes(m, "mean");
  if (!repeats_over(m["centre"], axes, m["x"].shape()) ||
      !repeats_over(m["deviation"], axes, m["x"].shape()))
    return false;
  for (const char* v : vectors)
    if (!is_row_vector(m[v], first)) return false;
  return true;
}

Value norm_of(const Match& m, std::initializer_list<const char*> vectors) {
  int first = first_norm_axis(m);
  Values operands = {m["x"]};
  for (const char* v : vectors) operands.push_back(row_vector(m[v], first));
  if (vectors.size() == 0) {
    const Dims& full = m["x"].shape().dims;
    operands.push_back(broadcast_to(scalar(m.root.graph(), 1, m.root.dtype()),
                                    Shape(Dims(full.begin() + first, full.end()))));
  }
  return ops::layer_norm(operands, {{"axis", first}, {"epsilon", *uniform_number(m["epsilon"])}});
}

void add_norm_rules(std::vector<Rule>& rules) {
  const Pattern x = hole("x"), epsilon = hole("epsilon"), scale = hole("scale"),
                bias = hole("bias");
  const Pattern d = x - named("centre", repeated(kept(named("mean", ops::mean(x)))));
  const Pattern root = ops::sqrt(kept(named("variance", ops::mean(d * d))) + epsilon);
  const Pattern norms[] = {d / named("deviation", repeated(root)),
                           d * named("deviation", repeated(ops::recip(root)))};
  for (const Pattern& norm : norms) {
    using enum RuleClass;
    rules.push_back({"raise-layer-norm-bias", rounding, norm * scale + bias,
                     [](const Match& m) { return norm_of(m, {"scale", "bias"}); },
                     [](const Match& m) { return is_norm(m, {"scale", "bias"}); }});
    rules.push_back({"raise-layer-norm-scale", rounding, norm * scale,
                     [](const Match& m) { return norm_of(m, {"scale"}); },
                     [](const Match& m) { return is_norm(m, {"scale"}); }});
    rules.push_back({"raise-layer-norm", rounding, norm,
                     [](const Match& m) { return norm_of(m, {}); },
                     [](const Match& m) { return is_norm(m, {}); }});
  }
}

// 1 / sqrt(2), rounded to the dtype.
bool is_inverse_root_two(const Match& m) {
  std::optional<double> c = uniform_number(m["c"]);
  double allowed = m.root.dtype() == DType::f32 || m.root.dtype() == DType::f64 ? 1e-6 : 1e-2;
  return c && std::abs(*c - std::sqrt(0.5)) < allowed;
}

void add_gelu_rules(std::vector<Rule>& rules) {
  const Pattern x = hole("x"), half = Pattern::number(0.5);
  const Pattern step = ops::erf(x * hole("c")) + Pattern::number(1);
  for (const Pattern& p : {(x * step) * half, x * (step * half), (x * half) * step})
    rules.push_back({"raise-gelu", RuleClass::rounding, p, ops::gelu(x), is_inverse_root_two});
}

std::vector<Rule> make_raise_rules() {
  using enum RuleClass;
  const Pattern x = hole("x");
  const Pattern maxima = repeated(kept(named("max", ops::reduce_max(x))));
  const Pattern shifted = x - named("maxima", maxima);
  const Pattern powers = ops::exp(shifted), sum = named("sum", ops::reduce_sum(powers));
  auto sums = [](Pattern p) { return named("sums", repeated(std::move(p))); };
  std::vector<Rule> rules = {
      {"raise-softmax", rounding, powers / sums(kept(sum)), softmax_of, is_softmax},
      {"raise-log-softmax", rounding, shifted - sums(ops::log(kept(sum))), softmax_of, is_softmax},
      {"raise-log-softmax-kept", rounding, shifted - sums(kept(ops::log(sum))), softmax_of,
       is_softmax},
  };
  add_norm_rules(rules);
  add_gelu_rules(rules);
  return rules;
}

}  // namespace

std::span<const Rule> raise_rules() {
  static const std::vector<Rule> rules = make_raise_rules();
  return rules;
}

Function raise(const Function& f, RuleLog* log) {
  static const RuleSet set(raise_rules(), Order::users_first);
  // A softmax may have to be raised itself first.
  return raise_attention(rewrite(f, set, log), log);
}

}  // namespace hone
