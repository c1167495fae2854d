#include "optimize/states.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "plan/content_hash.h"
#include "plan/entry.h"

namespace hone {

namespace {

template <class List>
std::size_t place_of(const std::string& model, std::string_view what, const List& all,
                     const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return i;
    names += cat(names.empty() ? "'" : ", '", all[i].name, "'");
  }
  throw UserError(model, ": state: there is no ", what, " '", name, "'; there are ",
                  names.empty() ? "none" : names);
}

void check_types(const std::string& model, const StatePair& p, const Type& input,
                 const Type& output) {
  if (!(input == output))
    throw UserError(model, ": state: output '", p.output, "' is ", output, ", but input '", p.input,
                    "' is ", input,
                    "; a state keeps its type and sizes: a cache that grows must be given at its "
                    "full size, of which the model updates a part");
  if (!input.is_tensor() || !byte_count(input).is_number())
    throw UserError(model, ": state: input '", p.input, "' is ", input,
                    ", but the sizes of a state are fixed; give them with --dim");
}

}  // namespace

void store_states(Source& source, std::span<const StatePair> pairs) {
  std::set<std::string> inputs, outputs;
  for (const StatePair& p : pairs)
    if (!inputs.insert(p.input).second || !outputs.insert(p.output).second)
      throw UserError(source.name, ": state: '", p.input, "' or '", p.output,
                      "' is named twice; each input and output belongs to one state");
  for (SourceVariant& v : source.variants)
    for (const StatePair& p : pairs) {
      Function& f = v.function;
      const std::size_t param = place_of(source.name, "input", f.params(), p.input),
                        result = place_of(source.name, "output", f.results(), p.output);
      check_types(source.name, p, f.param(param).type(), f.result(result).type());
      f.store(result, static_cast<std::uint32_t>(param));
    }
}

void keep_states(Plan& plan, std::span<const StatePair> pairs) {
  if (pairs.empty()) return;
  PlanEntry& e = plan.main();
  HONE_ASSERT(plan.states.empty() && e.states.empty(), "a plan of a model has no states yet");
  e.states.assign(e.params.size(), PlanEntry::no_state);
  for (const StatePair& p : pairs) {
    const std::size_t param = place_of(plan.name, "input", e.params, p.input);
    e.states[param] = static_cast<std::int32_t>(plan.states.size());
    add_state(plan, {p.input, "state", e.params[param].type});
  }
  const PlanState& last = plan.states.back();
  const std::int64_t end = checked_add(last.offset, byte_count(last.type).number());
  for (StrategyRecord& s : e.strategies)
    if (s.chosen && s.peak_bytes >= 0) s.peak_bytes = checked_add(s.peak_bytes, end);
  if (plan.content) plan.content = content_hash_when_read(plan);
}

}  // namespace hone
