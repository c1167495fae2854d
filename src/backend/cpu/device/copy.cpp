#include "backend/cpu/device/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace hone {

namespace {

constexpr std::int64_t chunk_bytes = 64 << 10;

template <class T>
void copy_elements(std::byte* to, std::int64_t to_stride, const std::byte* from,
                   std::int64_t from_stride, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}

}  // namespace

CpuCopy::CpuCopy(const StridedCopy& c) : element_(static_cast<std::int64_t>(c.element_bytes)) {
  for (std::size_t i = 0; i < c.dims.size(); ++i) {
    if (c.dims[i] == 0) return;  // nothing to do: no chunk
    if (c.dims[i] > 1) axes_.push_back({c.dims[i], c.to_strides[i], c.from_strides[i]});
  }
  join_axes();
  split_row();
  for (const Axis& a : axes_) rows_ *= a.size;
  const std::int64_t row_bytes = row_.size * std::max<std::int64_t>(element_, 1);
  rows_per_chunk_ = std::clamp(chunk_bytes / row_bytes, std::int64_t{1}, rows_);
  chunks_ = (rows_ + rows_per_chunk_ - 1) / rows_per_chunk_;
}

void CpuCopy::join_axes() {
  std::sort(axes_.begin(), axes_.end(),
            [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Axis> joined;
  for (const Axis& inner : axes_) {
    if (!joined.empty() && joined.back().to == inner.to * inner.size &&
        joined.back().from == inner.from * inner.size)
      joined.back() = {joined.back().size * inner.size, inner.to, inner.from};
    else
      joined.push_back(inner);
  }
  axes_ = std::move(joined);
  if (axes_.empty()) axes_.push_back({1, element_, element_});
  row_ = axes_.back();
  axes_.pop_back();
}

// A contiguous row is copied as bytes; a long one is split into several.
void CpuCopy::split_row() {
  if (row_.to != element_ || row_.from != element_) return;
  const std::int64_t bytes = row_.size * element_;
  element_ = 1;
  row_ = {bytes, 1, 1};
  for (std::int64_t piece = chunk_bytes; piece >= chunk_bytes / 16 && bytes > piece; piece /= 2)
    if (bytes % piece == 0) {
      axes_.push_back({bytes / piece, piece, piece});
      row_.size = piece;
      return;
    }
}

void CpuCopy::run(void* const* operands, std::int64_t begin, std::int64_t end, void*) const {
  const auto* from = static_cast<const std::byte*>(operands[0]);
  auto* to = static_cast<std::byte*>(operands[1]);
  const std::int64_t last = std::min(end * rows_per_chunk_, rows_);
  for (std::int64_t row = begin * rows_per_chunk_; row < last; ++row) {
    std::int64_t rest = row, to_offset = 0, from_offset = 0;
    for (std::size_t i = axes_.size(); i-- > 0;) {
      const std::int64_t at = rest % axes_[i].size;
      rest /= axes_[i].size;
      to_offset += at * axes_[i].to;
      from_offset += at * axes_[i].from;
    }
    copy_row(to + to_offset, from + from_offset);
  }
}

void CpuCopy::copy_row(std::byte* to, const std::byte* from) const {
  if (element_ == 1 && row_.to == 1 && row_.from == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(row_.size));
    return;
  }
  switch (element_) {
    case 1:
      return copy_elements<std::uint8_t>(to, row_.to, from, row_.from, row_.size);
    case 2:
      return copy_elements<std::uint16_t>(to, row_.to, from, row_.from, row_.size);
    case 4:
      return copy_elements<std::uint32_t>(to, row_.to, from, row_.from, row_.size);
    default:
      return copy_elements<std::uint64_t>(to, row_.to, from, row_.from, row_.size);
  }
}

}  // namespace hone
