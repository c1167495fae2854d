// Which accesses to the buffers of a variant are in order although their steps run on different
// streams: those that a stream, an event or a decision of the host puts in order. Runs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/plan.h"

namespace hone {

class StreamOrder {
 public:
  explicit StreamOrder(const Variant&);

  // One stream needs no events: then there is nothing to keep.
  bool is_needed() const { return clocks_.size() > 1; }

  // Each step, in order, before its accesses.
  void enter(const Step&);
  // What the step does with a buffer. False when an earlier access to it, or to memory that
  // `overlaps` with it, may still be under way.
  bool read(const Step&, std::uint32_t buffer);
  bool write(const Step&, std::uint32_t buffer,
             const std::function<bool(std::uint32_t, std::uint32_t)>& overlaps);
  // What holds after either of two ways of a branch.
  void meet(const StreamOrder& other);

 private:
  using Clock = std::vector<std::int64_t>;  // per stream: how many of its steps are finished
  struct Access {
    std::size_t stream;
    std::int64_t step;
  };
  struct Accesses {
    std::vector<Access> writes, reads;
    bool empty() const { return writes.empty() && reads.empty(); }
  };
  std::size_t stream_of(const Step& s) const { return first_stream_[s.device] + s.stream; }
  bool are_before(const std::vector<Access>&, std::size_t stream) const;

  std::vector<std::size_t> first_stream_;  // per device
  std::vector<Clock> clocks_;              // per stream: what its next step finds finished
  Clock host_;                             // what the host waited for
  Clock counts_;                           // per stream: its steps so far
  std::vector<Clock> events_;
  std::vector<Accesses> accesses_;  // per buffer
};

}  // namespace hone
