// Stacked loop outputs with data-dependent sizes. Each is stored at the front of a larger tensor
// (its room), with its sizes as a further output. All iterations must give equal sizes.
#pragma once

#include "import/onnx/node/context.h"

namespace hone::onnx {

class OpenOutputs {
 public:
  // `first_output`: the index of the first stacked result of the body.
  OpenOutputs(NodeContext& c, std::size_t first_output) : c_(c), first_output_(first_output) {}

  // The body with its outputs in rooms, followed by their sizes.
  Body with_rooms(const Body&);
  // Replaces the stacked outputs of the loop by ones without rooms and sizes.
  void finish(Values& outputs) const;

 private:
  NodeContext& c_;
  std::size_t first_output_;
  std::vector<std::vector<bool>> open_;  // by output and axis; empty: no open size
};

}  // namespace hone::onnx
