// Bodies of loops whose carried values change their sizes from turn to turn. Such a value lies in
// the front of a room, and its sizes are carried beside it.
#pragma once

#include <functional>

#include "import/onnx/context.h"

namespace hone::onnx {

// What a loop carries: the values as they begin, with room where they grow, and behind them the
// sizes, i64[rank], of each that grows.
struct GrownBody {
  // Its parameters: those of the graph, in which carried values have room; then the sizes; then
  // captures. Its results: those of the graph, likewise; then the sizes.
  Body body;
  Values carried, sizes;
  std::vector<std::vector<bool>> open;  // by carried value and axis; empty: it keeps its sizes

  // The values as the loop leaves them, without the room.
  Values finished(NodeContext&, const Values& carried, const Values& sizes) const;
};

// Reads the graph for inputs of these types.
using ReadBody = std::function<Body(const std::vector<Type>&)>;

// `arguments` are the types of the graph's inputs; carried values are those from `first_argument`
// on, and its results from `first_result` on. `turns`: the most there are, where that is known.
GrownBody grown_body(NodeContext&, const ReadBody&, std::vector<Type> arguments,
                     std::size_t first_argument, const Values& carried, std::size_t first_result,
                     const std::optional<Dim>& turns);

}  // namespace hone::onnx
