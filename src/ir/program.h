// A program: functions ("entries") over shared states, as plain data. What a front end gives to the
// compiler. Does not know plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/derivative.h"
#include "ir/function.h"
#include "type/array.h"

namespace hone {

// A value that outlives runs. Its name and group are those of PlanState.
struct StateVariable {
  std::string name;
  std::string group = "model";
  Type type;                        // a tensor of fixed sizes; along the open axis the most
  std::optional<Array> start = {};  // when a State is made; none: zeros
  // Its size along this axis is a part of its value (PlanState::open_axis). Parameters that are
  // this state have the capacity of `type` there, and any size.
  std::optional<std::uint32_t> open_axis = {};
};

struct ProgramEntry {
  static constexpr std::int32_t no_state = -1;

  std::string name;
  // A result that is stored to a parameter (Function::Result::stored_to) that is a state updates
  // it.
  Function function;
  std::vector<std::int32_t>
      states;  // per parameter: its place in ProgramGraph::states, or no_state
  // To be judged, as values of the function that was recorded; `function` may be simpler.
  std::vector<Derivative> derivatives = {};
  Function recorded = {};
};

struct ProgramGraph {
  std::string name;
  std::vector<StateVariable> states;
  std::vector<ProgramEntry> entries;
};

// Throws UserError that names the entry and the state: a name that occurs twice, a state of no
// fixed size, a parameter of another type than its state, two parameters for one state.
void check(const ProgramGraph&);

}  // namespace hone
