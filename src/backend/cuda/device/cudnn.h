// Convolutions and attention by cuDNN, which is opened when a plan first calls it.
#pragma once

#include <memory>
#include <optional>

#include "backend/cuda/device/call.h"
#include "runtime/library_status.h"

namespace hone::cudnn {

LibraryStatus library_status();

// cudnn.conv: an image with channels last and two spatial axes, packed weights, with `bias` a
// vector of the output's channels, with `residual` a value like the result, and the result. The
// settings bias, residual, relu apply in this order; strides0, dilations0, pads_low0, pads_high0
// and so on, groups; tf32: f32 operands may be rounded to tf32.
//
// cudnn.attention: queries, keys and values [batch?, heads, length, depth], with `mask` a value
// added to the scores, and the result. Settings: scale_bits, an f32; causal, with causal_offset the
// last key that the first query sees.
//
// Both: plan, the index in the library's list of proposals. Throws UserError for what the library
// does not support.
std::unique_ptr<cuda::CudaCall> bind(std::shared_ptr<cuda::Context>, const CallRequest&);

// Packs weights [height, width, in, out] as [out, height, width, in].
std::optional<Packing> packing(const CallRequest&);

}  // namespace hone::cudnn
