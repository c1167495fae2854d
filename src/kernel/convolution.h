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
// and what follows it.
void choose_blocking(Convolution&, const TargetInfo&);

// A chunk copies the input that it reads, padded with zeros, to the memory of its thread:
// [space..., channel] of the accumulating dtype, behind the sums of one tile.
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
