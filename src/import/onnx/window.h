// Attributes of operators that slide a window over the spatial axes of [n, c, ...].
#pragma once

#include "import/onnx/context.h"
#include "ops/common.h"

namespace hone::onnx {

// Attributes that they share, one entry for each spatial axis. With auto_pad the pads follow from
// the input's sizes.
struct SpatialAttributes {
  Dims window, strides, dilations, pads_low, pads_high;
};

// Entries of an attribute, all positive; 1 where it is not given.
Dims list_or_ones(NodeContext& c, std::string_view name, std::size_t n);
// How far a window reaches, its dilation included.
Dim reach_of(const Dim& window, const Dim& dilation);
void given_pads(NodeContext& c, SpatialAttributes& a, const std::vector<std::int64_t>& pads);
SpatialAttributes spatial_attributes(NodeContext& c, Dims window, const Shape& input);
// The spatial sizes of the weights: those of attribute kernel_shape, which is checked against the
// weights, where it is given.
Dims window_of_weights(NodeContext& c, Value w);
// Attribute kernel_shape, which must be there.
Dims kernel_shape(NodeContext& c);

// ops::conv, or the same as gathered patches times the weights where these have open sizes.
Value convolution(Value x, Value w, const SpatialAttributes&, std::int64_t groups,
                  std::optional<DType> dtype = std::nullopt);
// y = conv(x, w) with the attributes of the node, without a bias. The dtype of the result is that
// of x where none is given.
Value convolved(NodeContext& c, Value x, Value w, std::optional<DType> dtype = std::nullopt);

// Pooling by the attributes of the node.
Value max_pooled(NodeContext& c, Value x);
Value average_pooled(NodeContext& c, Value x);

}  // namespace hone::onnx
