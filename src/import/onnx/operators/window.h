// Attributes of operators that slide a window over the spatial axes of [n, c, ...].
#pragma once

#include "import/onnx/node/context.h"
#include "ops/common.h"

namespace hone::onnx {

// Their common attributes, one entry per spatial axis. With auto_pad the pads follow from the
// input's sizes.
struct SpatialAttributes {
  Dims window, strides, dilations, pads_low, pads_high;
};

// Entries of an attribute, which must be positive; 1 where it is absent.
Dims list_or_ones(NodeContext& c, std::string_view name, std::size_t n);
// The extent of a window, including its dilation.
Dim reach_of(const Dim& window, const Dim& dilation);
void given_pads(NodeContext& c, SpatialAttributes& a, const std::vector<std::int64_t>& pads);
SpatialAttributes spatial_attributes(NodeContext& c, Dims window, const Shape& input);
// The spatial sizes of the weights, from attribute kernel_shape if present, which is then checked
// against the weights.
Dims window_of_weights(NodeContext& c, Value w);
// Attribute kernel_shape, which is required.
Dims kernel_shape(NodeContext& c);

// ops::conv, or gathered patches times the weights if the weights have open sizes.
Value convolution(Value x, Value w, const SpatialAttributes&, std::int64_t groups,
                  std::optional<DType> dtype = std::nullopt);
// y = conv(x, w) with the attributes of the node, without bias. The result dtype defaults to that
// of x.
Value convolved(NodeContext& c, Value x, Value w, std::optional<DType> dtype = std::nullopt);

// Pooling with the attributes of the node.
Value max_pooled(NodeContext& c, Value x);
Value average_pooled(NodeContext& c, Value x);

}  // namespace hone::onnx
