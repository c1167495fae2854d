// Sorts nodes so that each one follows the nodes that produce its operands. ONNX requires that
// order in a file; ONNX Runtime accepts any, and some converters to f16 write files that rely on
// it.
#pragma once

#include <functional>
#include <string_view>

#include "import/onnx/model.h"

namespace hone::onnx {

// A name has no value yet, and the model was not sorted: it may be made later in the file.
struct NotSorted {};

// Sorts the nodes of all graphs and functions, and keeps the file's order where it can; nodes of a
// cycle come last. Whether one moved.
bool sort_nodes(Model&);

// Names that a node reads, those that its graphs read from outside too.
void for_each_read(const Node&, const std::function<void(std::string_view)>& read);

// Where the node stands in the file, as it stands at `index` now.
inline std::int64_t place_of(const Node& n, std::size_t index) {
  return n.place < 0 ? static_cast<std::int64_t>(index) : n.place;
}

}  // namespace hone::onnx
