// Identifies the source version that this program was built from.
#pragma once

#include <string_view>

namespace hone {

// Part of every cache key: 32 hexadecimal digits, a hash of the sources of the compiler, the
// runtime and the reference, and of their build flags.
std::string_view build_id();

}  // namespace hone
