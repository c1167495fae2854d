// Sequences that a loop carries for more iterations than are unrolled. The body appends to them;
// what it appends is stacked as other outputs of loops are, and such a sequence becomes that stack.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

class CarriedSequences {
 public:
  // All values that the loop carries. In its body they are the inputs from `first_input` on and the
  // outputs from `first_output` on.
  CarriedSequences(NodeContext&, const Values& carried, std::size_t first_input,
                   std::size_t first_output);

  // Those that are tensors: what the loop itself carries.
  const Values& tensors() const { return tensors_; }
  // The graph's body for inputs of these types, between which the sequences are missing. Its
  // results are those of the graph, the sequences likewise missing, and then the elements that one
  // iteration appends.
  Body read(const onnx::Graph&, const std::vector<Type>& inputs);
  // All carried values after the loop, from those that are tensors and the stacks of what was
  // appended, which are removed from `outputs`.
  Values finished(const Values& tensors, Values& outputs) const;

 private:
  NodeContext& c_;
  Values carried_, tensors_;
  std::size_t first_input_, first_output_;
  std::vector<std::size_t> appended_;  // by carried value: elements in one iteration
};

}  // namespace hone::onnx
