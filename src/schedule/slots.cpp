#include "schedule/slots.h"

namespace hone {

View dense_view(std::uint32_t slot, const Type& type) {
  return {slot, 0, type.dtype, type.shape.dims, dense_strides(type.shape)};
}

std::uint32_t Slots::add(PlanBuffer::Kind kind, std::uint32_t index, const Type& type,
                         std::uint32_t loop) {
  out_.slots.push_back({kind, index, byte_count(type), loop});
  return static_cast<std::uint32_t>(out_.slots.size() - 1);
}

std::uint32_t Slots::weight(const Array& data) {
  std::vector<std::uint32_t>& known = weights_[data.storage().hash()];
  for (std::uint32_t slot : known)
    if (equal(Attr(out_.weights[out_.slots[slot].index].data), Attr(data))) return slot;
  auto index = static_cast<std::uint32_t>(out_.weights.size());
  out_.weights.push_back({cat("weight", index), data});
  known.push_back(add(PlanBuffer::Kind::weight, index, data.type()));
  return known.back();
}

std::uint32_t Slots::prepared(const Type& type) {
  auto index = static_cast<std::uint32_t>(out_.prepared.size());
  out_.prepared.push_back({cat("prepared", index), type, {}});
  return add(PlanBuffer::Kind::prepared, index, type);
}

}  // namespace hone
