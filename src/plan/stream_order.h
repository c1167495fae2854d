// Checks that accesses to the buffers of a variant are ordered although their steps run on
// different streams. A stream, an event or a wait of the host can order them. Runs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/plan.h"

namespace hone {

class StreamOrder {
 public:
  explicit StreamOrder(const Variant&);

  // With one stream, everything is in order and there is nothing to track.
  bool is_needed() const { return clocks_.size() > 1; }

  // Call for each step, in order, before its accesses.
  void enter(const Step&);
  // Record an access of the step. False when an earlier access to the buffer, or to memory that
  // `overlaps` with it, may still be running.
  bool read(const Step&, std::uint32_t buffer);
  bool write(const Step&, std::uint32_t buffer,
             const std::function<bool(std::uint32_t, std::uint32_t)>& overlaps);
  // Merges the states after the two paths of a branch.
  void meet(const StreamOrder& other);

 private:
  using Clock = std::vector<std::int64_t>;  // per stream: number of its finished steps
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
  std::vector<Clock> clocks_;              // per stream: what is finished before its next step
  Clock host_;                             // what the host has waited for
  Clock counts_;                           // per stream: number of its steps so far
  std::vector<Clock> events_;
  std::vector<Accesses> accesses_;  // per buffer
};

}  // namespace hone
