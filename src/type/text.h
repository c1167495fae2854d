// Strings as elements of tensors. An element of dtype text is the number of a string in a table of
// the process: equal strings have equal numbers, so moving, selecting and comparing strings is done
// on numbers. Numbers are meaningless in another process.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "type/array.h"

namespace hone {

// Limit on the bytes of all strings that a process knows at once, including the table's overhead;
// more are refused. One string may have at most most_text_bytes / 8.
inline constexpr std::size_t most_text_bytes = std::size_t{128} << 20;

// The string's number; thread-safe. The empty string is 0. Any bytes are allowed, UTF-8 is
// expected. Throws UserError when the table is full.
std::uint64_t text_number(std::string_view);
// Valid until forget_texts(). Throws UserError for a number that stands for no known string.
std::string_view text_of(std::uint64_t number);
// Clears the table, for a process that keeps reading new strings. Not while a model runs. Arrays
// made before then hold unknown numbers, except 0. Numbers are never reused.
void forget_texts();

Array text_array(std::vector<std::int64_t> dims, std::span<const std::string_view> texts);
// Element i (row-major) of an array of dtype text.
inline std::string_view text_at(const Array& a, std::int64_t i) {
  return text_of(static_cast<std::uint64_t>(a.integer(i)));
}

}  // namespace hone
