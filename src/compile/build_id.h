// Which state of the sources this program was built from.
#pragma once

#include <string_view>

namespace hone {

// Part of the key of everything that is cached: 32 hexadecimal digits, from the sources of the
// compiler, the runtime and the reference, and from the flags that they were built with.
std::string_view build_id();

}  // namespace hone
