#include "type/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "base/checked.h"
#include "base/hash.h"

namespace hone {

namespace {

constexpr std::size_t content_limit = 4096;  // larger storage is compared by identity

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

// Float to integer saturates, NaN becomes 0 (docs/numbers.md).
template <class T>
T saturate(double x) {
  if (std::isnan(x)) return 0;
  // 2^digits is exact in double while max() of a 64-bit type is not.
  double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (x >= limit) return std::numeric_limits<T>::max();
  if (std::is_signed_v<T> ? x < -limit : x < 0) return std::numeric_limits<T>::min();
  return static_cast<T>(x);
}

// The alignment that the runtime requires of operands, so that arrays are used without a copy.
constexpr std::size_t storage_alignment = 64;

// The low bits of a byte as an integer of a small dtype.
std::int64_t small_integer(DType t, std::int64_t byte) {
  const int unused = 64 - bit_size(t);
  const std::uint64_t high = static_cast<std::uint64_t>(byte) << unused;
  if (is_signed(t)) return static_cast<std::int64_t>(high) >> unused;
  return static_cast<std::int64_t>(high >> unused);
}

std::int64_t saturate_small(DType t, double x) {
  const int bits = bit_size(t) - is_signed(t);
  const std::int64_t high = (std::int64_t{1} << bits) - 1, low = is_signed(t) ? -high - 1 : 0;
  return std::clamp(saturate<std::int64_t>(x), low, high);
}

std::shared_ptr<std::byte> aligned_bytes(std::size_t size) {
  constexpr std::align_val_t align{storage_alignment};
  auto* data = static_cast<std::byte*>(::operator new(size, align, std::nothrow));
  if (!data)
    throw OutOfMemory("out of memory: cannot allocate ", size,
                      " bytes for a tensor; use smaller sizes");
  return {data, [](std::byte* p) { ::operator delete(p, align); }};
}

}  // namespace

Storage Storage::copy(std::span<const std::byte> bytes) {
  std::shared_ptr<std::byte> owner = aligned_bytes(bytes.size());
  if (!bytes.empty()) std::memcpy(owner.get(), bytes.data(), bytes.size());
  return Storage(owner, {owner.get(), bytes.size()});
}

Storage Storage::from(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  std::span<const std::byte> view(*owner);
  return Storage(std::move(owner), view);
}

std::uint64_t Storage::hash() const {
  if (size() <= content_limit) return hash_bytes(bytes_.data(), size());
  return mix(reinterpret_cast<std::uintptr_t>(bytes_.data()), size());
}

bool Storage::operator==(const Storage& other) const {
  if (size() != other.size()) return false;
  if (size() == 0 || bytes_.data() == other.bytes_.data()) return true;
  return size() <= content_limit && std::memcmp(bytes_.data(), other.bytes_.data(), size()) == 0;
}

Array::Array(DType dtype, std::vector<std::int64_t> dims, Storage storage)
    : dtype_(dtype), dims_(std::move(dims)), storage_(std::move(storage)) {
  std::int64_t need = byte_size(dtype);
  for (std::int64_t d : dims_) {
    if (d < 0) throw UserError("array: size ", d, " is negative");
    need = checked_mul(need, d);
  }
  if (need != static_cast<std::int64_t>(storage_.size()))
    throw UserError("array: ", type(), " needs ", need, " bytes, got ", storage_.size());
}

Array Array::zeros(DType dtype, std::vector<std::int64_t> dims) {
  std::int64_t need = byte_size(dtype);
  for (std::int64_t d : dims) {
    if (d < 0) throw UserError("array: size ", d, " is negative");
    need = checked_mul(need, d);
  }
  std::shared_ptr<std::byte> owner;
  try {
    owner = aligned_bytes(static_cast<std::size_t>(need));
  } catch (const OutOfMemory&) {
    throw OutOfMemory("out of memory: cannot allocate ", need, " bytes for a tensor ",
                      Type(dtype, Shape(Dims(dims.begin(), dims.end()))), "; use smaller sizes");
  }
  std::memset(owner.get(), 0, static_cast<std::size_t>(need));
  Array a(dtype, std::move(dims), Storage(owner, {owner.get(), static_cast<std::size_t>(need)}));
  a.writable_ = owner.get();
  return a;
}

Array Array::scalar(double value, DType dtype) {
  Array a = zeros(dtype, {});
  a.set_real(0, value);
  return a;
}

Array Array::scalar_int(std::int64_t value, DType dtype) {
  Array a = zeros(dtype, {});
  a.set_integer(0, value);
  return a;
}

Array Array::from_ints(std::span<const std::int64_t> values) {
  return of<std::int64_t>(DType::i64, {static_cast<std::int64_t>(values.size())}, values);
}

std::int64_t Array::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims_) n = checked_mul(n, d);
  return n;
}

Type Array::type() const { return {dtype_, Shape(Dims(dims_.begin(), dims_.end()))}; }

std::span<std::byte> Array::writable_bytes() {
  HONE_ASSERT(writable_ || storage_.size() == 0, "array of ", type(), " is not writable");
  return {writable_, storage_.size()};
}

double Array::real(std::int64_t i) const {
  const std::byte* p = bytes().data() + i * byte_size(dtype_);
  switch (dtype_) {
    case DType::f32:
      return load<float>(p);
    case DType::f64:
      return load<double>(p);
    case DType::f16:
      return f16_to_f32(load<std::uint16_t>(p));
    case DType::bf16:
      return bf16_to_f32(load<std::uint16_t>(p));
    case DType::u64:
      return static_cast<double>(load<std::uint64_t>(p));
    default:
      if (is_small(dtype_) && is_float(dtype_)) return small_to_f64(dtype_, load<std::uint8_t>(p));
      return static_cast<double>(integer(i));
  }
}

std::int64_t Array::integer(std::int64_t i) const {
  const std::byte* p = bytes().data() + i * byte_size(dtype_);
  switch (dtype_) {
    case DType::b1:
      return load<std::uint8_t>(p) != 0;
    case DType::i8:
      return load<std::int8_t>(p);
    case DType::i16:
      return load<std::int16_t>(p);
    case DType::i32:
      return load<std::int32_t>(p);
    case DType::i64:
    case DType::u64:
    case DType::text:
      return load<std::int64_t>(p);
    case DType::u8:
      return load<std::uint8_t>(p);
    case DType::u16:
      return load<std::uint16_t>(p);
    case DType::u32:
      return load<std::uint32_t>(p);
    default:
      if (is_small(dtype_) && is_integer(dtype_))
        return small_integer(dtype_, load<std::uint8_t>(p));
      return saturate<std::int64_t>(real(i));
  }
}

void Array::set_real(std::int64_t i, double v) {
  std::byte* p = writable_bytes().data() + i * byte_size(dtype_);
  switch (dtype_) {
    case DType::f32:
      return store(p, static_cast<float>(v));
    case DType::f64:
      return store(p, v);
    case DType::f16:
      return store(p, f64_to_f16(v));
    case DType::bf16:
      return store(p, f64_to_bf16(v));
    case DType::b1:
      return store<std::uint8_t>(p, v != 0);
    case DType::i8:
      return store(p, saturate<std::int8_t>(v));
    case DType::i16:
      return store(p, saturate<std::int16_t>(v));
    case DType::i32:
      return store(p, saturate<std::int32_t>(v));
    case DType::i64:
      return store(p, saturate<std::int64_t>(v));
    case DType::u8:
      return store(p, saturate<std::uint8_t>(v));
    case DType::u16:
      return store(p, saturate<std::uint16_t>(v));
    case DType::u32:
      return store(p, saturate<std::uint32_t>(v));
    case DType::u64:
    case DType::text:
      return store(p, saturate<std::uint64_t>(v));
    default:
      if (is_float(dtype_)) return store(p, f64_to_small(dtype_, v));
      return store(p, static_cast<std::uint8_t>(saturate_small(dtype_, v)));
  }
}

void Array::set_integer(std::int64_t i, std::int64_t v) {
  std::byte* p = writable_bytes().data() + i * byte_size(dtype_);
  switch (dtype_) {
    case DType::b1:
      return store<std::uint8_t>(p, v != 0);
    case DType::i8:
    case DType::u8:
      return store(p, static_cast<std::uint8_t>(v));
    case DType::i16:
    case DType::u16:
      return store(p, static_cast<std::uint16_t>(v));
    case DType::i32:
    case DType::u32:
      return store(p, static_cast<std::uint32_t>(v));
    case DType::i64:
    case DType::u64:
    case DType::text:
      return store(p, v);
    default:
      if (is_small(dtype_) && is_integer(dtype_))
        return store(p, static_cast<std::uint8_t>(small_integer(dtype_, v)));
      return set_real(i, static_cast<double>(v));
  }
}

bool Array::operator==(const Array& o) const {
  return dtype_ == o.dtype_ && dims_ == o.dims_ &&
         std::equal(bytes().begin(), bytes().end(), o.bytes().begin(), o.bytes().end());
}

}  // namespace hone
