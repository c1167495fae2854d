// Builds strings without a stream, for text that is written once per node. cat() of base/error.h
// prints anything else.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace hone {

template <class T>
concept PlainText = std::convertible_to<const T&, std::string_view> || std::same_as<T, char>;

template <class T>
concept PlainInteger = std::integral<T> && sizeof(T) >= sizeof(int) && !std::same_as<T, wchar_t> &&
                       !std::same_as<T, char32_t>;

template <PlainText T>
void append(std::string& out, const T& text) {
  if constexpr (std::same_as<T, char>)
    out += text;
  else
    out += std::string_view(text);
}

void append(std::string& out, PlainInteger auto n) {
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, n).ptr;
  out += std::string_view(digits, static_cast<std::size_t>(end - digits));
}

// Length of the UTF-8 character at the start of `s`; 0 when it is invalid.
inline std::size_t utf8_bytes(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = s.empty() ? 0xff : byte(0);
  const std::size_t n = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                                       : 4;
  if (n == 0 || n > s.size() || first > 0xf4) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool outside = (first == 0xed && byte(1) > 0x9f) || (first == 0xf4 && byte(1) > 0x8f);
  return overlong || outside ? 0 : n;
}
// Whether `s` starts with a control character, of ASCII or of Latin-1 (U+0080 to U+009F).
inline bool is_control(std::string_view s) {
  const auto first = static_cast<unsigned char>(s[0]);
  if (first < 0x20 || first == 0x7f) return true;
  return first == 0xc2 && s.size() > 1 && static_cast<unsigned char>(s[1]) < 0xa0;
}

// A long string built from many short parts. Inlined, so that a literal is copied without a call.
class Text {
 public:
  void reserve(std::size_t further) {
    if (text_.size() - size_ < further) [[unlikely]]
      grow(further);
  }
  [[gnu::always_inline]] void add(char c) {
    reserve(1);
    text_[size_++] = c;
  }
  [[gnu::always_inline]] void add(std::string_view part) {
    reserve(part.size());
    size_ += part.copy(text_.data() + size_, part.size());
  }
  void add(PlainInteger auto n) {
    constexpr std::size_t most_digits = 24;
    reserve(most_digits);
    char* at = text_.data() + size_;
    size_ += static_cast<std::size_t>(std::to_chars(at, at + most_digits, n).ptr - at);
  }
  std::string take() {
    text_.resize(std::exchange(size_, 0));
    return std::move(text_);
  }

 private:
  [[gnu::noinline]] void grow(std::size_t further) {
    text_.resize(std::max(2 * text_.size(), size_ + further));
  }

  std::string text_;  // sized to the capacity
  std::size_t size_ = 0;
};

}  // namespace hone
