// A group around one contraction or convolution: how its operands are computed and how the elements
// of its result are used. Shared by the candidates of both; not a candidate itself.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/nest/lower.h"

namespace hone {

// Expressions of a group, in terms of the anchor's position: `vars` are its indices. A builder
// replaces them with its loop variables where it loads operands and stores results.
struct Splice {
  Dims vars;      // symbols
  Value value;    // of an operand: its element
  Block stores;   // of results; they read `element`
  Value element;  // the anchor's, of its accumulator dtype; of an operand: what `value` reads
};

class AnchoredGroup {
 public:
  // Returns nullopt unless the group, expanded to core operations, holds exactly one contraction or
  // convolution and no control flow. With `composite`: exactly one of that op instead.
  static std::optional<AnchoredGroup> find(const GroupSpec&, const Op* composite = nullptr);

  const Function& function() const { return function_; }
  Value anchor() const { return anchor_; }
  // True if the value is computed from weights and constants alone, so it is known before the run.
  bool is_weight(Value) const;

  // ---- the kernel around the anchor

  // Call first. Sets the kernel's parameters: the group's parameters that `operands` and the
  // epilogue read, then its results, then temporaries. `codes`, an input of `coded`, is not read.
  void set_operands(std::span<const Value> operands, std::size_t temporaries, Value coded = {},
                    Value codes = {});
  // The same for a kernel that reads `operands` and writes only temporaries.
  void set_inputs(std::span<const Value> operands, std::size_t temporaries);
  Lowering& lowering() { return lowering_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  // Sets the type of temporary i. Returns its number as a parameter of the kernel.
  int set_temporary(std::size_t i, const Type&);
  // The element of an operand at a position over `vars`, to be summed in `accumulate`. Returns
  // nullopt if it needs more than one expression.
  std::optional<Splice> element(Value operand, const Dims& position, std::span<const Dim> vars,
                                DType accumulate);
  // Stores the group's results, given the anchor's element, which is first multiplied by `factor`
  // if there is one. Returns nullopt if the results are not computed elementwise.
  std::optional<Splice> epilogue(const Dims& anchor_position, std::span<const Dim> vars,
                                 Value factor = {});
  // All but body, chunks and scratch.
  Kernel kernel() const;
  std::vector<Candidate::Operand> operands() const;

  // ---- packing

  // A step that writes `value`, which `make` builds from the operand `of`, to temporary i.
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
  Dims symbols_;       // all that occur in it
  Value anchor_;
  std::shared_ptr<Graph> graph_;
  Lowering lowering_;
  std::vector<int> params_;  // of the group, read by the kernel
  std::vector<KernelParam> kernel_params_;
  std::size_t temporary_count_ = 0;
  bool has_results_ = true;
  RegId element_ = 0;  // the anchor's
};

// The dtype in which products of this dtype are summed; nullopt if tiles do not support it.
std::optional<DType> accumulator(DType result);

// The dtype in which an operand is packed: the narrowest that holds all its values, judging by its
// casts. Tiles widen the values when they read them.
DType packed_dtype(Value operand, DType accumulate);

// Parameter of a kernel that holds a value of this type.
KernelParam dense_param(const Type&, bool written);

// The load, if the operand's element is just that: no condition, no conversion.
std::optional<Value> plain_load(const Splice&, DType);
int load_param(Value load);
// The factor of a variable in the load's offset; nullopt if it is not a number.
std::optional<std::int64_t> stride_along(Value load, const Dim& variable);

// ---- splicing: the variables replaced by positions

Value spliced(Graph&, const Splice&, std::span<const Dim> at, Value element = {});
Block spliced_stores(Graph&, const Splice&, std::span<const Dim> at, Value element);
// The offset of a load of a splice.
Dim place_of_load(Value load, const Splice&, std::span<const Dim> at);
Value element_of_tile(const Lowering&, int tile, DType, const Dim& row, const Dim& column);
// True if the results are so cheap that their statements may be repeated for each row of a tile.
bool is_short(const Splice& epilogue, std::int64_t rows, std::int64_t vectors);

}  // namespace hone
