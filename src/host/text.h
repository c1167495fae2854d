// Functions on single strings. They should be UTF-8; a byte that is not part of a valid sequence
// stands for itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// An invalid byte is represented as broken_byte + byte, so that it equals no character.
inline constexpr char32_t last_character = 0x10ffff, broken_byte = 0x110000;
std::vector<char32_t> code_points(std::string_view);
std::string utf8(const std::vector<char32_t>&);

enum class LetterCase : std::uint8_t { lower, upper };
// Converts letter by letter, for any alphabet. Throws UserError for non-ASCII letters if the
// machine has no tables (locale C.UTF-8).
std::string in_case(std::string_view, LetterCase);

// The pieces between delimiters, as Python's split. An empty delimiter splits at runs of white
// space. At most `most` splits from the front, unless that is negative.
std::vector<std::string_view> split(std::string_view text, std::string_view delimiter,
                                    std::int64_t most);
// The number of these pieces, without making them.
std::int64_t count_pieces(std::string_view text, std::string_view delimiter, std::int64_t most);

// A number as C's %g, with at most `digits` significant digits; above 8 digits only as many as
// identify it. NaN, INF and -INF.
std::string digits_of(double, int digits);
// Parses a whole string as a number, ignoring blanks around it; a real is rounded, also to infinity
// or zero. Throws UserError if it is not a number.
double real_of(std::string_view);
std::int64_t integer_of(std::string_view);

}  // namespace hone
