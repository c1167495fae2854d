// Sequences that a loop carries for more iterations than are unrolled. Where the body only appends
// to one, what it appends is stacked as other outputs of loops are, and the sequence becomes that
// stack. Where the body reads one, it is carried as the stack of its elements, a tensor that grows.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

class CarriedSequences {
 public:
  // All values that a loop of this body carries. In it they are the inputs from `first_input` on
  // and the outputs from `first_output` on.
  CarriedSequences(NodeContext&, const onnx::Graph& body, const Values& carried,
                   std::size_t first_input, std::size_t first_output);

  // Tensors, and the stacks of sequences that the body reads: what the loop itself carries.
  const Values& tensors() const { return tensors_; }
  // The body for inputs of these types, between which the other sequences are missing. Its results
  // are those of the graph, these sequences likewise missing, and then the elements that one
  // iteration appends to them.
  Body read(const std::vector<Type>& inputs);
  // All carried values after the loop, from those that it carries and the stacks of what was
  // appended, which are removed from `outputs`.
  Values finished(const Values& tensors, Values& outputs) const;

 private:
  bool is_appended_to(std::size_t i) const {
    return !carried_[i].type().is_tensor() && !read_.contains(i);
  }

  NodeContext& c_;
  const onnx::Graph& body_;
  Values carried_, tensors_;
  std::set<std::size_t> read_;  // sequences that the body reads, by carried value
  std::size_t first_input_, first_output_;
  std::vector<std::size_t> appended_;  // by carried value: elements in one iteration
};

}  // namespace hone::onnx
