// Loop bodies whose carried values change size between iterations. Such a value is stored at the
// front of a larger tensor (its room), and its sizes are carried beside it.
#pragma once

#include <functional>

#include "import/onnx/node/context.h"

namespace hone::onnx {

// The values that a loop carries: initial values, enlarged to their room where they grow, followed
// by the sizes, i64[rank], of each growing value.
struct GrownBody {
  // Its parameters: those of the graph, with carried values in their rooms; then the sizes; then
  // captures. Its results: those of the graph, in the same form; then the sizes.
  Body body;
  Values carried, sizes;
  std::vector<std::vector<bool>> open;  // by carried value and axis; empty: its sizes do not change

  // The values after the loop, cut to their sizes.
  Values finished(NodeContext&, const Values& carried, const Values& sizes) const;
};

// Reads the graph for inputs of these types.
using ReadBody = std::function<Body(const std::vector<Type>&)>;

// `arguments` are the types of the graph's inputs; carried values start at `first_argument` in the
// inputs and at `first_result` in the results. `turns`: the maximum iteration count, if known.
GrownBody grown_body(NodeContext&, const ReadBody&, std::vector<Type> arguments,
                     std::size_t first_argument, const Values& carried, std::size_t first_result,
                     const std::optional<Dim>& turns);

}  // namespace hone::onnx
