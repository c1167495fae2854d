// The axes of dot and conv by role, for kernels, library adapters and tests. Does not define the
// operations.
#pragma once

#include "ops/common.h"

namespace hone {

// Result axes: batch, then free_a, then free_b. Paired lists correspond index by index.
struct DotAxes {
  Axes batch_a, batch_b, contract_a, contract_b, free_a, free_b;
};
DotAxes dot_axes(const Attrs&, int rank_a, int rank_b);

// The positions of batch, channels and spatial axes in x, y (equal) and in the weights.
struct ConvAxes {
  int batch = 0, channel = 1, out = 0, in = 1;  // x: batch, channel; weights: out, in
  Axes space, weight_space;
};
// channels-first: x [N,C,...], w [O,I/groups,...]; channels-last: x [N,...,C], w [...,I/groups,O].
ConvAxes conv_axes(const Attrs&, int rank);

}  // namespace hone
