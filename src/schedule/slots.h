// Slots of a schedule under construction: memory for values, without offsets in the arena yet.
#pragma once

#include <unordered_map>

#include "schedule/scheduled.h"

namespace hone {

class Slots {
 public:
  explicit Slots(Schedule& out) : out_(out) {}

  std::uint32_t add(PlanBuffer::Kind, std::uint32_t index, const Type&, std::uint32_t loop = 0);
  // One slot per array, however often it is used.
  std::uint32_t weight(const Array&);
  std::uint32_t prepared(const Type&);
  std::uint32_t arena(const Type& type, std::uint32_t loop) {
    return add(PlanBuffer::Kind::arena, 0, type, loop);
  }
  const Dim& bytes(std::uint32_t slot) const { return out_.slots[slot].bytes; }
  bool is_weight(std::uint32_t slot) const {
    PlanBuffer::Kind kind = out_.slots[slot].kind;
    return kind == PlanBuffer::Kind::weight || kind == PlanBuffer::Kind::prepared;
  }

 private:
  Schedule& out_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> weights_;  // by storage hash
};

View dense_view(std::uint32_t slot, const Type&);

}  // namespace hone
