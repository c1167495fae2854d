// Formats an amount with its noun. Not for tables.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace hone {

// "1 entry", "2 entries".
template <class N>
std::string amount(const N& n, std::string_view one, std::string_view many) {
  return cat(n, " ", n == N(1) ? one : many);
}

}  // namespace hone
