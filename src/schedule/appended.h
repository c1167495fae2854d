// Results that are a parameter with capacity and new elements behind it: only these are written.
#pragma once

#include <cstddef>

#include "ir/function.h"

namespace hone {

// Whether the result is stored to a parameter with capacity and is a concat, along that axis, which
// begins with the parameter: what the parameter holds is already where the result needs it.
bool is_appended(const Function&, std::size_t result);

}  // namespace hone
