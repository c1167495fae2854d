// Protobuf's wire format, read in place: fields in file order, their bytes as views. Does not know
// messages; the meaning of field numbers is in model.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

enum class WireType : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  bytes = 2,
  group = 3,  // obsolete; skipped as a whole
  fixed32 = 5,
};

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;           // varint and fixed
  std::span<const std::byte> bytes;  // content of `bytes`

  bool is_bytes() const { return type == WireType::bytes; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

// State shared by all messages of one file: its name for errors, and limits on reading.
class WireFile {
 public:
  static constexpr int most_nested = 64;

  WireFile(std::string name, std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  // Throws UserError naming the file and the byte offset of `at`.
  [[noreturn]] void fail(const std::byte* at, std::string_view what) const;
  // Accounts for the memory that one message takes in our structures. An empty message takes two
  // bytes in the file but hundreds in memory, so the total is bounded by the file's size.
  void charge(const std::byte* at, std::size_t bytes);

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
  std::size_t budget_;
};

// The fields of one message.
class WireReader {
 public:
  explicit WireReader(WireFile& file) : WireReader(file, file.bytes(), 0) {}
  // A reader of the message in a field of type `bytes`.
  WireReader inside(const WireField& field) const;

  // The next field; false at the end of the message.
  bool next(WireField&);
  WireFile& file() const { return *file_; }
  [[noreturn]] void fail(std::string_view what) const { file_->fail(at_, what); }

 private:
  WireReader(WireFile& file, std::span<const std::byte> bytes, int depth);
  std::uint64_t varint();
  std::uint64_t long_varint();
  std::uint64_t fixed(std::size_t bytes);
  std::span<const std::byte> take(std::uint64_t bytes);
  void content(WireField&, std::uint64_t type);
  void skip_group(std::uint32_t number);
  std::uint32_t tag(std::uint64_t& type);
  // Separate from the reading code, to keep that short.
  [[noreturn, gnu::cold, gnu::noinline]] void fail_number(std::uint64_t) const;
  [[noreturn, gnu::cold, gnu::noinline]] void fail_cut_off(std::uint64_t bytes) const;
  [[noreturn, gnu::cold, gnu::noinline]] void fail_type(std::uint32_t number, std::uint64_t) const;

  WireFile* file_;
  const std::byte *at_, *end_;
  int depth_;
};

// Consecutive varints (a packed field). Throws UserError when the last one is truncated.
class PackedVarints {
 public:
  PackedVarints(const WireFile& file, std::span<const std::byte> bytes)
      : file_(file), at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  bool next(std::uint64_t&);

 private:
  const WireFile& file_;
  const std::byte *at_, *end_;
};

}  // namespace hone
