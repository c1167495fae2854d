#include "ir/program.h"

#include <set>
#include <string_view>

#include "base/error.h"

namespace hone {

namespace {

std::optional<Capacity> capacity_of(const StateVariable& s) {
  if (!s.open_axis) return std::nullopt;
  return Capacity{*s.open_axis, s.type.shape.dims[*s.open_axis].number()};
}

bool is_of(const StateVariable& s, const Type& t) {
  const std::optional<Capacity> c = capacity_of(s);
  return c ? same_but_for(*c, t, s.type) : t == s.type;
}

void check_states(const ProgramGraph& p) {
  std::set<std::string_view> names;
  for (const StateVariable& s : p.states) {
    if (s.name.empty()) throw UserError(p.name, ": a state has no name; give each one its own");
    if (!names.insert(s.name).second)
      throw UserError(p.name, ": two states have the name '", s.name, "'; give each its own");
    if (!s.type.is_tensor() || !byte_count(s.type).is_number())
      throw UserError(p.name, ": state '", s.name, "' is ", s.type,
                      ", expected a tensor of fixed sizes");
    if (s.open_axis && static_cast<int>(*s.open_axis) >= s.type.rank())
      throw UserError(p.name, ": state '", s.name, "' is ", s.type, " and open along axis ",
                      *s.open_axis, ", which it does not have");
    if (s.start && !is_of(s, s.start->type()))
      throw UserError(p.name, ": state '", s.name, "' is ", s.type, ", but starts with ",
                      s.start->type(), "; give a value of its type");
  }
}

void check_entry(const ProgramGraph& p, const ProgramEntry& e) {
  const Function& f = e.function;
  const std::string where = cat(p.name, ": entry '", e.name, "'");
  if (e.states.size() != f.params().size())
    throw UserError(where, " has ", f.params().size(), " parameters, but says of ", e.states.size(),
                    " whether they are states");
  std::set<std::int32_t> used;
  for (std::size_t i = 0; i < e.states.size(); ++i) {
    const std::int32_t s = e.states[i];
    if (s == ProgramEntry::no_state) continue;
    if (s < 0 || static_cast<std::size_t>(s) >= p.states.size())
      throw UserError(where, ": parameter ", i, " is state ", s, " of ", p.states.size());
    const StateVariable& state = p.states[static_cast<std::size_t>(s)];
    if (!used.insert(s).second)
      throw UserError(where, " has two parameters for state '", state.name, "'; use one");
    if (f.params()[i].capacity != capacity_of(state))
      throw UserError(where, ": parameter '", f.params()[i].name, "' and state '", state.name,
                      "' have different capacities; give the parameter the state's");
    if (!is_of(state, f.param(i).type()))
      throw UserError(where, ": parameter '", f.params()[i].name, "' is ", f.param(i).type(),
                      ", but state '", state.name, "' is ", state.type);
  }
}

}  // namespace

void check(const ProgramGraph& p) {
  if (p.entries.empty()) throw UserError(p.name, ": has no entry, so there is nothing to compile");
  check_states(p);
  std::set<std::string_view> names;
  for (const ProgramEntry& e : p.entries) {
    if (!names.insert(e.name).second)
      throw UserError(p.name, ": two entries have the name '", e.name, "'; give each its own");
    check_entry(p, e);
  }
}

}  // namespace hone
