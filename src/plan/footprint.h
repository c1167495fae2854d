// How many bytes of heap a plan's own data structures take: steps, sizes, names, records. Not the
// contents of weights, prepared buffers and graph arrays, which lie in a map or belong to others.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace hone {

// What malloc sets aside for a block of n bytes, its own header left out.
constexpr std::size_t heap_block(std::size_t n) {
  constexpr std::size_t least = 24, step = 16, header = 8;
  if (n <= least) return n == 0 ? 0 : least;
  return (n + header + step - 1) / step * step - header;
}
inline std::size_t heap_bytes(const std::string& s) {
  const auto* at = reinterpret_cast<const char*>(&s);
  const bool is_inside = s.data() >= at && s.data() < at + sizeof s;
  return is_inside ? 0 : heap_block(s.capacity() + 1);
}
// Of the elements themselves, not of what they own.
template <class T>
std::size_t heap_bytes(const std::vector<T>& v) {
  return heap_block(v.capacity() * sizeof(T));
}

std::size_t heap_bytes(const Plan&);
std::size_t heap_bytes(const Json&);

}  // namespace hone
