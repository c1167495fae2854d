// Text made without a stream, for what is written once per node. cat() of base/error.h prints
// anything else.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace hone
