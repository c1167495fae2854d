// What the values of a kernel depend on that changes while it runs: for renderers, which forget
// values, and compute before a loop what its turns leave as it is.
#pragma once

#include <functional>
#include <unordered_map>

#include "kernel/kernel.h"

namespace hone {

struct Reads {
  bool registers = false;
  bool written = false;  // memory that the kernel writes
};

// Of the values of one kernel, all the way down; remembers its answers.
class ReadsOf {
 public:
  explicit ReadsOf(const Kernel& kernel) : kernel_(kernel) {}
  Reads operator()(const Value&);
  // Of a value that was asked for before.
  Reads at(NodeId n) const { return known_.at(n); }

 private:
  const Kernel& kernel_;
  std::unordered_map<NodeId, Reads> known_;
};

// Calls `compute` for the largest values in a loop's body that read no register, nothing written
// and none of the variables `inner`, its own and those of the loops in it. What `is_known` need not
// be computed. Branches and loops that may not run are left out: they may read what is not there.
void for_each_invariant(const Block&, const Dims& inner, ReadsOf&,
                        const std::function<bool(const Value&)>& is_known,
                        const std::function<void(const Value&)>& compute);

}  // namespace hone
