// Heap bytes of a plan's own data structures: steps, sizes, names, records. Does not count the
// contents of weights, prepared buffers and graph arrays, which are in a mapped file or owned by
// others.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace hone {

// Bytes that malloc reserves for a block of n bytes, without its header.
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
// Counts the elements themselves, not what they own.
template <class T>
std::size_t heap_bytes(const std::vector<T>& v) {
  return heap_block(v.capacity() * sizeof(T));
}

std::size_t heap_bytes(const Plan&);
std::size_t heap_bytes(const Json&);

}  // namespace hone
