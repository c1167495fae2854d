// How generated kernels are called; the compiler half builds functions of this type. A C signature,
// so that it is the same in every process that loads a plan.
#pragma once

#include <cstdint>

namespace hone {

// Computes chunks [begin, end) of the kernel's parallel space. `buffers` are the kernel's operands
// in their order; `sizes` the values of its symbolic dims; `scratch` belongs to the calling thread
// and is aligned to 64 bytes.
using KernelFunction = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t begin,
                                std::int64_t end, void* scratch);

}  // namespace hone
