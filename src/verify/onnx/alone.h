// Makes models of one node: a node of a larger model on its own operands, which are as small as its
// rules allow, so that its results can be checked however large the model is.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/onnx/file/model.h"
#include "import/onnx/source.h"
#include "ir/graph.h"
#include "type/array.h"

namespace hone::onnx {

// A node as the import read it. Names are views into the model's file.
struct MetNode {
  struct Operand {
    Type type;
    // Its contents, if known to the import and small: as sizes, which may be open, or all values.
    std::optional<Dims> sizes;
    std::optional<Array> contents;
  };
  Node node;
  std::vector<Opset> opsets;
  std::vector<std::optional<Operand>> operands;  // empty: omitted
};
MetNode met_node(const Node&, const std::vector<Opset>&, const Values& operands);
// Equal for nodes that do the same on operands of the same types and known contents.
std::string kind_of(const MetNode&);

// The same with numbers as sizes.
struct SizedNode {
  struct Operand {
    DType dtype;
    std::vector<std::int64_t> dims;
    std::optional<Array> contents;
    // From this axis on, sizes are those of a window, on which attributes such as pads depend.
    std::size_t window_from = ~std::size_t{0};
  };
  const MetNode* met = nullptr;
  std::vector<std::optional<Operand>> operands;
};
// Empty if a size is not known or an operand is not a tensor.
std::optional<SizedNode> sized_node(const MetNode&,
                                    const std::function<std::int64_t(const Dim&)>& size_of);
// Equal for nodes that compute the same on operands of the same sizes.
std::string kind_of(const SizedNode&);

// Sizes, and the sizes that replace them.
struct SizeMap {
  std::map<std::int64_t, std::int64_t> sizes = {};
  bool in_contents = false;  // also replace sizes in the contents of operands
  bool in_windows = false;   // also replace sizes of windows

  std::int64_t of(std::int64_t size) const {
    const auto at = sizes.find(size);
    return at == sizes.end() ? size : at->second;
  }
};
// Tries in order: each large size becomes a different small one, with and then without contents;
// all large sizes are divided by one number; each size in turn as far as the node accepts it; and
// the original sizes. Calls `tries` until it returns true. `accepts` says whether the node can be
// read with such sizes.
void try_small_sizes(const SizedNode&, const std::function<bool(const SizeMap&)>& accepts,
                     const std::function<bool(const SizeMap&)>& tries);

// Maps that change all sizes, with and without sizes of 1 and those of windows: they show code that
// is right at one size only.
std::vector<SizeMap> other_sizes(const SizedNode&);

// A model that consists of this node. Operands with known contents become initializers, the others
// inputs. Not movable, because the model has views into `contents`.
struct OneNode {
  OneNode(const SizedNode&, const SizeMap&);
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  Model model;
  std::deque<Array> contents;
};

}  // namespace hone::onnx
