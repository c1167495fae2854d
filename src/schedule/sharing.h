// Which buffers of a variant share memory: a step's result with an operand whose last use it is,
// the next state of a loop with its state, results with donated parameters. Knows how steps use
// buffers, not what they compute, and assigns no offsets.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace hone {

// How the steps of a variant use its buffers. Steps are numbered in order.
struct BufferUses {
  struct Range {
    std::int64_t first = -1, last = -1;  // both inclusive; -1: never
    void take(std::int64_t step) {
      if (first < 0) first = step;
      last = step;
    }
  };
  struct Access {
    std::int64_t step = 0;
    std::uint32_t loop = 0;  // the innermost loop around the step; 0: none
    bool written = false;
    View window;
  };
  // At this step `to` may be written over `from`: elementwise, or by a copy, which then has nothing
  // to do.
  struct Overwrite {
    std::int64_t step = 0;
    std::uint32_t from = 0, to = 0;
    bool is_whole = true;  // false: only equal windows of both
    bool is_copy = false;
  };
  // The last steps of a loop copy `next` over `state`.
  struct Carry {
    std::uint32_t loop = 0, next = 0, state = 0;
  };

  std::vector<Range> live;             // per buffer, extended over the loops that use it
  std::vector<std::uint32_t> made_in;  // per buffer: its loop
  std::vector<Range> loops;            // per loop: the range of its steps
  std::vector<std::uint32_t> loop_parents;
  std::vector<Overwrite> overwrites;
  std::vector<Carry> carries;    // inner loops first
  std::vector<Access> accesses;  // in loops; all accesses if parameters are donated
};

class Sharing {
 public:
  Sharing(const std::vector<PlanBuffer>& buffers, BufferUses uses);

  // A result and a donated parameter of its type; only the first pair that can share memory does.
  void try_alias(std::uint32_t result, std::uint32_t param);
  // The caller knows that the result overwrites nothing that is read later.
  void alias(std::uint32_t result, std::uint32_t param) {
    aliased_[result] = aliased_[param] = true;
  }
  bool is_aliased(std::uint32_t buffer) const { return aliased_[buffer]; }
  // Call after all aliases: results reuse the memory of operands that are no longer needed.
  void share_arena();

  // The buffer whose memory holds this one; itself if it has its own memory.
  std::uint32_t home(std::uint32_t buffer) const;
  // When the memory of a home is in use by any of its buffers.
  const BufferUses::Range& live(std::uint32_t home) const { return uses_.live[home]; }

 private:
  using Group = std::vector<std::uint32_t>;
  bool is_arena(std::uint32_t b) const { return buffers_[b].kind == PlanBuffer::Kind::arena; }
  bool is_inside(std::uint32_t loop, std::uint32_t around) const;
  std::pair<std::int64_t, std::int64_t> times(const BufferUses::Access&, std::uint32_t loop) const;
  bool is_overwrite(std::int64_t step, std::uint32_t from, std::uint32_t to) const;
  bool may_lie_in(const Group&, std::uint32_t memory, std::uint32_t loop) const;
  Group with_copied(std::uint32_t buffer, std::uint32_t loop) const;
  Group members(std::uint32_t home) const;
  void join(std::uint32_t buffer, std::uint32_t home);
  void leave(std::uint32_t buffer);
  void carry_in_place();
  void take_results();

  const std::vector<PlanBuffer>& buffers_;
  BufferUses uses_;
  std::vector<std::uint32_t> home_;
  std::vector<Group> joined_;  // per buffer: those whose home_ it is, besides itself
  std::vector<bool> aliased_;
  std::vector<std::vector<std::uint32_t>> accesses_;  // per buffer
};

}  // namespace hone
