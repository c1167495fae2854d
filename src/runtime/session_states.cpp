#include "runtime/session_states.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace hone {

namespace {

std::shared_ptr<StateGroup> find_group(const Executable& executable, const PlanEntry& entry,
                                       const std::vector<State>& states, const std::string& name) {
  const Plan& plan = executable.plan();
  std::shared_ptr<StateGroup> found;
  for (const State& state : states)
    for (const std::shared_ptr<StateGroup>& g : state.all_groups()) {
      if (g->name != name) continue;
      if (found) throw UserError(plan.name, ": two States with group '", name, "' are given");
      found = g;
    }
  if (!found)
    throw UserError(plan.name, ": entry '", entry.name, "' uses the states of group '", name,
                    "', but no State of it is given");
  if (!have_equal_layout(found->states, states_of(plan, name)))
    throw UserError(plan.name, ": the State for group '", name,
                    "' was made for a plan with other states; save it and load it by name");
  if (found->device != executable.device())
    throw UserError(plan.name, ": the State for group '", name,
                    "' is on another device than the plan; assign it to one on that device");
  return found;
}

}  // namespace

SessionStates::SessionStates(const Executable& executable, const PlanEntry& entry,
                             const std::vector<State>& states) {
  std::vector<GroupUses::Use> uses;
  for (std::size_t i = 0; i < entry.params.size(); ++i) {
    const std::int32_t number = entry.state_of(i);
    if (number == PlanEntry::no_state) continue;
    const PlanState& s = executable.plan().states[static_cast<std::size_t>(number)];
    const auto is_its = [&](const GroupUses::Use& u) { return u.group->name == s.group; };
    auto at = std::ranges::find_if(uses, is_its);
    if (at == uses.end()) {
      kept_.push_back(find_group(executable, entry, states, s.group));
      at = uses.insert(uses.end(), {kept_.back().get(), FairLock::Mode::shared});
    }
    Bound& bound = all_.emplace_back(at->group, at->group->number_of(s.name), i);
    has_open_ = has_open_ || s.open_axis;
    const auto updating = std::ranges::find(entry.result_alias, static_cast<std::int32_t>(i));
    if (updating == entry.result_alias.end()) continue;
    at->mode = FairLock::Mode::exclusive;
    bound.result = static_cast<std::size_t>(updating - entry.result_alias.begin());
  }
  groups_ = GroupUses(uses);
  for (GroupUses::Use& u : uses) u.mode = FairLock::Mode::shared;
  readers_ = GroupUses(std::move(uses));
}

std::size_t SessionStates::bytes() const {
  std::size_t sum = 0;
  for (const GroupUses::Use& g : groups_.all()) sum += g.group->memory.size();
  return sum;
}

SessionStates::Use::Use(SessionStates& states, const std::stop_token& stop,
                        const FairLock::Deadline& deadline)
    : states_(states), held_(states.groups_, stop, deadline) {
  for (const GroupUses::Use& g : states.groups_.all()) refuse_torn(*g.group);
  states.is_held_ = true;
}

bool SessionStates::bind(Ports& ports) {
  if (!has_open_ && is_bound_) return false;
  bool has_changed = false;
  for (const Bound& s : all_)
    has_changed |= ports.bind_state(s.param, s.group->at(s.state()), s.group->dims(s.number));
  is_bound_ = true;
  return has_changed;
}

bool SessionStates::look(Ports& ports, const std::stop_token& stop,
                         const FairLock::Deadline& deadline) {
  if (!has_open_ && is_bound_) return false;
  const HeldGroups held(readers_, stop, deadline);
  return bind(ports);
}

void SessionStates::order(StreamSet& streams) {
  for (const GroupUses::Use& g : groups_.all())
    for (std::size_t i = 0; i < streams.size(); ++i)
      g.group->pending.order(streams[i], g.mode, this);
}

void SessionStates::note_update(const std::vector<std::vector<std::int64_t>>& result_dims,
                                Stream* callers) {
  for (const Bound& s : all_)
    if (s.result != Bound::none) s.group->set_dims(s.number, result_dims[s.result]);
  for_each_updated([](StateGroup& g) { ++g.version; });
  if (callers)
    note_pending(*callers);
  else
    for_each_updated([](StateGroup& g) { g.pending.clear(); });
}

void SessionStates::note_failure(bool has_updated, bool is_of_earlier_run) {
  if (has_updated) for_each_updated([](StateGroup& g) { g.is_torn = true; });
  if (is_of_earlier_run) tear_written_before();
}

void SessionStates::note_pending(Stream& stream) {
  if (groups_.empty()) return;
  auto end = std::ranges::find(ends_, 1, [](const auto& e) { return e.use_count(); });
  if (end == ends_.end())
    end = ends_.insert(end, groups_.all().front().group->device->make_event());
  stream.record(**end);
  for (const GroupUses::Use& g : groups_.all()) {
    g.group->pending.add(this, *end, g.mode);
    const bool is_noted =
        std::ranges::count(writes_, g.group, &std::pair<StateGroup*, std::uint64_t>::first) > 0;
    if (g.mode == FairLock::Mode::exclusive && !is_noted)
      writes_.emplace_back(g.group, g.group->version);
  }
}

void SessionStates::forget_pending() {
  writes_.clear();
  for (const GroupUses::Use& g : groups_.all()) g.group->pending.forget(this);
}

void SessionStates::note_late_failure() {
  if (!writes_.empty() && is_held_) {
    tear_written_before();
  } else if (!writes_.empty()) {
    const HeldGroups held(groups_);
    tear_written_before();
  }
  forget_pending();
}

// What replaced all values later made a group whole again.
void SessionStates::tear_written_before() {
  for (const auto& [group, version] : writes_)
    if (group->replaced < version) group->is_torn = true;
  writes_.clear();
}

}  // namespace hone
