// A function divided into groups, as data: a place (slot and strides) for every value between them,
// and their order of execution.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "plan/plan.h"
#include "schedule/grouping.h"

namespace hone {

// Memory for values: what becomes a PlanBuffer. Arena slots get their offsets from PlanBuilder.
struct Slot {
  PlanBuffer::Kind kind = PlanBuffer::Kind::arena;
  std::uint32_t index = 0;  // param, result; weight, prepared: of the lists in Schedule
  Dim bytes = 0;
  std::uint32_t loop = 0;  // arena: the innermost loop around where it is made; 0: none
};

// Shared by groups that compute the same on the same layouts.
struct ScheduledSpec {
  GroupSpec spec;
  std::vector<std::pair<int, int>> in_place;  // (result, parameter), see kernel/in_place.h
  bool prepare = false;  // depends on weights alone: runs once, before the first run
  std::string name;
  Dim bytes = 0, flops = 0;
};

struct ScheduledGroup {
  std::uint32_t spec = 0;         // of Schedule::specs
  std::uint32_t param_count = 0;  // the first views; the rest are the results
  std::vector<View> views;        // View::buffer is a slot
  std::string origins;
  GroupNodes nodes;  // of the scheduled function; empty for groups of bodies

  std::span<const View> params() const { return std::span(views).first(param_count); }
  std::span<const View> results() const { return std::span(views).subspan(param_count); }
};

// One entry of the order, before candidates are known.
struct Item {
  enum class Kind : std::uint8_t { group, copy, branch, loop, refuse, require, measure, host };
  Kind kind = Kind::group;
  std::uint32_t group = 0;
  std::uint32_t loop = 0;  // loop: its number; 0 means no loop
  // copy: one each; host: those of the function; branch and loop: the predicate; require and
  // measure: the number
  std::vector<View> reads, writes;
  std::string text;  // refuse, require: message; branch, loop, measure and host: name
  // refuse: two that must be equal, or none; require: the range; measure: symbol and bound
  Dims sizes;
  std::vector<std::pair<std::string, std::int64_t>> settings;  // host
  std::vector<Item> body, otherwise;
  std::size_t carried = 0;  // loop: how many last items of the body copy the next state back
};

struct Schedule {
  std::vector<Slot> slots;
  std::vector<ScheduledSpec> specs;
  std::vector<ScheduledGroup> groups;
  std::vector<Item> prepare, items;
  std::vector<PlanWeight> weights;
  std::vector<PreparedBuffer> prepared;
  std::vector<std::uint32_t> loop_parents{0};  // per loop: the loop around it
  std::vector<Type> params, results;
  std::vector<DimBound> measured;      // data-dependent sizes, also those of bodies
  std::vector<DimCheck> checks;        // requirements of the function and its bodies on sizes
  std::vector<SizeLimit> limits;       // checks of measured sizes once they are known
  std::vector<std::uint32_t> donated;  // slots of parameters that results may overwrite
  // Results that must end in a parameter's memory, by number: the last items copy them there, from
  // a slot of their own, which disappears where they can be computed in place. One that is appended
  // (schedule/appended.h) has no such slot: it is written there from the start, behind what the
  // parameter holds.
  struct Store {
    std::uint32_t result = 0, param = 0;
    bool is_appended = false;
  };
  std::vector<Store> stores;
};

}  // namespace hone
