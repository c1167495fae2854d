// Models of one node: a node of a larger model on operands of its own, which are as small as its
// rules allow, so that what it gives can be judged whatever the size of the model.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/onnx/model.h"
#include "import/onnx/source.h"
#include "ir/graph.h"
#include "type/array.h"

namespace hone::onnx {

// A node as the import met it. Names are views into the model's file.
struct MetNode {
  struct Operand {
    Type type;
    // What it holds, where the import knew that and it is little: numbers of open sizes, or all.
    std::optional<Dims> sizes;
    std::optional<Array> contents;
  };
  Node node;
  std::vector<Opset> opsets;
  std::vector<std::optional<Operand>> operands;  // nothing: omitted
};
MetNode met_node(const Node&, const std::vector<Opset>&, const Values& operands);

// The same with sizes that are numbers.
struct SizedNode {
  struct Operand {
    DType dtype;
    std::vector<std::int64_t> dims;
    std::optional<Array> contents;
  };
  const MetNode* met = nullptr;
  std::vector<std::optional<Operand>> operands;
};
// Empty if a size is not known or an operand is not a tensor.
std::optional<SizedNode> sized_node(const MetNode&,
                                    const std::function<std::int64_t(const Dim&)>& size_of);
// Equal for nodes that do the same on operands of the same sizes.
std::string kind_of(const SizedNode&);

// Which sizes are taken for others.
struct SizeMap {
  std::map<std::int64_t, std::int64_t> sizes = {};
  bool in_contents = false;  // those that operands hold, too

  std::int64_t of(std::int64_t size) const {
    const auto at = sizes.find(size);
    return at == sizes.end() ? size : at->second;
  }
};
// Each large size becomes another small one, in contents too and then not; all large sizes are
// divided by one number; each in turn as far as the node accepts that; and as they are. Calls
// `tries` until it returns true. `accepts` says whether the node can be read with such sizes.
void try_small_sizes(const SizedNode&, const std::function<bool(const SizeMap&)>& accepts,
                     const std::function<bool(const SizeMap&)>& tries);

// Sizes that are all others, those of one with and without: what is right at one size only shows.
std::vector<SizeMap> other_sizes(const SizedNode&);

// A model that consists of this node. Operands with known contents become initializers, the others
// inputs of the model. Not movable, because the model has views into `contents`.
struct OneNode {
  OneNode(const SizedNode&, const SizeMap&);
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  Model model;
  std::deque<Array> contents;
};

}  // namespace hone::onnx
