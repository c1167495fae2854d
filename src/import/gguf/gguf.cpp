#include "import/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/amount.h"
#include "base/checked.h"
#include "import/gguf/blocks.h"

namespace hone {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

namespace {

constexpr int most_axes = 4;
constexpr int most_nested = 8;            // nesting depth of metadata arrays
constexpr std::uint64_t most_text = 400;  // length of a stored metadata value
constexpr std::string_view alignment_key = "general.alignment";

// Plain elements have blocks of one.
struct Format {
  GgufType type;
  std::string_view name;
  std::int64_t elements, bytes;  // per block
  std::optional<DType> dtype;
};

constexpr Format formats[] = {
    {GgufType::f32, "F32", 1, 4, DType::f32},
    {GgufType::f16, "F16", 1, 2, DType::f16},
    {GgufType::bf16, "BF16", 1, 2, DType::bf16},
    {GgufType::f64, "F64", 1, 8, DType::f64},
    {GgufType::i8, "I8", 1, 1, DType::i8},
    {GgufType::i16, "I16", 1, 2, DType::i16},
    {GgufType::i32, "I32", 1, 4, DType::i32},
    {GgufType::i64, "I64", 1, 8, DType::i64},
    {GgufType::q4_0, "Q4_0", 32, sizeof(gguf::Q4_0), {}},
    {GgufType::q4_1, "Q4_1", 32, sizeof(gguf::Q4_1), {}},
    {GgufType::q5_0, "Q5_0", 32, sizeof(gguf::Q5_0), {}},
    {GgufType::q5_1, "Q5_1", 32, sizeof(gguf::Q5_1), {}},
    {GgufType::q8_0, "Q8_0", 32, sizeof(gguf::Q8_0), {}},
    {GgufType::q4_k, "Q4_K", 256, sizeof(gguf::Q4_K), {}},
    {GgufType::q5_k, "Q5_K", 256, sizeof(gguf::Q5_K), {}},
    {GgufType::q6_k, "Q6_K", 256, sizeof(gguf::Q6_K), {}},
};

const Format* find_format(std::uint32_t number) {
  for (const Format& f : formats)
    if (static_cast<std::uint32_t>(f.type) == number) return &f;
  return nullptr;
}

const Format& format_of(GgufType t) {
  const Format* f = find_format(static_cast<std::uint32_t>(t));
  HONE_ASSERT(f, "a tensor has a known type");
  return *f;
}

std::string supported() {
  std::string out;
  for (const Format& f : formats) out += cat(out.empty() ? "" : ", ", f.name);
  return out;
}

// Metadata values, by the format's numbers.
struct ValueType {
  std::string_view name;
  std::size_t bytes;  // 0: string or array
};
constexpr ValueType value_types[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},  {"u32", 4},
                                     {"i32", 4}, {"f32", 4}, {"bool", 1}, {"text", 0}, {"array", 0},
                                     {"u64", 8}, {"i64", 8}, {"f64", 8}};
constexpr std::uint32_t text_type = 8, array_type = 9;

// Reads the file sequentially, never past its end.
class Cursor {
 public:
  explicit Cursor(const MappedFile& file) : file_(file) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return file_.bytes().size() - at_; }

  std::span<const std::byte> take(std::uint64_t bytes, std::string_view what) {
    if (bytes > left())
      fail(cat("is truncated or damaged: ", what, " at byte ", at_, " needs ", bytes,
               " bytes, but only ", left(), " are left"));
    const auto out = file_.bytes().subspan(at_, bytes);
    at_ += bytes;
    return out;
  }
  template <class T>
  T number(std::string_view what) {
    T out;
    std::memcpy(&out, take(sizeof out, what).data(), sizeof out);
    return out;
  }
  std::string_view text(std::string_view what) {
    const auto bytes = take(number<std::uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // A number of items that take at least `least` bytes each.
  std::uint64_t count(std::uint64_t least, std::string_view what) {
    const auto n = number<std::uint64_t>(what);
    if (n > left() / least)
      fail(cat("is damaged: ", n, " ", what, " do not fit into the remaining ", left(), " bytes"));
    return n;
  }
  [[noreturn]] void fail(std::string_view why) const { throw UserError(file_.path(), ": ", why); }

 private:
  const MappedFile& file_;
  std::uint64_t at_ = 0;
};

template <class T>
std::string shown(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  if constexpr (sizeof(T) == 1) return cat(static_cast<int>(value));
  return cat(value);
}

std::string number_text(std::uint32_t type, std::span<const std::byte> bytes) {
  switch (type) {
    case 0:
      return shown<std::uint8_t>(bytes);
    case 1:
      return shown<std::int8_t>(bytes);
    case 2:
      return shown<std::uint16_t>(bytes);
    case 3:
      return shown<std::int16_t>(bytes);
    case 4:
      return shown<std::uint32_t>(bytes);
    case 5:
      return shown<std::int32_t>(bytes);
    case 6:
      return shown<float>(bytes);
    case 7:
      return bytes[0] == std::byte{0} ? "false" : "true";
    case 10:
      return shown<std::uint64_t>(bytes);
    case 11:
      return shown<std::int64_t>(bytes);
    default:
      return shown<double>(bytes);
  }
}

std::uint32_t value_type(Cursor& c) {
  const auto type = c.number<std::uint32_t>("a metadata type");
  if (type >= std::size(value_types))
    c.fail(cat("is damaged: a metadata type is ", type, ", expected 0 to ",
               std::size(value_types) - 1));
  return type;
}

// Skips the elements and returns the type and count as a string.
std::string array_text(Cursor& c, int depth) {
  if (depth > most_nested)
    c.fail(cat("has metadata nested more than ", most_nested, " levels deep"));
  const std::uint32_t type = value_type(c);
  const std::size_t bytes = value_types[type].bytes;
  const std::uint64_t least = bytes > 0 ? bytes : type == text_type ? 8 : 12;
  const std::uint64_t n = c.count(least, "metadata elements");
  if (bytes > 0) c.take(n * bytes, "metadata");
  for (std::uint64_t i = 0; bytes == 0 && i < n; ++i) {
    if (type == text_type)
      c.text("metadata");
    else
      array_text(c, depth + 1);
  }
  return cat(value_types[type].name, "[", n, "]");
}

std::string value_text(Cursor& c, std::uint32_t type) {
  if (type == array_type) return array_text(c, 1);
  if (type != text_type) return number_text(type, c.take(value_types[type].bytes, "metadata"));
  const std::string_view all = c.text("metadata");
  return cat(all.substr(0, most_text), all.size() > most_text ? "..." : "");
}

void read_metadata(Cursor& c, std::uint64_t count, Gguf& out) {
  std::unordered_set<std::string_view> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = c.text("a metadata key");
    if (key.empty()) c.fail(cat("is damaged: the key of metadata ", i, " is empty"));
    if (!keys.insert(key).second) c.fail(cat("is damaged: metadata '", key, "' appears twice"));
    const std::uint32_t type = value_type(c);
    std::string text = value_text(c, type);
    if (key == alignment_key) {
      if (type != 4)
        c.fail(
            cat("is damaged: ", alignment_key, " has metadata type ", type, ", expected 4 (u32)"));
      out.alignment = std::stoll(text);
      if (out.alignment < 8 || out.alignment % 8 != 0)
        c.fail(cat("is damaged: ", alignment_key, " is ", text,
                   ", expected a positive multiple of 8"));
    }
    out.metadata.emplace_back(key, std::move(text));
  }
}

// One tensor as described in the header.
struct Entry {
  GgufTensor tensor;
  std::uint64_t offset = 0, bytes = 0;
};

[[noreturn]] void refuse(const Cursor& c, std::string_view tensor, std::string_view why) {
  c.fail(cat("tensor '", tensor, "': ", why));
}

void read_dims(Cursor& c, GgufTensor& t) {
  const auto axes = c.number<std::uint32_t>("a rank");
  if (axes > most_axes)
    refuse(c, t.name, cat("it has ", axes, " axes, expected at most ", most_axes));
  for (std::uint32_t i = 0; i < axes; ++i) {
    const auto n = c.number<std::uint64_t>("a size");
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(c, t.name, cat("size ", n, " does not fit in 63 bits"));
    t.dims.insert(t.dims.begin(), static_cast<std::int64_t>(n));
  }
}

std::uint64_t byte_size(const Cursor& c, const GgufTensor& t, const Format& f) {
  const std::int64_t row = t.dims.empty() ? 1 : t.dims.back();
  if (row % f.elements != 0)
    refuse(c, t.name,
           cat("its rows have ", amount(row, "element", "elements"), ", expected a multiple of ",
               f.elements, ", the size of a ", f.name, " block"));
  // Strides are partial products, so the product must not overflow even if one size is 0.
  const bool is_empty = std::ranges::find(t.dims, 0) != t.dims.end();
  std::int64_t bytes = f.bytes;
  try {
    for (std::size_t i = 0; i + 1 < t.dims.size(); ++i)
      bytes = checked_mul(bytes, std::max<std::int64_t>(t.dims[i], 1));
    bytes = checked_mul(bytes, std::max<std::int64_t>(row / f.elements, 1));
    return is_empty ? 0 : static_cast<std::uint64_t>(bytes);
  } catch (const UserError& e) {
    refuse(c, t.name, e.what());
  }
}

Entry read_entry(Cursor& c, std::int64_t alignment) {
  Entry e;
  e.tensor.name = c.text("a tensor's name");
  read_dims(c, e.tensor);
  const auto number = c.number<std::uint32_t>("a tensor's type");
  const Format* format = find_format(number);
  if (!format)
    refuse(c, e.tensor.name,
           cat("its type is ", number, ", which is not supported; supported: ", supported()));
  e.tensor.type = format->type;
  e.bytes = byte_size(c, e.tensor, *format);
  e.offset = c.number<std::uint64_t>("a tensor's place");
  if (e.offset % static_cast<std::uint64_t>(alignment) != 0)
    refuse(c, e.tensor.name,
           cat("it starts at byte ", e.offset, " of the data, expected a multiple of ", alignment));
  return e;
}

void check_places(const Cursor& c, const std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::vector<const Entry*> order;
  std::unordered_set<std::string_view> names;
  for (const Entry& e : entries) {
    if (!names.insert(e.tensor.name).second) refuse(c, e.tensor.name, "the name appears twice");
    if (e.offset > data_bytes || e.bytes > data_bytes - e.offset)
      refuse(c, e.tensor.name,
             cat("its ", e.bytes, " bytes at ", e.offset, " are outside the ", data_bytes,
                 " bytes of data; is the file truncated?"));
    if (e.bytes > 0) order.push_back(&e);
  }
  std::ranges::sort(order, {}, &Entry::offset);
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
      refuse(c, order[i]->tensor.name, cat("it overlaps '", order[i - 1]->tensor.name, "'"));
}

void read_head(Cursor& c, Gguf& out) {
  const auto magic = c.take(4, "the format's name");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0)
    c.fail("is not a GGUF file: it does not start with 'GGUF'");
  out.version = c.number<std::uint32_t>("the version");
  if (out.version != 0 && out.version % 65536 == 0)
    c.fail("is a big-endian GGUF file, which is not supported; convert it to little-endian");
  if (out.version != 2 && out.version != 3)
    c.fail(cat("its GGUF version is ", out.version, ", expected 2 or 3"));
}

}  // namespace

std::string_view gguf_type_name(GgufType t) { return format_of(t).name; }

bool GgufTensor::is_quantized() const { return !format_of(type).dtype; }

Array GgufTensor::stored() const {
  const Format& f = format_of(type);
  if (f.dtype) return Array(*f.dtype, dims, data);
  std::vector<std::int64_t> bytes = dims;
  bytes.back() = bytes.back() / f.elements * f.bytes;
  return Array(DType::u8, std::move(bytes), data);
}

const GgufTensor* Gguf::find(std::string_view name) const {
  for (const GgufTensor& t : tensors)
    if (t.name == name) return &t;
  return nullptr;
}

Gguf read_gguf(std::shared_ptr<const MappedFile> file) {
  constexpr std::uint64_t least_entry = 8 + 4 + 4 + 8, least_metadata = 8 + 4 + 1;
  Gguf out;
  Cursor c(*file);
  read_head(c, out);
  const std::uint64_t tensors = c.count(least_entry, "tensors");
  const std::uint64_t pairs = c.count(least_metadata, "metadata");
  read_metadata(c, pairs, out);
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < tensors; ++i) entries.push_back(read_entry(c, out.alignment));
  const std::uint64_t start =
      static_cast<std::uint64_t>(round_up(static_cast<std::int64_t>(c.at()), out.alignment));
  const std::uint64_t size = file->bytes().size();
  check_places(c, entries, size - std::min(start, size));
  for (Entry& e : entries) {
    // An empty tensor may have an offset past the last byte.
    const std::uint64_t at = e.bytes > 0 ? start + e.offset : 0;
    e.tensor.data = Storage(file, file->bytes().subspan(at, e.bytes));
    out.tensors.push_back(std::move(e.tensor));
  }
  return out;
}

Array dequantize(const GgufTensor& t) {
  if (!t.is_quantized()) {
    const Array from = t.stored();
    if (from.dtype() == DType::f32) return from;
    Array to = Array::zeros(DType::f32, t.dims);
    for (std::int64_t i = 0; i < from.count(); ++i) to.set_real(i, from.real(i));
    return to;
  }
  Array to = Array::zeros(DType::f32, t.dims);
  gguf::dequantize(t.type, t.data.bytes(), to.writable<float>());
  return to;
}

}  // namespace hone
