#include "verify/model/difference.h"

#include <cmath>
#include <unordered_set>

#include "backend/devices/devices.h"
#include "ops/ops.h"
#include "pass/map_sizes.h"
#include "ref/expected.h"
#include "runtime/session.h"
#include "verify/model/overflow.h"

namespace hone {

namespace {

// Every tensor that is computed from data, in order; excludes constants and sizes.
Values inner_values(const Function& f) {
  Values out;
  for (NodeId n : live_nodes(f)) {
    if (f.graph().op(n).kind == OpKind::leaf) continue;
    for (std::size_t i = 0; i < f.graph().result_count(n); ++i)
      if (f.graph().type(n, i).is_tensor()) out.push_back(Value(&f.graph(), n).result(i));
  }
  return out;
}

Function with_results(const Function& f, std::span<const Value> wanted) {
  Function out = clone_params(f);
  Copier copy(f, out);
  for (NodeId n : live_nodes(f))
    if (!copy.has(n)) copy.copy(n);
  for (const Value& v : wanted) out.add_result(copy(v), "");
  return out;
}

// Replaces the body's symbols by the sizes of its arguments.
Function with_sizes_of(const Function& body, std::span<const Value> arguments) {
  SizeMap map;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (int k = 0; k < body.param(i).rank(); ++k)
      if (const Dim& own = body.param(i).shape()[k]; own.is_symbol())
        map.symbols.try_emplace(own.name(), arguments[i].shape()[k]);
  return map_sizes(body, map);
}

// Replaces each `if_else` on data by the branch that these inputs take; empty when there is none.
std::optional<Function> with_taken_branches(const Function& f, const std::vector<Array>& inputs) {
  Values choices, conditions;
  for (NodeId n : live_nodes(f))
    if (Value v(&f.graph(), n); v.is(ops::if_else)) {
      choices.push_back(v);
      conditions.push_back(v.operand(0));
    }
  if (choices.empty()) return std::nullopt;
  const std::vector<Array> held = evaluate(with_results(f, conditions), inputs);
  return transform(f, [&](NodeId n, Copier& copy, Function& to) -> Values {
    const auto at = std::find(choices.begin(), choices.end(), Value(&f.graph(), n));
    if (at == choices.end()) return {};
    const bool yes = held[static_cast<std::size_t>(at - choices.begin())].integer(0) != 0;
    Values arguments;
    for (std::size_t i = 1; i < at->operand_count(); ++i) arguments.push_back(copy(at->operand(i)));
    const Attrs& attrs = at->attrs();
    const FunctionRef& body = yes ? attrs.get<FunctionRef>("then") : attrs.get<FunctionRef>("else");
    return inline_call(to.graph(), with_sizes_of(*body, arguments), arguments);
  });
}

// One function on one set of inputs.
class Search {
 public:
  Search(Function f, const MakePlan& make, const std::vector<Array>& inputs, int threads)
      : f_(std::move(f)),
        make_(make),
        inputs_(inputs),
        threads_(threads),
        wanted_(inner_values(f_)),
        all_(with_results(f_, wanted_)),
        evaluator_(all_),
        expected_(evaluator_, inputs_, Mode::stepwise) {}

  // Searches in a plan that keeps every value. If everything is right there but wrong in the
  // original plan, searches in plans that keep the results and one more value.
  std::optional<Difference> run() {
    const std::vector<Array> got = run_plan(wanted_);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::optional<Difference> d = differs(i, got[i])) return d;
    const Values results = results_of(f_);
    if (results_agree(results)) return std::nullopt;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      Values kept = results;
      kept.push_back(wanted_[i]);
      if (std::optional<Difference> d = differs(i, run_plan(kept).back())) return d;
    }
    return std::nullopt;
  }

 private:
  std::vector<Array> run_plan(std::span<const Value> kept) const {
    auto plan = std::make_shared<const Plan>(make_(with_results(f_, kept)));
    Session session(Executable::load(plan, open_devices(*plan)), {.threads = threads_});
    return session.run(inputs_);
  }

  bool results_agree(const Values& results) const {
    const Function f = with_results(f_, results);
    Evaluator evaluator(f);
    Expected expected(evaluator, inputs_, Mode::stepwise);
    const std::vector<Array> got = run_plan(results);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!expected.accept(i, widen(got[i])).ok) return false;
    return true;
  }

  std::optional<Difference> differs(std::size_t i, const Array& got) {
    const Comparison c = expected_.accept(i, widen(got));
    if (c.ok) return std::nullopt;
    const Value& v = wanted_[i];
    return Difference{cat(v.op().name, " ", v.type(), " of ", origins_text(v)), c};
  }

  Function f_;
  const MakePlan& make_;
  const std::vector<Array>& inputs_;
  int threads_;
  Values wanted_;
  Function all_;  // with them as results
  Evaluator evaluator_;
  Expected expected_;
};

Function with_all_taken_branches(const Function& f, const std::vector<Array>& inputs) {
  Function inlined = f;
  while (std::optional<Function> next = with_taken_branches(inlined, inputs))
    inlined = std::move(*next);
  return inlined;
}

bool is_finite(const Wide& w) {
  return std::ranges::all_of(w.reals, [](double x) { return std::isfinite(x); });
}

}  // namespace

std::optional<Difference> first_difference(const Function& f, const MakePlan& make,
                                           const std::vector<Array>& inputs, int threads) {
  const Function inlined = with_all_taken_branches(f, inputs);
  if (auto d = Search(inlined, make, inputs, threads).run()) return d;
  // The branches are right: the fault may be in how they are reached.
  if (&inlined.graph() == &f.graph()) return std::nullopt;
  return Search(f, make, inputs, threads).run();
}

std::string first_overflow(const Function& f, const std::vector<Array>& inputs) {
  const Function inlined = with_all_taken_branches(f, inputs);
  const Values values = inner_values(inlined);
  const std::vector<Wide> got = evaluate_wide(with_results(inlined, values), inputs, Mode::strict);
  std::unordered_set<Value, ValueHash> special;  // infinite or NaN
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!is_finite(widen(inputs[i]))) special.insert(inlined.param(i));
  const auto is_special = [&](const Value& v) {
    return special.contains(v) ||
           (v.is(ops::constant) && !is_finite(widen(v.attrs().get<Array>("value"))));
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value& v = values[i];
    if (is_finite(got[i])) continue;
    if (std::ranges::none_of(v.operands(), is_special))
      return cat(v.op().name, " ", v.type(), " of ", origins_text(v));
    special.insert(v);
  }
  return "";
}

}  // namespace hone
