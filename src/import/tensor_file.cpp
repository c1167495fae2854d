#include "import/tensor_file.h"

#include <charconv>
#include <cstring>

#include "base/checked.h"
#include "base/file.h"
#include "import/onnx_model.h"

namespace hone {

namespace {

namespace fs = std::filesystem;

struct NpyName {
  DType dtype;
  std::string_view descr;
};
constexpr NpyName npy_names[] = {
    {DType::b1, "|b1"},   {DType::i8, "|i1"},  {DType::u8, "|u1"},  {DType::i16, "<i2"},
    {DType::u16, "<u2"},  {DType::i32, "<i4"}, {DType::u32, "<u4"}, {DType::i64, "<i8"},
    {DType::u64, "<u8"},  {DType::f16, "<f2"}, {DType::f32, "<f4"}, {DType::f64, "<f8"},
    {DType::bf16, "<u2"},
};

// The text after 'key': in the header's dictionary.
std::string_view entry(std::string_view header, std::string_view key, const fs::path& path) {
  std::size_t at = header.find(key);
  if (at == std::string_view::npos)
    throw UserError(path.string(), ": the .npy header has no ", key);
  at = header.find(':', at);
  if (at == std::string_view::npos)
    throw UserError(path.string(), ": the .npy header is broken after ", key);
  std::string_view rest = header.substr(at + 1);
  return rest.substr(std::min(rest.size(), rest.find_first_not_of(' ')));
}

DType npy_dtype(std::string_view text, const fs::path& path) {
  for (const NpyName& n : npy_names)
    if (text.size() > 4 && text.substr(1, 3) == n.descr) return n.dtype;
  throw UserError(path.string(), ": .npy element type ", text.substr(0, 8),
                  " is not supported; write little-endian bool, integers or floats");
}

std::vector<std::int64_t> npy_dims(std::string_view text, const fs::path& path) {
  std::vector<std::int64_t> dims;
  std::size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos)
    throw UserError(path.string(), ": the .npy shape is broken");
  const char *at = text.data() + 1, *stop = text.data() + end;
  while (at < stop) {
    while (at < stop && (*at == ' ' || *at == ',')) ++at;
    if (at == stop) break;
    std::int64_t n = 0;
    auto [next, error] = std::from_chars(at, stop, n);
    if (error != std::errc() || n < 0) throw UserError(path.string(), ": the .npy shape is broken");
    dims.push_back(n);
    at = next;
  }
  return dims;
}

Array array_of_file(DType dtype, std::vector<std::int64_t> dims,
                    std::shared_ptr<const MappedFile> file, std::size_t offset) {
  std::int64_t need = byte_size(dtype);
  for (std::int64_t d : dims) need = checked_mul(need, d);
  std::span<const std::byte> rest = file->bytes().subspan(offset);
  if (static_cast<std::int64_t>(rest.size()) != need)
    throw UserError(file->path(), ": holds ", rest.size(), " bytes of data, its shape needs ",
                    need);
  return Array(dtype, std::move(dims), Storage(file, rest));
}

}  // namespace

Array read_npy(const fs::path& path) {
  auto file = MappedFile::open(path);
  std::span<const std::byte> b = file->bytes();
  if (b.size() < 12 || std::memcmp(b.data(), "\x93NUMPY", 6) != 0)
    throw UserError(path.string(), ": is not a .npy file");
  const int version = static_cast<int>(b[6]);
  const std::size_t start = version == 1 ? 10 : 12;
  std::size_t length = static_cast<std::size_t>(b[8]) | static_cast<std::size_t>(b[9]) << 8;
  if (version > 1)
    length |= static_cast<std::size_t>(b[10]) << 16 | static_cast<std::size_t>(b[11]) << 24;
  if (version < 1 || version > 3 || length > b.size() - start)
    throw UserError(path.string(), ": .npy version ", version, " or its header length is broken");
  std::string_view header(reinterpret_cast<const char*>(b.data()) + start, length);
  if (entry(header, "'fortran_order'", path).starts_with("True"))
    throw UserError(path.string(), ": is in Fortran order; save it with numpy.ascontiguousarray");
  DType dtype = npy_dtype(entry(header, "'descr'", path), path);
  return array_of_file(dtype, npy_dims(entry(header, "'shape'", path), path), file, start + length);
}

void write_npy(const fs::path& path, const Array& a) {
  std::string_view descr;
  for (const NpyName& n : npy_names)
    if (n.dtype == a.dtype()) descr = n.descr;
  std::string header = cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (std::int64_t d : a.dims()) header += cat(d, ",");
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 255);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  std::span<const std::byte> parts[] = {std::as_bytes(std::span(start)), a.bytes()};
  write_atomic(path, parts);
}

Array read_tensor_pb(const fs::path& path) {
  auto file = MappedFile::open(path);
  try {
    onnx::Tensor t = onnx::read_tensor(file->bytes(), file->bytes());
    return onnx::to_array(t, file, path.parent_path());
  } catch (const UserError& e) {
    throw UserError(path.string(), ": ", e.what());
  }
}

Array read_tensor_file(const fs::path& path, const Type& like) {
  if (path.extension() == ".npy") return read_npy(path);
  if (path.extension() == ".pb") return read_tensor_pb(path);
  if (!like.shape.is_static())
    throw UserError(path.string(), ": raw data needs numeric sizes, the input is ", like,
                    "; give them with --shapes or use a .npy file");
  return array_of_file(like.dtype, like.shape.numbers(), MappedFile::open(path), 0);
}

}  // namespace hone
