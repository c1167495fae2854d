// Which changing state of a kernel its values depend on: for renderers, which discard outdated
// values and hoist loop invariants.
#pragma once

#include <functional>
#include <unordered_map>

#include "kernel/kernel.h"

namespace hone {

struct Reads {
  bool registers = false;
  bool written = false;  // memory that the kernel writes
};

// Covers all operands of a value, and caches its results.
class ReadsOf {
 public:
  explicit ReadsOf(const Kernel& kernel) : kernel_(kernel) {}
  Reads operator()(const Value&);
  // For a value that was queried before.
  Reads at(NodeId n) const { return known_.at(n); }

 private:
  const Kernel& kernel_;
  std::unordered_map<NodeId, Reads> known_;
};

// Calls `compute` for the largest values in a loop's body that read no register, no written memory
// and none of the variables `inner`, which are those of the loop and the loops in it. Skips what
// `is_known`, and branches and loops that may not run, since they may read what does not exist.
void for_each_invariant(const Block&, const Dims& inner, ReadsOf&,
                        const std::function<bool(const Value&)>& is_known,
                        const std::function<void(const Value&)>& compute);

}  // namespace hone
