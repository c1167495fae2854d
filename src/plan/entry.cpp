#include "plan/entry.h"

#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace hone {

std::string entry_names(const Plan& plan) {
  std::string out;
  for (const PlanEntry& e : plan.entries) out += cat(out.empty() ? "'" : ", '", e.name, "'");
  return out;
}

const PlanEntry& entry_named(const Plan& plan, std::string_view name) {
  if (name.empty() && plan.entries.size() == 1) return plan.main();
  for (const PlanEntry& e : plan.entries)
    if (e.name == name) return e;
  if (name.empty())
    throw UserError(plan.name, ": has entries ", entry_names(plan),
                    "; choose one, on the command line with --entry");
  throw UserError(plan.name, ": has no entry '", name, "'; it has ", entry_names(plan));
}

void add_state(Plan& plan, PlanState state) {
  std::int64_t end = 0;
  for (const PlanState& s : plan.states)
    if (s.group == state.group) end = checked_add(s.offset, byte_count(s.type).number());
  state.offset = round_up(end, PlanState::alignment);
  plan.states.push_back(std::move(state));
}

Plan as_function(Plan plan, std::string_view entry) {
  const PlanEntry& wanted = entry_named(plan, entry);
  if (plan.entries.size() == 1 && plan.states.empty()) return plan;
  PlanEntry e = wanted;
  plan.name = cat(plan.name, ".", e.name);
  e.name = PlanEntry().name;
  e.states.clear();
  plan.entries = {std::move(e)};
  plan.states.clear();
  plan.content = {};
  return plan;
}

}  // namespace hone
