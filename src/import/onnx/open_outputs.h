// Outputs that a loop stacks and whose sizes data decides in each iteration. Every one lies in the
// front of a room, and its sizes are one output more. All iterations must give equal sizes.
#pragma once

#include "import/onnx/context.h"

namespace hone::onnx {

class OpenOutputs {
 public:
  // `first_output`: the first result of the body that is stacked.
  OpenOutputs(NodeContext& c, std::size_t first_output) : c_(c), first_output_(first_output) {}

  // The body with its outputs in rooms and their sizes behind them.
  Body with_rooms(const Body&);
  // What the loop stacked, without rooms and sizes.
  void finish(Values& outputs) const;

 private:
  NodeContext& c_;
  std::size_t first_output_;
  std::vector<std::vector<bool>> open_;  // by output and axis; empty: no size of it is open
};

}  // namespace hone::onnx
