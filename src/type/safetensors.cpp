#include "type/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/amount.h"
#include "base/checked.h"
#include "base/json.h"

namespace hone {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t most_header_bytes = 100'000'000;  // limit of the format
constexpr std::size_t tensor_align = 64;
constexpr std::string_view metadata_key = "__metadata__";

constexpr std::pair<DType, std::string_view> dtype_names[] = {
    {DType::b1, "BOOL"},        {DType::i8, "I8"},
    {DType::i16, "I16"},        {DType::i32, "I32"},
    {DType::i64, "I64"},        {DType::u8, "U8"},
    {DType::u16, "U16"},        {DType::u32, "U32"},
    {DType::u64, "U64"},        {DType::f16, "F16"},
    {DType::bf16, "BF16"},      {DType::f32, "F32"},
    {DType::f64, "F64"},        {DType::f8e4m3fn, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"}, {DType::f8e8m0, "F8_E8M0"}};

std::string_view safetensors_name(DType t) {
  for (const auto& [dtype, name] : dtype_names)
    if (dtype == t) return name;
  throw InternalError("safetensors: no name for ", t);
}

// One header entry as written, before the bytes are checked.
struct Extent {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::int64_t> dims;
  std::int64_t begin = 0, end = 0;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view path, std::uint64_t data_bytes)
      : path_(path), data_bytes_(data_bytes) {}

  Extent tensor(const std::string& name, const Json& j) const try {
    Extent e;
    e.name = name;
    e.dtype = dtype(name, j.at("dtype").text_value());
    std::int64_t bytes = byte_size(e.dtype);
    for (const Json& d : j.at("shape").array()) {
      e.dims.push_back(d.integer());
      if (e.dims.back() < 0) refuse(name, cat("size ", e.dims.back(), " is negative"));
      bytes = checked_mul(bytes, e.dims.back());
    }
    const Json::Array& offsets = j.at("data_offsets").array();
    if (offsets.size() != 2)
      refuse(name,
             cat("data_offsets has ", amount(offsets.size(), "entry", "entries"), ", expected 2"));
    e.begin = offsets[0].integer();
    e.end = offsets[1].integer();
    if (e.begin < 0 || e.end < e.begin || static_cast<std::uint64_t>(e.end) > data_bytes_)
      refuse(name, cat("bytes ", e.begin, " to ", e.end, " are outside the ", data_bytes_,
                       " bytes of data"));
    if (e.end - e.begin != bytes)
      refuse(name, cat("it has ", amount(e.end - e.begin, "byte", "bytes"), ", expected ", bytes,
                       " for its type"));
    return e;
  } catch (const UserError& error) {
    if (std::string_view(error.what()).starts_with(path_)) throw;
    refuse(name, error.what());
  }

  SafetensorsMetadata metadata(const Json& j) const {
    SafetensorsMetadata out;
    for (const auto& [key, value] : j.object()) {
      if (!value.is_text()) refuse(metadata_key, cat("'", key, "' is not a string"));
      out.emplace_back(key, value.text_value());
    }
    return out;
  }

  // Sorts by byte offset; rejects gaps, overlaps and trailing bytes.
  void order(std::vector<Extent>& all) const {
    std::sort(all.begin(), all.end(), [](const Extent& a, const Extent& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::int64_t at = 0;
    for (const Extent& e : all) {
      if (e.begin != at)
        refuse(e.name, cat("starts at byte ", e.begin, ", but the tensor before it ends at ", at,
                           "; overlaps and gaps are not allowed"));
      at = e.end;
    }
    if (static_cast<std::uint64_t>(at) != data_bytes_)
      throw UserError(path_, ": has ",
                      amount(data_bytes_ - static_cast<std::uint64_t>(at), "byte", "bytes"),
                      " after its last tensor; is it damaged?");
  }

 private:
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const {
    throw UserError(path_, ": tensor '", name, "': ", why);
  }
  DType dtype(std::string_view tensor, std::string_view text) const {
    for (const auto& [dtype, name] : dtype_names)
      if (name == text) return dtype;
    refuse(tensor, cat("element type '", text, "' is not supported"));
  }

  std::string_view path_;
  std::uint64_t data_bytes_;
};

std::string_view header_text(const MappedFile& file) {
  std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < length_bytes)
    throw UserError(file.path(), ": is not a safetensors file: it has ",
                    amount(bytes.size(), "byte", "bytes"));
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > most_header_bytes)
    throw UserError(
        file.path(),
        ": is not a safetensors file or plan: it does not start with the length of a header; "
        "is it damaged or of another format?");
  if (length > bytes.size() - length_bytes)
    throw UserError(file.path(), ": is truncated: its header has ", amount(length, "byte", "bytes"),
                    ", the whole file ", bytes.size());
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  if (!text.starts_with('{'))
    throw UserError(file.path(), ": is not a safetensors file: its header does not start with '{'");
  return text;
}

}  // namespace

const std::string* Safetensors::find_metadata(std::string_view key) const {
  for (const auto& [name, text] : metadata)
    if (name == key) return &text;
  return nullptr;
}

const Array* Safetensors::find(std::string_view name) const {
  for (const SafetensorsEntry& e : tensors)
    if (e.name == name) return &e.data;
  return nullptr;
}

Safetensors read_safetensors(std::shared_ptr<const MappedFile> file) {
  Safetensors out;
  out.map = file;
  out.header = header_text(*file);
  const std::span<const std::byte> data = file->bytes().subspan(length_bytes + out.header.size());
  const Json header = Json::parse(out.header, file->path(), 16);
  const HeaderReader reader(file->path(), data.size());
  std::vector<Extent> extents;
  for (const auto& [name, value] : header.object())
    if (name == metadata_key)
      out.metadata = reader.metadata(value);
    else
      extents.push_back(reader.tensor(name, value));
  reader.order(extents);
  for (Extent& e : extents) {
    const auto bytes =
        data.subspan(static_cast<std::size_t>(e.begin), static_cast<std::size_t>(e.end - e.begin));
    if (e.name.starts_with(padding_prefix)) {
      out.padding.push_back(bytes);
      continue;
    }
    Array array(e.dtype, std::move(e.dims), Storage(file, bytes));
    out.tensors.push_back({std::move(e.name), std::move(array)});
  }
  return out;
}

SafetensorsLayout::SafetensorsLayout(const SafetensorsMetadata& metadata,
                                     std::span<const Tensor> tensors) {
  Json header = Json::Object();
  if (!metadata.empty()) {
    Json texts = Json::Object();
    for (const auto& [key, text] : metadata) texts.add(key, text);
    header.add(std::string(metadata_key), std::move(texts));
  }
  std::int64_t at = 0;
  auto add = [&](std::string name, DType dtype, const std::vector<std::int64_t>& dims) {
    std::int64_t end = byte_size(dtype);
    Json::Array shape;
    for (std::int64_t d : dims) {
      end = checked_mul(end, d);
      shape.push_back(d);
    }
    end = checked_add(at, end);
    header.add(std::move(name), Json::Object{{"dtype", safetensors_name(dtype)},
                                             {"shape", std::move(shape)},
                                             {"data_offsets", Json::Array{at, end}}});
    at = end;
  };
  std::unordered_set<std::string_view> names;
  for (const Tensor& t : tensors) {
    if (t.name == metadata_key || t.name.starts_with(padding_prefix) ||
        !names.insert(t.name).second)
      throw UserError("safetensors: name '", t.name, "' appears twice or is reserved; rename it");
    padding_.push_back(static_cast<std::size_t>(round_up(at, tensor_align) - at));
    if (const auto hole = static_cast<std::int64_t>(padding_.back()); hole > 0)
      add(cat(padding_prefix, padding_.size()), DType::u8, {hole});
    add(t.name, t.dtype, t.dims);
  }
  std::string text = header.text();
  text.resize(
      (length_bytes + text.size() + tensor_align - 1) / tensor_align * tensor_align - length_bytes,
      ' ');
  if (text.size() > most_header_bytes)
    throw UserError("safetensors: the header would have ", amount(text.size(), "byte", "bytes"),
                    ", expected at most ", most_header_bytes);
  const std::uint64_t length = text.size();
  header_.assign(reinterpret_cast<const char*>(&length), sizeof length);
  header_ += text;
}

std::vector<std::span<const std::byte>> SafetensorsLayout::parts(
    std::span<const std::span<const std::byte>> data) const {
  HONE_ASSERT(data.size() == padding_.size(), "one part a tensor");
  static constexpr std::byte zeros[tensor_align] = {};
  std::vector<std::span<const std::byte>> out = {std::as_bytes(std::span(header_))};
  for (std::size_t i = 0; i < data.size(); ++i) {
    out.push_back(std::span(zeros).first(padding_[i]));
    out.push_back(data[i]);
  }
  return out;
}

void write_safetensors(const std::filesystem::path& path, const SafetensorsMetadata& metadata,
                       std::span<const SafetensorsEntry> entries) {
  std::vector<SafetensorsLayout::Tensor> tensors;
  std::vector<std::span<const std::byte>> data;
  for (const SafetensorsEntry& e : entries) {
    tensors.push_back({e.name, e.data.dtype(), e.data.dims()});
    data.push_back(e.data.bytes());
  }
  write_atomic(path, SafetensorsLayout(metadata, tensors).parts(data));
}

}  // namespace hone
