// What the compiler decides about a convolution before code is made: recognition in a
// group, blocking, scratch, chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one channels-last convolution: the main step, and one that packs
// the weights. Nothing when the group is not of that form.
std::optional<Candidate> convolution_candidate(const GroupSpec&, const TargetInfo&);

// Chooses the register tile, the chunks and the packing from shapes and target alone. Sets `block`
// and what follows it; takes back `in_place_strides` where copying is better.
void choose_blocking(Convolution&, const TargetInfo&);

// Padded input in the memory of one thread, behind the sums of one tile: [space..., channel] of the
// accumulating dtype. It holds what a chunk reads, or, when the input is read in place, the window
// of one tile, with the strides of the input.
struct ConvolutionScratch {
  std::int64_t sums = 0;              // elements
  std::vector<std::int64_t> size;     // of the copy, for each spatial axis
  std::vector<std::int64_t> strides;  // elements
  std::int64_t copy = 0;              // elements in all
};
ConvolutionScratch scratch_of(const Convolution&);
std::int64_t scratch_bytes(const Convolution&);

// Panels of `block` output channels, in all groups.
std::int64_t panel_count(const Convolution&);

// Boxes change fastest (the last axis first), then blocks of panels, then images.
Dim chunks_of(const Convolution&);

Type packed_type(const Convolution&);

}  // namespace hone
