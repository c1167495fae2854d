#include "import/tensor_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/amount.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "host/text.h"
#include "import/onnx/file/tensor.h"
#include "import/onnx/file/wire.h"
#include "import/zip.h"
#include "type/text.h"

namespace hone {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t npy_alignment = 64;

struct Descr {
  std::string_view text;
  DType dtype;
};
constexpr Descr descrs[] = {
    {"|b1", DType::b1},   {"|i1", DType::i8},   {"<i2", DType::i16}, {"<i4", DType::i32},
    {"<i8", DType::i64},  {"|u1", DType::u8},   {"<u2", DType::u16}, {"<u4", DType::u32},
    {"<u8", DType::u64},  {"<f2", DType::f16},  {"<f4", DType::f32}, {"<f8", DType::f64},
    {"|V2", DType::bf16}, {"<V2", DType::bf16}, {"|V1", DType::u8},
};
constexpr std::string_view small_float_descr = "|V1";  // their codes

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The header of a .npy file: a Python dictionary, in the few forms that programs write.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  // For strings: the number of characters of each.
  std::optional<std::int64_t> text_width() const {
    std::string_view digits = descr();
    if (!digits.starts_with("<U")) return std::nullopt;
    digits.remove_prefix(2);
    std::int64_t width = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), width);
    if (error != std::errc() || end != digits.end() || width < 0)
      fail("the width of the strings is missing");
    return width;
  }

  DType dtype() const {
    const std::string_view descr = this->descr();
    for (const Descr& d : descrs)
      if (d.text == descr ||
          (d.text[0] == '|' && descr.size() > 1 && d.text.substr(1) == descr.substr(1)))
        return d.dtype;
    fail(cat("element type '", descr,
             "' is not supported; save little-endian numbers, for example with .astype('<f4')"));
  }

  bool fortran_order() const {
    std::string_view rest = after("fortran_order");
    if (rest.starts_with("True")) return true;
    if (rest.starts_with("False")) return false;
    fail("fortran_order is invalid, expected True or False");
  }

  std::vector<std::int64_t> shape() const {
    std::string_view rest = after("shape");
    std::size_t end = rest.find(')');
    if (rest.empty() || rest[0] != '(' || end == rest.npos)
      fail("shape is invalid, expected a tuple");
    std::vector<std::int64_t> dims;
    rest = trimmed(rest.substr(1, end - 1));
    while (!rest.empty()) dims.push_back(next_size(rest));
    return dims;
  }

 private:
  std::string_view descr() const {
    std::string_view rest = after("descr");
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      fail("structured types are not supported; save plain elements");
    return rest.substr(1, rest.find(rest[0], 1) - 1);
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw UserError(path_, ": .npy header: ", what);
  }
  static std::string_view trimmed(std::string_view s) {
    s.remove_prefix(std::min(s.find_first_not_of(" \t\n"), s.size()));
    return s;
  }
  std::string_view after(std::string_view key) const {
    std::size_t at = text_.find(key);
    if (at == text_.npos) fail(cat("'", key, "' is missing"));
    std::size_t colon = text_.find(':', at);
    if (colon == text_.npos) fail(cat("'", key, "' has no value"));
    return trimmed(text_.substr(colon + 1));
  }
  // "3, 4,": one size and the comma after it.
  std::int64_t next_size(std::string_view& rest) const {
    std::int64_t n = -1;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc() || n < 0)
      fail(cat("shape contains '", rest, "', expected non-negative integers"));
    rest = trimmed(rest.substr(static_cast<std::size_t>(end - rest.data())));
    if (!rest.empty() && rest[0] != ',')
      fail(cat("shape contains '", rest, "', expected non-negative integers"));
    if (!rest.empty()) rest = trimmed(rest.substr(1));
    return n;
  }

  std::string_view text_;
  const std::string& path_;
};

// The offset and size of the header text.
std::pair<std::size_t, std::size_t> npy_header(std::span<const std::byte> bytes,
                                               const std::string& path) {
  if (bytes.size() < 10 || as_text(bytes.first(6)) != npy_magic)
    throw UserError(path, ": is not a .npy file: it does not start with \\x93NUMPY");
  int version = static_cast<int>(bytes[6]);
  if (version < 1 || version > 3)
    throw UserError(path, ": .npy version is ", version, ", expected 1 to 3");
  std::size_t width = version == 1 ? 2 : 4, size = 0, start = 8 + width;
  if (bytes.size() >= start) std::memcpy(&size, bytes.data() + 8, width);
  if (bytes.size() < start || size > bytes.size() - start)
    throw UserError(path, ": is truncated: its .npy header has ", amount(size, "byte", "bytes"),
                    ", the whole file ", bytes.size());
  return {start, size};
}

// The bytes of a file, or of one in an archive, and its name in messages.
struct NamedBytes {
  Storage whole;
  std::string path;
};

NamedBytes open_file(const fs::path& path) {
  auto file = MappedFile::open(path);
  return {Storage(file, file->bytes()), file->path()};
}

// The bytes from `offset` on as an array that keeps their owner alive.
Array array_of(const NamedBytes& file, std::size_t offset, DType dtype,
               std::vector<std::int64_t> dims) {
  std::int64_t need = byte_size(dtype);
  for (std::int64_t d : dims) need = checked_mul(need, d);
  std::span<const std::byte> bytes = file.whole.bytes().subspan(offset);
  if (static_cast<std::int64_t>(bytes.size()) != need)
    throw UserError(file.path, ": has ", amount(bytes.size(), "byte", "bytes"),
                    " of elements, expected ", need, " for its shape");
  return Array(dtype, std::move(dims), Storage(file.whole.owner(), bytes));
}

// ==== strings: four-byte characters, all strings of one width, shorter ones padded with zeros. A
// byte that is not part of a character is written as Python does (surrogateescape).

constexpr char32_t escaped_byte = 0xdc00;

Array texts_of_file(const NamedBytes& file, std::size_t offset, std::int64_t width,
                    const std::vector<std::int64_t>& dims) {
  const std::span<const std::byte> bytes = file.whole.bytes().subspan(offset);
  std::int64_t count = 1;
  for (std::int64_t d : dims) count = checked_mul(count, d);
  if (checked_mul(checked_mul(count, width), 4) != static_cast<std::int64_t>(bytes.size()))
    throw UserError(file.path, ": has ", amount(bytes.size(), "byte", "bytes"),
                    " of elements, expected ", count, " strings of ", width,
                    " characters of 4 bytes for its shape");
  // With width 0 the file size does not limit the count.
  if (width == 0 && count > static_cast<std::int64_t>(most_text_bytes / 8))
    throw UserError(file.path, ": has ", amount(count, "string", "strings"), ", expected at most ",
                    most_text_bytes / 8);
  Array out = Array::zeros(DType::text, dims);
  std::u32string characters(static_cast<std::size_t>(width), 0);
  for (std::int64_t i = 0; width > 0 && i < count; ++i) {
    std::memcpy(characters.data(), bytes.data() + i * width * 4, characters.size() * 4);
    std::vector<char32_t> text(characters.begin(), characters.end());
    while (!text.empty() && text.back() == 0) text.pop_back();
    for (char32_t& c : text) {
      if (c >= escaped_byte + 0x80 && c <= escaped_byte + 0xff)
        c = c - escaped_byte + broken_byte;
      else if (c > last_character)
        throw UserError(file.path, ": string ", i, " contains an invalid character");
    }
    out.set_integer(i, static_cast<std::int64_t>(text_number(utf8(text))));
  }
  return out;
}

struct WrittenTexts {
  std::size_t width = 1;
  std::string bytes;
};

WrittenTexts written_texts(const Array& a) {
  std::vector<std::vector<char32_t>> all;
  WrittenTexts out;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    all.push_back(code_points(text_at(a, i)));
    out.width = std::max(out.width, all.back().size());
  }
  for (std::vector<char32_t>& text : all) {
    for (char32_t& c : text)
      if (c >= broken_byte) c = c - broken_byte + escaped_byte;
    text.resize(out.width, 0);
    out.bytes.append(reinterpret_cast<const char*>(text.data()), 4 * text.size());
  }
  return out;
}

std::string_view descr_of(DType t) {
  if (is_small(t) && is_float(t)) return small_float_descr;
  if (is_small(t)) t = code_dtype(t);
  const Descr* d = std::find_if(std::begin(descrs), std::end(descrs),
                                [&](const Descr& e) { return e.dtype == t; });
  HONE_ASSERT(d != std::end(descrs), ".npy has no elements like ", t);
  return d->text;
}

std::string npy_dict(const Array& a, std::string_view descr) {
  std::string shape;
  for (std::int64_t n : a.dims()) shape += cat(n, shape.empty() && a.rank() == 1 ? "," : ", ");
  if (a.rank() > 1) shape.resize(shape.size() - 2);
  return cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
}

}  // namespace

Array read_tensor_pb(const fs::path& path) {
  auto file = MappedFile::open(path);
  onnx::Tensor tensor = onnx::parse_tensor(file->bytes(), file->path());
  try {
    return onnx::TensorFiles(file).array(tensor);
  } catch (const UserError& e) {
    throw UserError(file->path(), ": ", e.what());
  }
}

namespace {

// Both messages use the same numbers: 3 holds tensors, 5 sequences, 7 optionals.
void read_elements(WireReader r, const std::shared_ptr<const MappedFile>& file,
                   std::vector<Array>& out) {
  for (WireField f; r.next(f);) {
    if (!f.is_bytes()) continue;
    if (f.number == 3) {
      onnx::Tensor tensor = onnx::parse_tensor(f.bytes, file->path());
      out.push_back(onnx::TensorFiles(file).array(tensor));
    }
    if (f.number == 5 || f.number == 7) read_elements(r.inside(f), file, out);
  }
}

}  // namespace

std::vector<Array> read_sequence_pb(const fs::path& path) {
  auto file = MappedFile::open(path);
  WireFile wire(file->path(), file->bytes());
  std::vector<Array> out;
  read_elements(WireReader(wire), file, out);
  return out;
}

namespace {

// Whether a file has only fields of a SequenceProto or OptionalProto.
bool may_be_sequence(const fs::path& path) {
  auto file = MappedFile::open(path);
  WireFile wire(file->path(), file->bytes());
  WireReader r(wire);
  for (WireField f; r.next(f);)
    if (f.number > 7 || f.is_bytes() == (f.number == 2)) return false;
  return true;
}

}  // namespace

std::vector<Array> read_tensors_pb(const fs::path& path) {
  try {
    return {read_tensor_pb(path)};
  } catch (const UserError&) {
    if (!may_be_sequence(path)) throw;
    return read_sequence_pb(path);
  }
}

namespace {

Array npy_of(const NamedBytes& file) {
  const auto [start, size] = npy_header(file.whole.bytes(), file.path);
  NpyHeader header(as_text(file.whole.bytes().subspan(start, size)), file.path);
  std::vector<std::int64_t> dims = header.shape();
  if (header.fortran_order() && dims.size() > 1)
    throw UserError(
        file.path,
        ": elements are in column-major (Fortran) order; save numpy.ascontiguousarray(x) instead");
  if (const std::optional<std::int64_t> width = header.text_width())
    return texts_of_file(file, start + size, *width, dims);
  return array_of(file, start + size, header.dtype(), std::move(dims));
}

}  // namespace

Array read_npy(const fs::path& path) { return npy_of(open_file(path)); }

std::vector<NpzEntry> read_npz(const fs::path& path) {
  std::vector<NpzEntry> out;
  for (ZipEntry& e : read_zip(path)) {
    const std::string name =
        e.name.ends_with(".npy") ? e.name.substr(0, e.name.size() - 4) : e.name;
    out.push_back({name, npy_of({e.content, cat(path.string(), ", ", e.name)})});
  }
  return out;
}

void write_npy(const fs::path& path, const Array& a) {
  WrittenTexts texts;
  std::string descr;
  if (a.dtype() == DType::text) {
    texts = written_texts(a);
    descr = cat("<U", texts.width);
  } else {
    descr = descr_of(a.dtype());
  }
  std::string dict = npy_dict(a, descr);
  std::size_t total = 10 + dict.size() + 1;
  dict.append((npy_alignment - total % npy_alignment) % npy_alignment, ' ');
  dict += '\n';
  std::string head(npy_magic);
  head += {'\1', '\0', static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  head += dict;
  const std::span<const std::byte> parts[] = {
      std::as_bytes(std::span(head)),
      a.dtype() == DType::text ? std::as_bytes(std::span(texts.bytes)) : a.bytes()};
  write_atomic(path, parts, Sync::no);  // can be created again
}

namespace {

// The type's sizes as numbers; an open size follows from the size of the file.
std::vector<std::int64_t> raw_dims(const NamedBytes& file, const Type& type) {
  std::vector<std::int64_t> dims;
  std::int64_t known = byte_size(type.dtype);
  std::optional<std::size_t> open;
  for (const Dim& d : type.shape.dims) {
    if (!d.is_number() && open)
      throw UserError(file.path, ": raw bytes cannot be read as ", type,
                      ", which has more than one open size; use a .npy file, which has a shape");
    if (!d.is_number()) open = dims.size();
    dims.push_back(d.is_number() ? d.number() : 0);
    if (d.is_number()) known = checked_mul(known, d.number());
  }
  const auto bytes = static_cast<std::int64_t>(file.whole.bytes().size());
  if (open && known > 0 && bytes % known != 0)
    throw UserError(file.path, ": has ", amount(bytes, "byte", "bytes"),
                    ", expected a multiple of ", known, " for ", type);
  if (open && known > 0) dims[*open] = bytes / known;
  return dims;
}

}  // namespace

Array as_type(const Array& a, const Type& like) {
  const bool is_code = is_small(like.dtype) && a.dtype() == code_dtype(like.dtype);
  return is_code ? Array(like.dtype, a.dims(), a.storage()) : a;
}

Array read_tensor_file(const fs::path& path, const Type& like) {
  if (path.extension() == ".pb") return read_tensor_pb(path);
  if (path.extension() == ".npy") return as_type(read_npy(path), like);
  if (like.dtype == DType::text)
    throw UserError(path.string(), ": strings cannot be stored as raw bytes; use .npy or .pb");
  const NamedBytes file = open_file(path);
  return array_of(file, 0, like.dtype, raw_dims(file, like));
}

}  // namespace hone
