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

// Expressions of a group, in terms of the anchor's position: `vars` are its indices. A builder
// replaces them with its loop variables where it loads operands and stores results.
struct Splice {
  Dims vars;      // symbols
  Value value;    // of an operand: its element
  Block stores;   // of results; they read the element of the anchor:
  Value element;  // of the dtype that the anchor is summed in; of an operand: what it is made of
};

class AnchoredGroup {
 public:
  // Nothing when the group, in core operations, does not hold exactly one contraction or
  // convolution, or holds control flow. With `composite`: exactly one of that instead.
  static std::optional<AnchoredGroup> find(const GroupSpec&, const Op* composite = nullptr);

  const Function& function() const { return function_; }
  Value anchor() const { return anchor_; }
  // Known before the run: made of weights and constants alone.
  bool is_weight(Value) const;

  // ---- the kernel around the anchor

  // Fixes the parameters of the kernel: those of the group that `operands` and the epilogue read,
  // its results, then temporaries. Of what `coded` is made of, `codes` is not read. Call first.
  void set_operands(std::span<const Value> operands, std::size_t temporaries, Value coded = {},
                    Value codes = {});
  // The same of a kernel that reads `operands` and writes temporaries alone.
  void set_inputs(std::span<const Value> operands, std::size_t temporaries);
  Lowering& lowering() { return lowering_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  // The type of temporary i. Gives its number as a parameter of the kernel.
  int set_temporary(std::size_t i, const Type&);
  // The element of an operand at a position over these variables, to be summed in `accumulate`.
  // Nothing when more than an expression is needed.
  std::optional<Splice> element(Value operand, const Dims& position, std::span<const Dim> vars,
                                DType accumulate);
  // Stores the group's results, given the element of the anchor, of which a factor may have been
  // left out. Nothing when they are not made element by element.
  std::optional<Splice> epilogue(const Dims& anchor_position, std::span<const Dim> vars,
                                 Value factor = {});
  // Everything but body, chunks and scratch.
  Kernel kernel() const;
  std::vector<Candidate::Operand> operands() const;

  // ---- packing

  // A step that computes `value`, which `make` builds from the operand `of`, into temporary i.
  Candidate::Step packing_step(Value of, const std::function<Value(Value)>& make, std::size_t i,
                               bool prepare) const;

 private:
  AnchoredGroup(GroupSpec spec, Function function, Value anchor);

  void add_params(std::span<const int> params);
  std::vector<int> params_below(std::span<const Value> roots, Value stop = {}) const;
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
  bool has_results_ = true;
  RegId element_ = 0;  // of the anchor
};

// What products of this dtype are summed in; nothing when tiles do not sum it.
std::optional<DType> accumulator(DType result);

// What an operand is packed as: the narrowest dtype that all its numbers fit, as far as its casts
// show it. Tiles widen it when they read it.
DType packed_dtype(Value operand, DType accumulate);

// Parameter of a kernel that holds a value of this type.
KernelParam dense_param(const Type&, bool written);

// The load that an operand's element is, when it is nothing else: no condition, no conversion.
std::optional<Value> plain_load(const Splice&, DType);
int load_param(Value load);
// The factor of a variable in the place that a load reads; nothing when it is no number.
std::optional<std::int64_t> stride_along(Value load, const Dim& variable);

// ---- splicing: the variables replaced by positions

Value spliced(Graph&, const Splice&, std::span<const Dim> at, Value element = {});
Block spliced_stores(Graph&, const Splice&, std::span<const Dim> at, Value element);
// Where a load of a splice reads.
Dim place_of_load(Value load, const Splice&, std::span<const Dim> at);
Value element_of_tile(const Lowering&, int tile, DType, const Dim& row, const Dim& column);
// Results so easy to make that their statements may be written for each row of a tile.
bool is_short(const Splice& epilogue, std::int64_t rows, std::int64_t vectors);

}  // namespace hone
