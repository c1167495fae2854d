// Writes statements in the order in which they run, bodies as functions. For builders of kernels;
// does not know what they compute.
#pragma once

#include <functional>

#include "kernel/kernel.h"
#include "kernel/nest/lower.h"

namespace hone {

class BlockWriter {
 public:
  using Body = std::function<void()>;

  // New variables and registers come from the lowering's positions.
  explicit BlockWriter(Lowering& lowering) : lowering_(lowering) {}

  void add(Stmt s) { block_.push_back(std::move(s)); }
  // A serial or unrolled loop of one iteration is written without the loop.
  void loop(LoopKind, const Dim& extent, const std::function<void(const Dim& at)>& body);
  void branch(Value condition, const Body& body, const Body& otherwise = {});
  // Prefetches what an expression loads, except loads that depend on a condition.
  void fetch(Value element);
  // True if so few groups run at once that their first prefetches, issued before they wait for the
  // previous kernel, arrive while that kernel still runs.
  static bool fetches_first(const Dim& groups);
  // Computes the position once and keeps it in a register, if it is more than a symbol. It must not
  // be negative.
  Dim keep(const Dim& position);
  Dim keep_signed(const Dim& position);  // may be negative
  // a <= b
  Value at_most(const Dim& a, const Dim& b) const;

  // Takes what was written so far.
  Block take() { return std::exchange(block_, {}); }

 private:
  Block of(const Body& body);
  Dim declared(const Dim& position, std::int64_t low, std::int64_t high);

  Lowering& lowering_;
  Block block_;
};

}  // namespace hone
