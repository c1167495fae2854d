#include "verify/model/expansion.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "ir/measured.h"
#include "ops/expand.h"
#include "ops/ops.h"
#include "ref/expected.h"
#include "verify/model/whole.h"
#include "verify/sample.h"
#include "verify/sizes.h"

namespace hone {

namespace {

// Small constants and integers may be sizes or indices; others stand for any numbers.
bool is_kept(const Value& v) {
  constexpr std::int64_t most_elements = 64;
  return v.is(ops::constant) && (!is_float(v.dtype()) || v.shape().count().high() <= most_elements);
}

// The node alone, on parameters, so that equal nodes of several layers are checked once.
Function alone(const Function& f, NodeId n) {
  const Graph& graph = f.graph();
  Function out;
  Values operands;
  for (const Value& v : graph.operands(n)) {
    if (is_kept(v))
      operands.push_back(
          out.graph().intern_typed(ops::constant, {}, v.attrs(), std::vector{v.type()}));
    else
      operands.push_back(out.add_param(v.type(), cat("operand", operands.size())));
  }
  const std::vector<Type> types = graph.result_types(n);
  const Value made = out.graph().intern_typed(graph.op(n), operands, graph.attrs(n), types);
  for (std::size_t i = 0; i < types.size(); ++i) out.add_result(made.result(i));
  return out;
}

std::vector<Wide> by_definition(const Function& call, const std::vector<Array>& inputs,
                                const Sizing& sizes) {
  const Graph& graph = call.graph();
  const NodeId n = call.result(0).node();
  std::vector<Wide> wide;
  std::size_t param = 0;
  for (const Value& v : graph.operands(n))
    wide.push_back(widen(v.is(ops::constant) ? v.attrs().get<Array>("value") : inputs[param++]));
  std::vector<const Wide*> operands;
  for (const Wide& w : wide) operands.push_back(&w);
  const std::vector<Type> types = graph.result_types(n);
  const std::function<std::int64_t(const Dim&)> size = [&](const Dim& d) {
    return size_of(d, sizes);
  };
  const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> body =
      [&](const Function& f, std::vector<Wide> in) {
        return evaluate_in(f, std::move(in), sizes, Mode::wide);
      };
  return graph.op(n).eval({graph.attrs(n), operands, types, size, body});
}

std::string origins_of(const Graph& graph, NodeId n) {
  std::string out;
  for (const Origin& o : graph.origins(n)) out += cat(out.empty() ? "" : ", ", o);
  return out;
}

// A definition may subtract infinities where the expansion does not.
bool has_special_constant(const Function& call) {
  const Value made = call.result(0);
  return std::ranges::any_of(made.operands(), [](const Value& v) {
    return v.is(ops::constant) && !std::ranges::all_of(widen(v.attrs().get<Array>("value")).reals,
                                                       [](double x) { return std::isfinite(x); });
  });
}

void check_call(const Function& call, const Sizing& sizes, const std::string& origins, Fill fill) {
  std::vector<Array> inputs;
  Evaluator evaluator(call);
  std::optional<Expected> expected;
  std::vector<Wide> defined;
  try {
    for (const Type& t : call.param_types())
      inputs.push_back(sample_array(t, sizes, fill, inputs.size() + 1));
    expected.emplace(evaluator, inputs, Mode::stepwise);
    defined = by_definition(call, inputs, sizes);
  } catch (const UserError&) {
    return;  // indices that are out of range, or sizes that only a run knows
  }
  for (std::size_t i = 0; i < defined.size(); ++i) {
    if (defined[i].dtype == DType::f64) continue;  // the reference computes in f64 itself
    if (fill == Fill::wide && byte_size(defined[i].dtype) < 4) continue;  // products overflow
    const Comparison c = expected->accept(i, defined[i]);
    if (!c.ok)
      throw InternalError(
          "refused: ", call.result(0).op().name, origins.empty() ? "" : " of ", origins,
          ": what it is expanded to differs from its definition in result ", i, ": ", c);
  }
}

// Uses numbers that are close to each other and far from zero. A stable expansion subtracts a row's
// mean or maximum first; one that subtracts it last, or not at all, leaves mostly rounding.
void check_stability(const Function& call, const Sizing& sizes, const std::string& origins) {
  constexpr double most_lost = 0.01;  // of the largest element
  const Op& op = call.result(0).op();
  const bool is_of_rows = op.is_row || op.kind == OpKind::reduction;
  if (!is_of_rows || call.result(0).dtype() != DType::f32) return;
  std::vector<Array> inputs;
  for (const Type& t : call.param_types())
    inputs.push_back(sample_array(t, sizes, Fill::far, inputs.size() + 1));
  std::vector<Wide> rounded, defined;
  try {
    rounded = evaluate_wide(call, inputs, Mode::strict);
    defined = by_definition(call, inputs, sizes);
  } catch (const UserError&) {
    return;
  }
  const std::vector<double>&got = rounded[0].reals, &wanted = defined[0].reals;
  double most = 0, error = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(wanted[i])) continue;  // a mean over nothing has nothing to lose
    most = std::max(most, std::fabs(wanted[i]));
    const double here = std::fabs(got[i] - wanted[i]);
    error = here <= error ? error : here;  // keeps NaN
  }
  if (std::isfinite(most) && !(error <= most_lost * most))
    throw InternalError("refused: ", op.name, origins.empty() ? "" : " of ", origins,
                        ": what it is expanded to loses ", error, " of ", most,
                        " to rounding on numbers next to 1000");
}

}  // namespace

void check_expansions(const Function& f, const Sizing& of_inputs) {
  constexpr std::int64_t most_flops = 3'000'000;
  const Sizing sizes = with_measured(of_inputs, measured_sizes(f.graph()), f.graph().checks());
  std::unordered_set<std::uint64_t> seen;
  for (NodeId n : live_nodes(f)) {
    const Op& op = f.graph().op(n);
    if (op.is_core() || !op.eval) continue;
    const Function call = alone(f, n);
    if (!seen.insert(call.hash()).second || has_special_constant(call)) continue;
    // The expansion determines the amount of work.
    if (flops_at(flops_of(expand_composites(call)), sizes) > most_flops) continue;
    for (Fill fill : {Fill::random, Fill::wide})
      check_call(call, sizes, origins_of(f.graph(), n), fill);
    check_stability(call, sizes, origins_of(f.graph(), n));
  }
}

}  // namespace hone
