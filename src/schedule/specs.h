// Deduplicates the specs of a schedule: equal ones share an index. Stores no layouts itself;
// Schedule::specs is the list.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schedule/scheduled.h"
#include "schedule/slots.h"

namespace hone {

class Specs {
 public:
  Specs(Schedule& out, const Slots& slots, bool in_place, bool tells_alignment)
      : out_(out), slots_(slots), in_place_(in_place), tells_alignment_(tells_alignment) {}

  // The index of a function equal to f; equal functions of different sections may differ in index.
  std::uint32_t function(const Function& f);
  using Updates = std::vector<std::pair<int, int>>;  // see GroupSpec
  // The index of the spec that computes this function on the group's views.
  std::uint32_t spec(std::uint32_t function, bool prepare, const Updates&, const ScheduledGroup&);

 private:
  // What distinguishes specs of one function.
  struct Key {
    std::uint32_t function = 0;
    bool prepare = false, is_aligned = false;
    Updates updates;
    std::vector<bool> is_weight;
    Dims strides;  // of all parameters, then of all results
    bool operator==(const Key&) const = default;
    std::uint64_t hash() const;
  };
  static constexpr std::uint32_t none = ~0u;
  bool fits(const Key&, bool prepare, const Updates&, const ScheduledGroup&) const;
  std::uint32_t find(const ScheduledGroup&);
  void add_strides(const View&);
  bool is_aligned(const ScheduledGroup&) const;
  std::uint32_t add(const ScheduledGroup&);

  Schedule& out_;
  const Slots& slots_;
  const bool in_place_, tells_alignment_;
  std::vector<Function> functions_;
  std::vector<std::uint32_t> latest_;                              // per function: a spec, or none
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;  // of functions_
  Key key_;                                                        // of the group being looked up
  std::vector<Key> keys_;                                          // per spec
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_key_;
};

}  // namespace hone
