// Sequences that a loop carries for more iterations than are unrolled. If the body only appends to
// a sequence, the appended elements are stacked like other loop outputs, and the sequence becomes
// that stack. If the body reads it, it is carried as the stack of its elements, a growing tensor.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

class CarriedSequences {
 public:
  // `carried`: all values that a loop with this body carries. In the body they are the inputs from
  // `first_input` on and the outputs from `first_output` on.
  CarriedSequences(NodeContext&, const onnx::Graph& body, const Values& carried,
                   std::size_t first_input, std::size_t first_output);

  // What the loop itself carries: tensors, and the stacks of sequences that the body reads.
  const Values& tensors() const { return tensors_; }
  // The body for inputs of these types; the other sequences are omitted from them. Its results are
  // those of the graph, also without these sequences, followed by the elements that one iteration
  // appends to them.
  Body read(const std::vector<Type>& inputs);
  // All carried values after the loop, computed from its carried tensors and the stacks of appended
  // elements. Removes those stacks from `outputs`.
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
  std::vector<std::size_t> appended_;  // by carried value: elements per iteration
};

}  // namespace hone::onnx
