// One element of a tensor, as a number.
#pragma once

#include <cstdint>

namespace hone {

// `real` for float dtypes, `integer` for all others.
struct Element {
  double real = 0;
  std::int64_t integer = 0;
};

// The same element in the strict and the wide mode of the reference.
struct ElementOfModes {
  Element strict, wide;
};

}  // namespace hone
