// Operations that functions of the host compute (src/host), on bytes that nobody trusts. They fail
// on most random data, so they are no part of all_ops(), whose samples are random.
#pragma once

#include <span>

#include "ir/op.h"

namespace hone {

namespace ops {
extern const Op decode_image;  // attrs: kind, count
}  // namespace ops

std::span<const Op* const> host_ops();

}  // namespace hone
