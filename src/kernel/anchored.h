// A group around one contraction or convolution: what its operands are made of, and what is done
// with each element of its result. Shared by the candidates of both; not a candidate itself.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/lower.h"

namespace hone {

class AnchoredGroup {
 public:
  // Nothing when the group, in core operations, does not hold exactly one contraction or
  // convolution, or holds control flow.
  static std::optional<AnchoredGroup> find(const GroupSpec&);

  const Function& function() const { return function_; }
  Value anchor() const { return anchor_; }
  // Known before the run: made of weights and constants alone.
  bool is_weight(Value) const;

  // ---- the kernel around the anchor

  // Fixes the parameters of the kernel: those of the group that `operands` and the epilogue read,
  // its results, then temporaries. Call first.
  void set_operands(std::span<const Value> operands, std::size_t temporaries);
  Lowering& lowering() { return lowering_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  // The type of temporary i. Gives its number as a parameter of the kernel.
  int set_temporary(std::size_t i, const Type&);
  // A hole that gives the element of an operand at a position over these variables, to be summed in
  // `accumulate`. Nothing when more than an expression is needed.
  std::optional<Hole> load_hole(Value operand, const Dims& position, std::span<const Dim> vars,
                                DType accumulate);
  // A hole that stores the group's results, given the element of the anchor in register 0. Nothing
  // when they are not made element by element.
  std::optional<Hole> epilogue(const Dims& anchor_position, std::span<const Dim> vars);
  // Everything but body, chunks and scratch.
  Kernel kernel() const;
  std::vector<Candidate::Operand> operands() const;

  // ---- packing

  // A step that computes `value`, which `make` builds from the operand `of`, into temporary i.
  Candidate::Step packing_step(Value of, const std::function<Value(Value)>& make, std::size_t i,
                               bool prepare) const;

 private:
  AnchoredGroup(GroupSpec spec, Function function, Value anchor);

  std::vector<int> params_below(std::span<const Value> roots, bool stop_at_anchor) const;
  // Positions of the results that correspond to a position of the anchor.
  std::optional<std::vector<Dims>> result_positions(const Dims& anchor_position);

  GroupSpec spec_;
  Function function_;  // of core operations
  Dims symbols_;       // all that are in it
  Value anchor_;
  std::shared_ptr<Graph> graph_;
  Lowering lowering_;
  std::vector<int> params_;  // of the group, read by the kernel
  std::vector<KernelParam> kernel_params_;
  std::size_t temporary_count_ = 0;
};

// What products of this dtype are summed in; nothing when the skeletons do not sum it.
std::optional<DType> accumulator(DType result);

// Parameter of a kernel that holds a value of this type.
KernelParam dense_param(const Type&, bool written);

// The load that a hole is, when it is nothing else: no condition, no conversion.
std::optional<Value> plain_load(const Hole&, DType);
// The factor of a variable in the place that a load reads; nothing when it is no number.
std::optional<std::int64_t> stride_along(Value load, const Dim& variable);

}  // namespace hone
