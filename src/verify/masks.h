// Masks that hide parts of rows. Kernels that read rows in blocks treat a block that is hidden as a
// whole in a way of its own, and one that begins a row in another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"

namespace hone {

// Changes rows of the last axis: one in four is hidden from its start to shortly before its end,
// one in four as far as its middle. Hidden elements are false or -infinity; the last one is not.
// Seeds and the position of a row decide which.
void hide_rows(std::span<std::byte>, DType, std::span<const std::int64_t> dims, std::uint64_t seed);

// For each parameter, whether it is a float that is added to what a softmax takes, as masks are, or
// is the mask of an attention.
std::vector<bool> masks_of_params(const Function&);

}  // namespace hone
