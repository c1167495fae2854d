// Bytes with an owner, and host tensors over them. Not device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "type/type.h"

namespace hone {

// Immutable bytes with a shared owner: a memory map, a vector, a user's buffer. Small storage (<= 4
// KiB) is compared by content, larger storage by identity (owner's address and extent).
class Storage {
 public:
  Storage() = default;
  Storage(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}
  static Storage copy(std::span<const std::byte>);  // aligned to 64 bytes
  static Storage from(std::vector<std::byte>);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  std::uint64_t hash() const;  // consistent with ==
  bool operator==(const Storage&) const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

// A dense row-major host tensor with static shape. Copies share storage; writable storage comes
// from Array::zeros, is aligned to 64 bytes and has exactly one owner.
class Array {
 public:
  Array() = default;
  Array(DType dtype, std::vector<std::int64_t> dims, Storage storage);  // checks the size
  static Array zeros(DType, std::vector<std::int64_t> dims);

  template <class T>
  static Array of(DType dtype, std::vector<std::int64_t> dims, std::span<const T> values) {
    return Array(dtype, std::move(dims), Storage::copy(std::as_bytes(values)));
  }
  static Array scalar(double value, DType dtype);  // rounds to dtype
  static Array scalar_int(std::int64_t value, DType dtype);
  static Array from_ints(std::span<const std::int64_t> values);  // i64[n]

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t count() const;
  Type type() const;
  const Storage& storage() const { return storage_; }
  std::span<const std::byte> bytes() const { return storage_.bytes(); }
  // Only for arrays from zeros() that are not yet shared.
  std::span<std::byte> writable_bytes();
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  template <class T>
  std::span<T> writable() {
    auto b = writable_bytes();
    return {reinterpret_cast<T*>(b.data()), b.size() / sizeof(T)};
  }

  // Element i (row-major) as a double, or exactly as an integer (floats truncate).
  double real(std::int64_t i) const;
  std::int64_t integer(std::int64_t i) const;
  // Rounds once to a float dtype; saturates to an integer dtype, NaN giving 0.
  void set_real(std::int64_t i, double value);
  void set_integer(std::int64_t i, std::int64_t value);  // wraps

  // Same dtype, dims and bytes.
  bool operator==(const Array&) const;

 private:
  DType dtype_ = DType::f32;
  std::vector<std::int64_t> dims_;
  Storage storage_;
  std::byte* writable_ = nullptr;
};

// Total bytes of their elements.
inline std::size_t bytes_of(std::span<const Array> arrays) {
  std::size_t bytes = 0;
  for (const Array& a : arrays) bytes += a.bytes().size();
  return bytes;
}

}  // namespace hone
