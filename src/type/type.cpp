#include "type/type.h"

#include <ostream>

#include "base/error.h"
#include "base/hash.h"

namespace hone {

bool Shape::is_static() const {
  for (const Dim& d : dims)
    if (!d.is_number()) return false;
  return true;
}

std::vector<std::int64_t> Shape::numbers() const {
  std::vector<std::int64_t> out;
  out.reserve(dims.size());
  for (const Dim& d : dims) out.push_back(d.number());
  return out;
}

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  out << "[";
  for (int i = 0; i < s.rank(); ++i) out << (i ? "," : "") << s[i];
  return out << "]";
}

std::uint64_t Type::hash() const {
  std::uint64_t h = mix(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(dtype));
  for (const Dim& d : shape.dims) h = mix(h, d.hash());
  for (const Type& t : element) h = mix(h, t.hash());
  return mix(h, shape.dims.size());
}

std::ostream& operator<<(std::ostream& out, const Type& t) {
  switch (t.kind) {
    case Type::Kind::tensor:
      return out << t.dtype << t.shape;
    case Type::Kind::token:
      return out << "token";
    case Type::Kind::sequence:
      return out << "sequence<" << t.element.at(0) << ">";
    case Type::Kind::optional:
      return out << "optional<" << t.element.at(0) << ">";
  }
  return out;
}

Dims dense_strides(const Dims& sizes) {
  Dims strides(sizes.size(), Dim(1));
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

Dim byte_count(const Type& t) { return t.shape.count() * Dim(byte_size(t.dtype)); }

}  // namespace hone
