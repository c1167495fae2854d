// Addresses of the functions that generated code may call: the table of plan/binary.h in this
// process.
#pragma once

#include <cstdint>

namespace hone {

// nullptr for a sanitizer hook in a build without that sanitizer.
const void* helper_address(std::uint32_t helper);

}  // namespace hone
