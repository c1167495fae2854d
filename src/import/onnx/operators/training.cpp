// Optimiser steps (ai.onnx.preview.training).
#include "base/amount.h"
#include "formulas/optimizers.h"
#include "grad/gradients.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// Operands: rate, step count, then `kinds` lists of equal length: values, gradients, and the
// optimiser's state. Results: the updated lists except the gradients.
struct Lists {
  Value rate, step;
  std::vector<Values> of;
};

Lists lists_of(NodeContext& c, std::size_t kinds) {
  const Values all = c.all_inputs();
  if (all.size() < 2 + kinds || (all.size() - 2) % kinds != 0)
    c.fail(cat("the node has ", amount(all.size(), "input", "inputs"), ", expected two and ", kinds,
               " for each optimized tensor"));
  Lists out{reshape_to(all[0], {}), reshape_to(all[1], {}), {}};
  const std::size_t n = (all.size() - 2) / kinds;
  for (std::size_t k = 0; k < kinds; ++k)
    out.of.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(2 + k * n),
                        all.begin() + static_cast<std::ptrdiff_t>(2 + (k + 1) * n));
  return out;
}

Value spread(Value scalar_value, Value like) {
  return broadcast_to(cast_to(scalar_value, like.dtype()), like.shape());
}
Value is_later(Value step) { return ops::lt(integer_like(step, 0), step); }

Values momentum(NodeContext& c) {
  const Lists in = lists_of(c, 3);
  const double alpha = c.real("alpha", 0), beta = c.real("beta", 0),
               decay = c.real("norm_coefficient", 0);
  std::string_view mode = c.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    c.bad_attribute("mode", mode, "standard or nesterov");
  Values values, kept;
  for (std::size_t i = 0; i < in.of[0].size(); ++i) {
    Value x = in.of[0][i], g = x * decay + in.of[1][i], v = in.of[2][i];
    Value factor = where_or(is_later(in.step), scalar(c.graph(), beta, x.dtype()), 1);
    const formulas::Velocity to =
        formulas::next_velocity(v, g, alpha, g * factor, mode == "nesterov");
    values.push_back(x - spread(in.rate, x) * to.direction);
    kept.push_back(to.next);
  }
  values.insert(values.end(), kept.begin(), kept.end());
  return values;
}

Values adagrad(NodeContext& c) {
  const Lists in = lists_of(c, 3);
  const double epsilon = c.real("epsilon", 0), slower = c.real("decay_factor", 0),
               decay = c.real("norm_coefficient", 0);
  Value rate = in.rate / (cast_to(in.step, in.rate.dtype()) * slower + 1.0);
  Values values, kept;
  for (std::size_t i = 0; i < in.of[0].size(); ++i) {
    Value x = in.of[0][i], g = x * decay + in.of[1][i];
    Value next = in.of[2][i] + g * g;
    values.push_back(x - spread(rate, x) * formulas::adagrad_change(g, next, epsilon));
    kept.push_back(next);
  }
  values.insert(values.end(), kept.begin(), kept.end());
  return values;
}

Values adam(NodeContext& c) {
  const Lists in = lists_of(c, 4);
  const double alpha = c.real("alpha", 0.9), beta = c.real("beta", 0.999),
               epsilon = c.real("epsilon", 0), decay = c.real("norm_coefficient", 0),
               decay_after = c.real("norm_coefficient_post", 0);
  const Value step = cast_to(in.step, in.rate.dtype());
  Value corrected = in.rate * ops::sqrt(formulas::bias_correction(step, beta)) /
                    formulas::bias_correction(step, alpha);
  Value rate = ops::select(Values{is_later(in.step), corrected, in.rate});
  Values values, first, second;
  for (std::size_t i = 0; i < in.of[0].size(); ++i) {
    Value x = in.of[0][i], g = x * decay + in.of[1][i];
    const formulas::Moments m = formulas::next_moments({in.of[2][i], in.of[3][i]}, g, alpha, beta);
    first.push_back(m.first);
    second.push_back(m.second);
    Value next = x - spread(rate, x) * formulas::adam_change(m, epsilon);
    values.push_back(next * (1 - decay_after));
  }
  values.insert(values.end(), first.begin(), first.end());
  values.insert(values.end(), second.begin(), second.end());
  return values;
}

// The derivatives of the value named y with respect to those named xs, whose values are the node's
// inputs. All others are constant, including those named zs.
Values gradient(NodeContext& c) {
  const std::string_view of = c.text("y", "");
  std::vector<std::string_view> names = c.texts("xs").value_or(std::vector<std::string_view>());
  const std::size_t count = names.size();
  for (std::string_view z : c.texts("zs").value_or(std::vector<std::string_view>()))
    names.push_back(z);
  if (of.empty() || count == 0)
    c.fail("attribute 'y' or 'xs' is missing or empty; both are required");
  if (names.size() != c.inputs())
    c.fail(cat("the node has ", amount(c.inputs(), "input", "inputs"), ", expected ", names.size(),
               ", one for each name in 'xs' and 'zs'"));
  const auto value_of = [&](std::string_view name) {
    const std::optional<Value> v = c.bodies().named(name);
    if (!v) c.fail(cat("value '", name, "' is not defined before this node"));
    if (!*v) throw NotRead();
    return *v;
  };
  for (std::size_t i = 0; i < names.size(); ++i)
    if (c.in(i) != value_of(names[i]))
      c.unsupported(cat("input ", i, " is not the value '", names[i],
                        "'; gradients at other values are not supported"));
  Values xs = c.all_inputs();
  xs.resize(count);
  const Value y = value_of(of), one = constant_like(y, 1);
  return gradients(std::span(&y, 1), std::span(&one, 1), xs);
}

constexpr std::string_view domain = "ai.onnx.preview.training";
constexpr ImportEntry training_table[] = {
    {.op = "Gradient", .import = gradient, .domain = domain},
    {.op = "Momentum", .import = momentum, .domain = domain},
    {.op = "Adagrad", .import = adagrad, .domain = domain},
    {.op = "Adam", .import = adam, .domain = domain},
};

}  // namespace

std::span<const ImportEntry> training_imports() { return training_table; }

}  // namespace hone::onnx
