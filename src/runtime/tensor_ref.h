// A caller's tensor: where it lies, and how. Owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "type/array.h"

namespace hone {

// In the host's memory (`memory`), or in that of a device (`device` and `at`). `dims` and `strides`
// must stay valid during the call, the memory during every run.
struct TensorRef {
  DType dtype = DType::f32;
  std::span<const std::int64_t> dims;
  // Exactly as many bytes as dtype and dims say. With strides, it begins at the element of index 0
  // and ends no earlier than the last byte in use; negative strides lead before it.
  std::span<std::byte> memory = {};
  // In elements, one per axis; empty: dense row-major.
  std::span<const std::int64_t> strides = {};
  // Null: the host's memory.
  const Device* device = nullptr;
  DeviceMemory at = {};  // the element of index 0
};

// The array as an input. Runs write to it only if the plan's parameter is donated.
TensorRef as_input(const Array&);
// Memory of `count` elements at `data`.
template <class T>
std::span<std::byte> memory_of(T* data, std::size_t count) {
  return std::as_writable_bytes(std::span<T>(data, count));
}

// "f32[2,3]"
std::string dims_text(DType, std::span<const std::int64_t> dims);

using Strides = std::span<const std::int64_t>;  // in elements

// In messages: "input 'x'", or the kind alone.
struct TensorName {
  std::string_view kind, name = {};
  std::string text() const;
};

// Bytes of all elements. Throws UserError for negative and too large sizes.
std::size_t dense_bytes(const TensorName&, DType, std::span<const std::int64_t> dims);
// Whether elements lie densely in row-major order. Strides of axes of size 1 do not count.
bool is_dense(std::span<const std::int64_t> dims, Strides);
// Whether no two elements share memory; may be false for unusual strides that keep them apart.
bool are_elements_apart(std::span<const std::int64_t> dims, Strides);
// The bytes in use, relative to the element of index 0; empty without elements.
OperandReach reach_of(DType, std::span<const std::int64_t> dims, Strides);

// Between strided memory and dense memory of the same elements.
StridedCopy gathering(DType, std::span<const std::int64_t> dims, Strides);
StridedCopy scattering(DType, std::span<const std::int64_t> dims, Strides);
void copy_on_host(const StridedCopy&, std::byte* to, const std::byte* from);

}  // namespace hone
