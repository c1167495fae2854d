#include "import/onnx/file/tensor.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "base/amount.h"
#include "base/checked.h"
#include "base/error.h"
#include "type/text.h"

namespace hone::onnx {

namespace {

struct DataType {
  std::string_view name;
  std::optional<DType> dtype;
};

constexpr DataType data_types[] = {
    {"UNDEFINED", {}},
    {"FLOAT", DType::f32},
    {"UINT8", DType::u8},
    {"INT8", DType::i8},
    {"UINT16", DType::u16},
    {"INT16", DType::i16},
    {"INT32", DType::i32},
    {"INT64", DType::i64},
    {"STRING", DType::text},
    {"BOOL", DType::b1},
    {"FLOAT16", DType::f16},
    {"DOUBLE", DType::f64},
    {"UINT32", DType::u32},
    {"UINT64", DType::u64},
    {"COMPLEX64", {}},
    {"COMPLEX128", {}},
    {"BFLOAT16", DType::bf16},
    {"FLOAT8E4M3FN", DType::f8e4m3fn},
    {"FLOAT8E4M3FNUZ", DType::f8e4m3fnuz},
    {"FLOAT8E5M2", DType::f8e5m2},
    {"FLOAT8E5M2FNUZ", DType::f8e5m2fnuz},
    {"UINT4", DType::u4},
    {"INT4", DType::i4},
    {"FLOAT4E2M1", DType::f4e2m1},
    {"FLOAT8E8M0", DType::f8e8m0},
    {"UINT2", DType::u2},
    {"INT2", DType::i2},
};

// Below this size Storage is compared by content, so a copy is not observable.
constexpr std::size_t small_bytes = 4096;

std::int64_t elements(const Tensor& t) {
  std::int64_t n = 1;
  for (std::int64_t d : t.dims) {
    if (d < 0) throw UserError("size ", d, " is negative");
    n = checked_mul(n, d);
  }
  return n;
}

std::size_t count_of(const TypedData& d, std::size_t width) {
  if (d.type != WireType::bytes) return 1;
  if (width != 0) return d.packed.size() / width;
  return static_cast<std::size_t>(std::count_if(d.packed.begin(), d.packed.end(), [](std::byte b) {
    return static_cast<int>(b) < 128;  // the last byte of each varint
  }));
}

// The typed field that holds elements of a dtype. Half floats are bits in int32_data.
TypedData::Kind kind_of(DType t) {
  switch (t) {
    case DType::f32:
      return TypedData::Kind::f32;
    case DType::f64:
      return TypedData::Kind::f64;
    case DType::i64:
      return TypedData::Kind::i64;
    case DType::u32:
    case DType::u64:
      return TypedData::Kind::u64;
    default:
      return TypedData::Kind::i32;
  }
}

std::size_t fixed_width(TypedData::Kind k) {
  return k == TypedData::Kind::f32 ? 4 : k == TypedData::Kind::f64 ? 8 : 0;
}

// Writes the low bytes of each number, little-endian.
class Writer {
 public:
  Writer(std::span<std::byte> to, std::size_t width) : at_(to.data()), width_(width) {}
  void put(std::uint64_t bits) {
    std::memcpy(at_, &bits, width_);
    at_ += width_;
  }
  void put(std::span<const std::byte> elements) {
    if (!elements.empty()) std::memcpy(at_, elements.data(), elements.size());
    at_ += elements.size();
  }

 private:
  std::byte* at_;
  std::size_t width_;
};

Array decode_typed(const Tensor& t, DType dtype, const WireFile& file) {
  const std::size_t width = fixed_width(kind_of(dtype));
  Array a = Array::zeros(dtype, t.dims);
  Writer out(a.writable_bytes(), static_cast<std::size_t>(byte_size(dtype)));
  for (const TypedData& d : t.typed) {
    if (d.type != WireType::bytes) {
      out.put(dtype == DType::b1 ? d.value != 0 : d.value);
    } else if (width != 0) {
      out.put(d.packed);
    } else {
      PackedVarints numbers(file, d.packed);
      for (std::uint64_t n; numbers.next(n);) out.put(dtype == DType::b1 ? n != 0 : n);
    }
  }
  return a;
}

void expect_typed(const Tensor& t, DType dtype) {
  const std::int64_t count = elements(t);
  const TypedData::Kind kind = kind_of(dtype);
  std::size_t held = 0;
  for (const TypedData& d : t.typed) {
    if (d.kind != kind) throw UserError("its elements are not in the data field of type ", dtype);
    held += count_of(d, fixed_width(kind));
  }
  if (held != static_cast<std::size_t>(count))
    throw UserError("it has ", amount(held, "element", "elements"), ", expected ", count,
                    " for its dims");
}

std::uint64_t decimal(std::string_view key, std::string_view text) {
  std::uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError("external data: ", key, " is '", text, "', expected a number of bytes");
  return n;
}

// In a file any nonzero byte is true; here true is 1.
Storage normal_bools(std::span<const std::byte> bytes) {
  std::vector<std::byte> out(bytes.begin(), bytes.end());
  for (std::byte& b : out) b = std::byte{b != std::byte{0}};
  return Storage::from(std::move(out));
}

bool are_normal(std::span<const std::byte> bools) {
  return std::all_of(bools.begin(), bools.end(), [](std::byte b) { return b <= std::byte{1}; });
}

// A view of elements as stored in the file. Large ones are never copied, so they may be misaligned:
// readers of elements use memcpy, or copy.
Storage view(std::span<const std::byte> bytes, const std::shared_ptr<const MappedFile>& owner,
             DType dtype) {
  if (dtype == DType::b1 && !are_normal(bytes)) return normal_bools(bytes);
  auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (bytes.size() <= small_bytes && address % static_cast<std::uintptr_t>(byte_size(dtype)) != 0)
    return Storage::copy(bytes);
  return Storage(owner, bytes);
}

// Elements smaller than a byte share bytes, the first in the low bits.
bool is_packed(DType t) { return bit_size(t) < 8 && t != DType::b1; }

std::int64_t packed_bytes(std::int64_t count, DType t) {
  const std::int64_t per_byte = 8 / bit_size(t);
  return count / per_byte + (count % per_byte != 0);
}

Array unpacked(DType t, const std::vector<std::int64_t>& dims, std::span<const std::byte> bytes) {
  const int bits = bit_size(t), per_byte = 8 / bits;
  Array out = Array::zeros(t, dims);
  const std::span<std::uint8_t> to = out.writable<std::uint8_t>();
  const bool is_integer = !is_float(t);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const int byte = static_cast<int>(bytes[i / static_cast<std::size_t>(per_byte)]);
    const int at = static_cast<int>(i % static_cast<std::size_t>(per_byte)) * bits;
    const int code = byte >> at & ((1 << bits) - 1);
    to[i] = static_cast<std::uint8_t>(code);
    if (is_integer) out.set_integer(static_cast<std::int64_t>(i), code);
  }
  return out;
}

Array text_elements(const Tensor& t) {
  if (t.raw || t.external || !t.typed.empty())
    throw UserError(
        "it is a string tensor with data outside string_data, expected string_data only");
  if (std::ssize(t.strings) != elements(t))
    throw UserError("it has ", amount(t.strings.size(), "string", "strings"), ", expected ",
                    elements(t), " for its dims");
  return text_array(t.dims, t.strings);
}

struct External {
  std::string_view location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

External external_of(const Tensor& t) {
  External p;
  for (auto& [key, value] : t.external_data) {
    if (key == "location") p.location = value;
    if (key == "offset") p.offset = decimal(key, value);
    if (key == "length") p.length = decimal(key, value);
  }
  return p;
}

}  // namespace

std::optional<DType> dtype_of(std::int32_t n) {
  if (n < 0 || n >= static_cast<std::int32_t>(std::size(data_types))) return std::nullopt;
  return data_types[n].dtype;
}

std::int32_t data_type_of(DType t) {
  for (std::size_t i = 0; i < std::size(data_types); ++i)
    if (data_types[i].dtype == t) return static_cast<std::int32_t>(i);
  HONE_ASSERT(false, "no number for ", t);
}

std::string data_type_name(std::int32_t n) {
  if (n < 0 || n >= static_cast<std::int32_t>(std::size(data_types))) return cat("type ", n);
  return std::string(data_types[n].name);
}

std::optional<std::int32_t> data_type_named(std::string_view name) {
  for (std::size_t i = 0; i < std::size(data_types); ++i)
    if (std::ranges::equal(name, data_types[i].name, {}, [](char c) {
          return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        }))
      return static_cast<std::int32_t>(i);
  return std::nullopt;
}

const std::shared_ptr<const MappedFile>& TensorFiles::open(std::string_view location) {
  auto found = external_.find(location);
  if (found != external_.end()) return found->second;
  std::filesystem::path directory = std::filesystem::path(file_->path()).parent_path();
  auto file = MappedFile::open_contained(directory, location, links_);
  return external_.emplace(std::string(location), std::move(file)).first->second;
}

Storage TensorFiles::external(const Tensor& t, std::uint64_t bytes, DType dtype) {
  External place = external_of(t);
  const std::shared_ptr<const MappedFile>& file = open(place.location);
  std::uint64_t size = file->bytes().size();
  if (place.length && *place.length != bytes)
    throw UserError("external data: length is ", *place.length, " bytes, expected ", bytes,
                    " for its dims");
  if (place.offset > size || bytes > size - place.offset)
    throw UserError("external data: ", bytes, " bytes at offset ", place.offset,
                    " run past the end of '", place.location, "', which has ",
                    amount(size, "byte", "bytes"));
  return view(file->bytes().subspan(place.offset, bytes), file, dtype);
}

Array TensorFiles::decoded(const Tensor& t, DType dtype) {
  if (auto found = decoded_.find(&t); found != decoded_.end()) return found->second;
  expect_typed(t, dtype);
  const TypedData* only = t.typed.size() == 1 ? t.typed.data() : nullptr;
  if (only && only->type == WireType::bytes && fixed_width(only->kind) != 0)
    return Array(dtype, t.dims, view(only->packed, file_, dtype));
  Array a = decode_typed(t, dtype, WireFile(file_->path(), file_->bytes()));
  decoded_.emplace(&t, a);
  return a;
}

// Unpacks bytes that hold several elements.
Array TensorFiles::read_packed(const Tensor& t, DType dtype) {
  if (auto found = decoded_.find(&t); found != decoded_.end()) return found->second;
  Tensor packed = t;
  packed.dims = {packed_bytes(elements(t), dtype)};
  packed.data_type = data_type_of(DType::u8);
  const Array bytes = read(packed);
  decoded_.erase(&packed);
  return decoded_.emplace(&t, unpacked(dtype, t.dims, bytes.bytes())).first->second;
}

Array TensorFiles::read(const Tensor& t) {
  std::optional<DType> dtype = dtype_of(t.data_type);
  if (!dtype)
    throw UserError("elements of type ", data_type_name(t.data_type), " are not supported");
  if (*dtype == DType::text) return text_elements(t);
  if (is_packed(*dtype)) return read_packed(t, *dtype);
  if (t.segment)
    throw UserError("it is a segment of a tensor, which is not supported; store the tensor whole");
  std::int64_t bytes = checked_mul(elements(t), byte_size(*dtype));
  if (t.external)
    return Array(*dtype, t.dims, external(t, static_cast<std::uint64_t>(bytes), *dtype));
  if (!t.raw) return decoded(t, *dtype);
  if (static_cast<std::int64_t>(t.raw->size()) != bytes)
    throw UserError("it has ", amount(t.raw->size(), "byte", "bytes"), ", expected ", bytes,
                    " for its dims");
  return Array(*dtype, t.dims, view(*t.raw, file_, *dtype));
}

Array TensorFiles::array(const Tensor& t) {
  try {
    return read(t);
  } catch (const UserError& e) {
    throw UserError("tensor '", t.name, "': ", e.what());
  }
}

Array TensorFiles::array(const SparseTensor& t) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  const auto fail = [&](const auto&... why) {
    throw UserError("sparse tensor '", t.values.name, "': ", why...);
  };
  const Array values = array(t.values), places = array(t.places);
  std::int64_t bytes = byte_size(values.dtype());
  for (std::int64_t d : t.dims) {
    if (d < 0) fail("size ", d, " is negative");
    const std::optional<std::int64_t> more = try_mul(bytes, d);
    if (!more || *more > most_bytes)
      fail("its dense form exceeds ", most_bytes, " bytes; use smaller sizes");
    bytes = *more;
  }
  const std::int64_t count = values.count(), rank = std::ssize(t.dims);
  const bool is_flat = places.rank() == 1;
  if (values.rank() != 1 || places.dtype() != DType::i64 ||
      places.dims() != (is_flat ? std::vector{count} : std::vector{count, rank}))
    fail("values are ", values.type(), " and indices ", places.type(),
         ", expected [n] and i64[n] or i64[n,", rank, "]");
  if (values.dtype() == DType::text) fail("values are strings, expected numbers");
  Array out = Array::zeros(values.dtype(), t.dims);
  const auto width = static_cast<std::size_t>(byte_size(values.dtype()));
  const std::span<std::byte> to = out.writable_bytes();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = is_flat ? places.integer(i) : 0;
    for (std::int64_t k = 0; k < rank && !is_flat; ++k) {
      const std::int64_t place = places.integer(i * rank + k), size = t.dims[std::size_t(k)];
      if (place < 0 || place >= size)
        fail("index ", place, " at axis ", k,
             " is out of range, expected at least 0 and less than ", size);
      at = at * size + place;
    }
    if (at < 0 || at >= out.count())
      fail("index ", at, " is out of range, expected at least 0 and less than ", out.count());
    std::memcpy(to.data() + static_cast<std::size_t>(at) * width,
                values.bytes().data() + static_cast<std::size_t>(i) * width, width);
  }
  return out;
}

}  // namespace hone::onnx
