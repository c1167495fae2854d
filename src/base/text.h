// Text made without a stream, for what is written once per node. cat() of base/error.h prints
// anything else.
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

// A long text made of many short parts. Inlined, so that a literal is copied without a call.
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

  std::string text_;  // its room
  std::size_t size_ = 0;
};

}  // namespace hone
