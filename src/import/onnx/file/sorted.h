// Sorts nodes so that each one follows the nodes that produce its operands. ONNX requires this
// order in a file; ONNX Runtime accepts any order, and some converters to f16 rely on that.
#pragma once

#include <functional>
#include <string_view>

#include "import/onnx/file/model.h"

namespace hone::onnx {

// A name has no value yet and the model was not sorted: it may be defined later in the file.
struct NotSorted {};

// Sorts the nodes of all graphs and functions, keeping the file's order where possible; nodes of a
// cycle come last. Returns whether any node moved.
bool sort_nodes(Model&);

// Calls the function for each name that a node reads, including outer names read by its graphs.
void for_each_read(const Node&, const std::function<void(std::string_view)>& read);

// The node's index in the file, given its current `index`.
inline std::int64_t place_of(const Node& n, std::size_t index) {
  return n.place < 0 ? static_cast<std::int64_t>(index) : n.place;
}

}  // namespace hone::onnx
