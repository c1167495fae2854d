// Writes statements in the order in which they run, bodies as functions. For builders of kernels;
// knows nothing about what they compute.
#pragma once

#include <functional>

#include "kernel/kernel.h"
#include "kernel/lower.h"

namespace hone {

class BlockWriter {
 public:
  using Body = std::function<void()>;

  // Variables and registers are new ones of the lowering's positions.
  explicit BlockWriter(Lowering& lowering) : lowering_(lowering) {}

  void add(Stmt s) { block_.push_back(std::move(s)); }
  // A single iteration of a serial or unrolled loop is written without it.
  void loop(LoopKind, const Dim& extent, const std::function<void(const Dim& at)>& body);
  void branch(Value condition, const Body& body, const Body& otherwise = {});
  // Asks for what an expression loads, but where conditions decide that it does.
  void fetch(Value element);
  // So few groups are on the machine at once: what they ask for first, before they wait for the
  // kernel before them, arrives while that still runs.
  static bool fetches_first(const Dim& groups);
  // The position in a register, when it is more than a symbol: it is computed once. It must not be
  // negative.
  Dim keep(const Dim& position);
  Dim keep_signed(const Dim& position);  // that may be negative
  // a <= b
  Value at_most(const Dim& a, const Dim& b) const;

  // What was written so far.
  Block take() { return std::exchange(block_, {}); }

 private:
  Block of(const Body& body);
  Dim declared(const Dim& position, std::int64_t low, std::int64_t high);

  Lowering& lowering_;
  Block block_;
};

}  // namespace hone
