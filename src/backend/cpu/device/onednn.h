// The adapter to oneDNN: f32 matrix products and convolutions as calls of a plan. Primitives run on
// one thread, on pieces that our own pool hands out; the pieces depend only on the sizes.
#pragma once

#include <memory>
#include <optional>

#include "backend/cpu/device/call.h"

namespace hone::onednn {

// "onednn.matmul": operands a [b?,m,k], b [b?,k,n], bias (n elements) when the setting `bias` is 1,
// out [b?,m,n]. transpose_a, transpose_b: the last two axes are swapped. "onednn.conv": x
// [n,space...,c], weights [taps...,c/groups,o], bias, out [n,space...,o]; settings groups, and per
// spatial axis i strides<i>, dilations<i>, pads_low<i>, pads_high<i>. With channels_last 0: x
// [n,c,space...], weights [o,c/groups,taps...], out [n,o,space...]. Both: `relu`; `packed`, by
// packing(). "onednn.pack": operands constant, packed. Throws UserError when this build or machine
// has no oneDNN, or oneDNN does not support the call.
std::unique_ptr<CpuCall> bind(const CallRequest&);

// The best storage format of the second operand, a constant, for this request. Empty: unchanged.
std::optional<Packing> packing(const CallRequest&);

}  // namespace hone::onednn
