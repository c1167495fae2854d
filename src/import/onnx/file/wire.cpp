#include "import/onnx/file/wire.h"

#include <cstring>

#include "base/amount.h"
#include "base/error.h"

namespace hone {

namespace {

// Reads one varint and advances `at` past it. Returns null on success, otherwise the error.
const char* read_varint(const std::byte*& at, const std::byte* end, std::uint64_t& value) {
  if (at != end && static_cast<unsigned char>(*at) < 128) {  // the common case
    value = static_cast<std::uint64_t>(*at++);
    return nullptr;
  }
  value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at == end) return "a number is truncated";
    auto byte = static_cast<std::uint64_t>(*at++);
    value |= (byte & 127) << shift;  // protobuf also drops bits above 64
    if (byte < 128) return nullptr;
  }
  return "a number has more than 10 bytes";
}

}  // namespace

WireFile::WireFile(std::string name, std::span<const std::byte> bytes)
    : name_(std::move(name)), bytes_(bytes), budget_((std::size_t{64} << 20) + 16 * bytes.size()) {}

void WireFile::fail(const std::byte* at, std::string_view what) const {
  throw UserError(name_, ": byte ", at - bytes_.data(), " of ", bytes_.size(), ": ", what,
                  "; the file is damaged or not an ONNX file");
}

void WireFile::charge(const std::byte* at, std::size_t bytes) {
  if (bytes > budget_)
    fail(at, "the file has far more small messages than an ONNX model of this size needs");
  budget_ -= bytes;
}

WireReader::WireReader(WireFile& file, std::span<const std::byte> bytes, int depth)
    : file_(&file), at_(bytes.data()), end_(bytes.data() + bytes.size()), depth_(depth) {}

WireReader WireReader::inside(const WireField& field) const {
  if (depth_ + 1 > WireFile::most_nested)
    file_->fail(field.bytes.data(),
                cat("messages are nested more than ", WireFile::most_nested, " levels deep"));
  return WireReader(*file_, field.bytes, depth_ + 1);
}

// Most numbers in a file take one byte.
inline std::uint64_t WireReader::varint() {
  if (at_ != end_ && static_cast<unsigned char>(*at_) < 128)
    return static_cast<std::uint64_t>(*at_++);
  return long_varint();
}

inline std::span<const std::byte> WireReader::take(std::uint64_t bytes) {
  auto left = static_cast<std::uint64_t>(end_ - at_);
  if (bytes > left) fail_cut_off(bytes);
  const std::byte* from = at_;
  at_ += bytes;
  return {from, static_cast<std::size_t>(bytes)};
}

std::uint64_t WireReader::fixed(std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(bytes).data(), bytes);
  return value;
}

inline std::uint32_t WireReader::tag(std::uint64_t& type) {
  std::uint64_t tag = varint();
  type = tag & 7;
  if (tag >> 3 == 0 || tag >> 32 != 0) fail_number(tag >> 3);
  return static_cast<std::uint32_t>(tag >> 3);
}

inline void WireReader::content(WireField& field, std::uint64_t type) {
  field.type = static_cast<WireType>(type);
  switch (field.type) {
    case WireType::varint:
      field.value = varint();
      return;
    case WireType::fixed64:
      field.value = fixed(8);
      return;
    case WireType::fixed32:
      field.value = fixed(4);
      return;
    case WireType::bytes:
      field.bytes = take(varint());
      return;
    case WireType::group:
      return skip_group(field.number);
  }
  fail_type(field.number, type);
}

bool WireReader::next(WireField& field) {
  if (at_ == end_) return false;
  std::uint64_t type;
  field.number = tag(type);
  content(field, type);
  return true;
}

// Groups may nest: open groups are kept in a list, to avoid recursion.
void WireReader::skip_group(std::uint32_t number) {
  std::vector<std::uint32_t> open = {number};
  while (!open.empty()) {
    if (at_ == end_) fail(cat("group ", open.back(), " is not closed"));
    WireField inner;
    std::uint64_t type;
    inner.number = tag(type);
    if (type == 4) {
      if (inner.number != open.back()) fail(cat("group ", open.back(), " is not closed"));
      open.pop_back();
    } else if (type == static_cast<std::uint64_t>(WireType::group)) {
      if (depth_ + static_cast<int>(open.size()) >= WireFile::most_nested)
        fail(cat("groups are nested more than ", WireFile::most_nested, " levels deep"));
      open.push_back(inner.number);
    } else {
      content(inner, type);
    }
  }
}

std::uint64_t WireReader::long_varint() {
  std::uint64_t value;
  if (const char* wrong = read_varint(at_, end_, value)) fail(wrong);
  return value;
}

void WireReader::fail_number(std::uint64_t number) const {
  fail(cat("field number ", number, " is invalid, expected 1 to 536870911"));
}

void WireReader::fail_cut_off(std::uint64_t bytes) const {
  fail(cat("a field has ", amount(bytes, "byte", "bytes"), ", but its message has only ",
           end_ - at_, " left"));
}

void WireReader::fail_type(std::uint32_t number, std::uint64_t type) const {
  fail(cat("field ", number, " has wire type ", type, ", expected 0 to 5"));
}

bool PackedVarints::next(std::uint64_t& value) {
  if (at_ == end_) return false;
  if (const char* wrong = read_varint(at_, end_, value)) file_.fail(at_, wrong);
  return true;
}

}  // namespace hone
