// What is done with single texts. They are meant to be UTF-8; a byte that is part of no valid
// sequence stands for itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// A byte of no valid sequence is broken_byte + itself, so that it equals no character.
inline constexpr char32_t last_character = 0x10ffff, broken_byte = 0x110000;
std::vector<char32_t> code_points(std::string_view);
std::string utf8(const std::vector<char32_t>&);

enum class LetterCase : std::uint8_t { lower, upper };
// Letter by letter, of any alphabet. Throws UserError for letters beyond ASCII where the machine
// has no tables (locale C.UTF-8).
std::string in_case(std::string_view, LetterCase);

// The pieces between delimiters, as Python's split: between runs of white space when the delimiter
// is empty. At most `most` splits from the front unless that is negative.
std::vector<std::string_view> split(std::string_view text, std::string_view delimiter,
                                    std::int64_t most);
// Their number, without making them.
std::int64_t count_pieces(std::string_view text, std::string_view delimiter, std::int64_t most);

// A number with at most `digits` significant digits, as few above 8 as tell it apart, as C's %g;
// NaN, INF and -INF.
std::string digits_of(double, int digits);
// The number that a whole text spells, blanks around it aside; a real is rounded, to infinity or
// zero if need be. Throws UserError for another text.
double real_of(std::string_view);
std::int64_t integer_of(std::string_view);

}  // namespace hone
