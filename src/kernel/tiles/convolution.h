// A channels-last convolution on machines with register tiles: recognised in a group, cut into
// blocks, and written as statements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/problem/anchored.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one channels-last convolution: the main step, and one that packs
// the weights. Returns nullopt if the group does not match.
std::optional<Candidate> convolution_candidate(const GroupSpec&, const TargetInfo&,
                                               const Tuning& = {});
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> convolution_space(const GroupSpec&, const TargetInfo&);

// y[image, o..., c] = sum x[image, o*stride + t*dilation - pad, i] * w[t..., i, c]. Up to three
// spatial axes, outermost first. Weights are packed (zero-padded, of packed_dtype) in param
// `packed_weights`, as [group, ceil(c/columns), t..., i, columns], or, when each channel is a group
// of its own (is_depthwise), as [ceil(c/columns), t..., columns].
// Variables of input and of epilogue: (image, spatial..., channel).
struct Convolution {
  Dim images = 1;
  Dims in_size, out_size;  // spatial
  std::vector<std::int64_t> window, strides, dilations;
  Dims pads_low;
  std::int64_t groups = 1, in_channels = 1, out_channels = 1;  // per whole tensor
  DType accumulate = DType::f32;
  Splice input, epilogue;
  int packed_weights = -1;
  DType packed_dtype = DType::f32;
  // The input is a load, contiguous over the channels and over pixels along the last axis.
  bool input_is_dense = false;
  // The strides (elements) of the spatial axes, if tiles can read the input in place.
  std::vector<std::int64_t> in_place_strides;

  bool is_depthwise() const { return groups == in_channels && groups == out_channels; }
  // Input pixels that `outputs` output pixels along an axis read.
  std::int64_t input_extent(std::size_t axis, std::int64_t outputs) const {
    return (outputs - 1) * strides[axis] + (window[axis] - 1) * dilations[axis] + 1;
  }
};

struct ConvolutionTuning {
  // The register tile is a box of output pixels x columns output channels, columns a multiple of
  // the vector length. A chunk is a box of output pixels, of multiples of the tile, x some panels
  // of `columns` channels. One entry of tile and chunk for each spatial axis.
  std::int64_t columns = 16;
  std::vector<std::int64_t> tile, chunk;
  std::int64_t chunk_panels = 1;
  // Tiles inside the image read the input in place; others copy their window. If false, a chunk
  // copies all that it reads.
  bool in_place = false;

  std::int64_t rows() const;  // of the register tile
  Tuning named() const;
};

// The choice by shapes and target, overridden by what the tuning names, as far as the convolution
// allows it.
ConvolutionTuning tuned(const Convolution&, const TargetInfo&, const Tuning& = {});
std::vector<Tuning> space_of(const Convolution&, const TargetInfo&);

// Padded input in the memory of one thread, after the sums of one tile: [space..., channel] of the
// accumulating dtype. It holds what a chunk reads or, if the input is read in place, the window of
// one tile, with the strides of the input.
struct ConvolutionScratch {
  std::int64_t sums = 0;              // elements
  std::vector<std::int64_t> strides;  // elements
  std::int64_t copy = 0;              // elements in total
};
ConvolutionScratch scratch_of(const Convolution&, const ConvolutionTuning&);

// Number of panels of `columns` output channels, over all groups.
std::int64_t panel_count(const Convolution&, const ConvolutionTuning&);

Type packed_type(const Convolution&, const ConvolutionTuning&);

// Adds the statements to a kernel that has its parameters.
void write_convolution(Kernel&, Lowering&, const Convolution&, const ConvolutionTuning&,
                       const TargetInfo&);

}  // namespace hone
