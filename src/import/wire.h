// Zero-copy reading of protobuf's wire format: fields of one message, one after another. Knows no
// schema. Format: protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone::wire {

using Bytes = std::span<const std::byte>;

// Reads `message`, which lies in `file` (for offsets in errors) at nesting `depth`.
class Reader {
 public:
  static constexpr int deepest = 64;

  Reader(Bytes message, Bytes file, int depth = 0) : at_(message), file_(file), depth_(depth) {
    if (depth > deepest) fail("messages nested deeper than 64");
  }

  // Moves to the next field; false at the end. The value is then read by exactly one call below.
  bool next() {
    if (at_.empty()) return false;
    std::uint64_t key = varint();
    field_ = static_cast<std::uint32_t>(key >> 3);
    type_ = static_cast<std::uint8_t>(key & 7);
    if (field_ == 0 || (key >> 3) > 0x1fffffff) fail("field number 0 or too large");
    return true;
  }
  std::uint32_t field() const { return field_; }
  std::uint8_t type() const { return type_; }

  std::int64_t integer() {
    expect(0);
    return static_cast<std::int64_t>(varint());
  }
  float real32() {
    expect(5);
    return fixed<float>();
  }
  Bytes bytes() {
    expect(2);
    std::uint64_t n = varint();
    if (n > at_.size()) fail(cat("length ", n, " where ", at_.size(), " bytes are left"));
    Bytes out = at_.first(static_cast<std::size_t>(n));
    at_ = at_.subspan(static_cast<std::size_t>(n));
    return out;
  }
  std::string_view text() {
    Bytes b = bytes();
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  Reader message() { return Reader(bytes(), file_, depth_ + 1); }
  // A repeated scalar field, packed or not: appends what this occurrence holds.
  void integers(std::vector<std::int64_t>& out) {
    if (type_ == 0) return out.push_back(integer());
    Reader packed(bytes(), file_, depth_);
    while (!packed.at_.empty()) out.push_back(static_cast<std::int64_t>(packed.varint()));
  }
  template <class T>
  void fixed_list(std::vector<T>& out) {
    if (type_ == (sizeof(T) == 4 ? 5 : 1)) return out.push_back(fixed<T>());
    Bytes b = bytes();
    if (b.size() % sizeof(T)) fail("packed numbers of a broken length");
    std::size_t n = out.size();
    out.resize(n + b.size() / sizeof(T));
    std::memcpy(out.data() + n, b.data(), b.size());
  }
  void skip() {
    switch (type_) {
      case 0:
        varint();
        return;
      case 1:
        fixed<std::uint64_t>();
        return;
      case 2:
        bytes();
        return;
      case 5:
        fixed<std::uint32_t>();
        return;
      default:
        fail(cat("wire type ", int{type_}));
    }
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw UserError("not a valid protobuf message at byte ", at_.data() - file_.data(), ": ", what);
  }

 private:
  void expect(std::uint8_t type) const {
    if (type_ != type)
      fail(cat("field ", field_, " has wire type ", int{type_}, ", expected ", int{type}));
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 10; ++i) {
      if (i >= at_.size()) fail("a number is cut off");
      auto byte = static_cast<std::uint64_t>(at_[i]);
      value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        at_ = at_.subspan(i + 1);
        return value;
      }
    }
    fail("a number is longer than ten bytes");
  }
  template <class T>
  T fixed() {
    if (at_.size() < sizeof(T)) fail("a number is cut off");
    T value;
    std::memcpy(&value, at_.data(), sizeof(T));
    at_ = at_.subspan(sizeof(T));
    return value;
  }

  Bytes at_, file_;
  int depth_;
  std::uint32_t field_ = 0;
  std::uint8_t type_ = 0;
};

}  // namespace hone::wire
