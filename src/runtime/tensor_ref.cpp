#include "runtime/tensor_ref.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace hone {

std::string dims_text(DType dtype, std::span<const std::int64_t> dims) {
  return cat(dtype, Shape(Dims(dims.begin(), dims.end())));
}

TensorRef as_input(const Array& a) {
  const std::span<const std::byte> bytes = a.bytes();
  return {a.dtype(), a.dims(), {const_cast<std::byte*>(bytes.data()), bytes.size()}};
}

std::string TensorName::text() const {
  return name.empty() ? std::string(kind) : cat(kind, " '", name, "'");
}

std::size_t dense_bytes(const TensorName& what, DType dtype, std::span<const std::int64_t> dims) {
  std::int64_t bytes = byte_size(dtype);
  for (std::int64_t d : dims) {
    if (d < 0) throw UserError(what.text(), " has size ", d, ", expected 0 or more");
    bytes = checked_mul(bytes, d);
  }
  return static_cast<std::size_t>(bytes);
}

namespace {

bool is_empty(std::span<const std::int64_t> dims) { return std::ranges::count(dims, 0) > 0; }

}  // namespace

bool is_dense(std::span<const std::int64_t> dims, Strides strides) {
  if (strides.empty() || is_empty(dims)) return true;
  std::int64_t expected = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected = checked_mul(expected, dims[i]);
  }
  return true;
}

// From the smallest stride on, each steps over everything that those before it reach.
bool are_elements_apart(std::span<const std::int64_t> dims, Strides strides) {
  if (strides.empty() || is_empty(dims)) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, steps
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 1) axes.emplace_back(std::abs(strides[i]), dims[i] - 1);
  std::ranges::sort(axes);
  std::int64_t reached = 0;
  for (const auto& [stride, steps] : axes) {
    if (stride <= reached) return false;
    reached = checked_add(reached, checked_mul(steps, stride));
  }
  return true;
}

OperandReach reach_of(DType dtype, std::span<const std::int64_t> dims, Strides strides) {
  OperandReach r;
  if (is_empty(dims)) return r;
  const std::int64_t element = byte_size(dtype);
  r.end = element;
  if (strides.empty()) {
    for (std::int64_t d : dims) r.end = checked_mul(r.end, d);
    return r;
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t last = checked_mul(checked_mul(dims[i] - 1, strides[i]), element);
    std::int64_t& side = last < 0 ? r.begin : r.end;
    side = checked_add(side, last);
  }
  return r;
}

StridedCopy gathering(DType dtype, std::span<const std::int64_t> dims, Strides strides) {
  StridedCopy c;
  const std::int64_t element = byte_size(dtype);
  c.element_bytes = static_cast<std::size_t>(element);
  c.dims.assign(dims.begin(), dims.end());
  c.to_strides.resize(dims.size());
  std::int64_t dense = element;
  for (std::size_t i = dims.size(); i-- > 0;) {
    c.to_strides[i] = dense;
    dense = checked_mul(dense, dims[i]);
  }
  c.from_strides = c.to_strides;
  for (std::size_t i = 0; i < strides.size(); ++i)
    c.from_strides[i] = checked_mul(strides[i], element);
  return c;
}

StridedCopy scattering(DType dtype, std::span<const std::int64_t> dims, Strides strides) {
  StridedCopy c = gathering(dtype, dims, strides);
  std::swap(c.to_strides, c.from_strides);
  return c;
}

namespace {

void copy_axis(const StridedCopy& c, std::size_t axis, std::byte* to, const std::byte* from) {
  const std::size_t rank = c.dims.size();
  if (axis == rank) {
    std::memcpy(to, from, c.element_bytes);
    return;
  }
  const auto element = static_cast<std::int64_t>(c.element_bytes);
  if (axis + 1 == rank && c.to_strides[axis] == element && c.from_strides[axis] == element) {
    std::memcpy(to, from, static_cast<std::size_t>(c.dims[axis]) * c.element_bytes);
    return;
  }
  for (std::int64_t i = 0; i < c.dims[axis]; ++i)
    copy_axis(c, axis + 1, to + i * c.to_strides[axis], from + i * c.from_strides[axis]);
}

}  // namespace

void copy_on_host(const StridedCopy& c, std::byte* to, const std::byte* from) {
  if (!is_empty(c.dims)) copy_axis(c, 0, to, from);
}

}  // namespace hone
