// Texts as elements of tensors. An element of dtype text is the number of a text in a table that a
// process keeps: equal texts have equal numbers, so that moving, choosing and comparing texts is
// moving, choosing and comparing numbers. Numbers mean nothing in another process.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "type/array.h"

namespace hone {

// All texts that a process may know at once, in bytes with what the table takes for each; what is
// beyond is refused. One text may be of most_text_bytes / 8.
inline constexpr std::size_t most_text_bytes = std::size_t{128} << 20;

// The text's number, by any thread; the empty text is 0. Bytes of any kind, meant to be UTF-8.
// Throws UserError when there is no room.
std::uint64_t text_number(std::string_view);
// Valid until texts are forgotten. Throws UserError for a number that stands for no known text.
std::string_view text_of(std::uint64_t number);
// Makes room, for a process that reads ever new texts. Not while a model runs; arrays made before
// hold numbers of unknown texts then, except 0. Numbers are never used twice.
void forget_texts();

Array text_array(std::vector<std::int64_t> dims, std::span<const std::string_view> texts);
// Element i (row-major) of an array of dtype text.
inline std::string_view text_at(const Array& a, std::int64_t i) {
  return text_of(static_cast<std::uint64_t>(a.integer(i)));
}

}  // namespace hone
