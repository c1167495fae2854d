// One element of a tensor, as a number.
#pragma once

#include <cstdint>

namespace hone {

// `real` for float dtypes, `integer` for all others.
struct Element {
  double real = 0;
  std::int64_t integer = 0;
};

}  // namespace hone
