// Memory that has room for a longer value: one that grows along an axis, such as a cache.
#pragma once

#include <cstdint>
#include <optional>

#include "type/type.h"

namespace hone {

struct Capacity {
  std::uint32_t axis = 0;
  std::int64_t size = 0;  // the most along the axis
  bool operator==(const Capacity&) const = default;
};

// The type of the whole memory. The elements of a value lie where they would lie in that tensor.
inline Type whole_type(Type t, const std::optional<Capacity>& c) {
  if (c) t.shape.dims[c->axis] = c->size;
  return t;
}
// Whether a value of this type always has room there.
inline bool fits(const Capacity& c, const Type& t) {
  return t.is_tensor() && static_cast<int>(c.axis) < t.rank() &&
         t.shape.dims[c.axis].high() <= c.size;
}
// Whether both fit and are equal but for their size along the axis.
inline bool same_but_for(const Capacity& c, const Type& a, const Type& b) {
  return fits(c, a) && fits(c, b) && whole_type(a, c) == whole_type(b, c);
}

}  // namespace hone
