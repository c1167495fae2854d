#include "host/text.h"

#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>

#include "base/error.h"

namespace hone {

namespace {

struct Character {
  char32_t code;
  std::size_t bytes;
};

// The character that starts at s[i].
Character character_at(std::string_view s, std::size_t i) {
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(s[i]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  bool valid = lead >= 0xc2 && lead <= 0xf4 && s.size() - i >= length;
  char32_t c = lead & (0x7fu >> length);
  for (std::size_t k = 1; valid && k < length; ++k) {
    const auto next = static_cast<unsigned char>(s[i + k]);
    valid = (next & 0xc0) == 0x80;
    c = c << 6 | (next & 0x3f);
  }
  valid = valid && c >= least[length] && c <= last_character && (c < 0xd800 || c > 0xdfff);
  return valid ? Character{c, length} : Character{broken_byte + lead, 1};
}

void append_character(std::string& out, char32_t c) {
  if (c < 0x80 || c > last_character) {
    out += static_cast<char>(c & 0xff);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(leads[more] | c >> (6 * more));
  for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80 | (c >> (6 * k) & 0x3f));
}

char32_t in_case(char32_t c, LetterCase wanted) {
  const bool is_lower = wanted == LetterCase::lower;
  if (c < 0x80) {
    const char32_t first = is_lower ? U'A' : U'a';
    return c >= first && c < first + 26 ? c ^ 0x20 : c;
  }
  if (c > last_character) return c;
  static const locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (!letters)
    throw UserError(
        "strings: the case of non-ASCII letters needs the locale C.UTF-8, which is not installed; "
        "install it");
  const auto w = static_cast<wint_t>(c);
  return static_cast<char32_t>(is_lower ? towlower_l(w, letters) : towupper_l(w, letters));
}

// As Python's str.isspace.
bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::size_t skip(std::string_view text, std::size_t at, bool spaces) {
  while (at < text.size()) {
    const Character c = character_at(text, at);
    if (is_space(c.code) != spaces) break;
    at += c.bytes;
  }
  return at;
}

template <class Take>
void split_at_spaces(std::string_view text, std::int64_t most, const Take& take) {
  std::size_t at = skip(text, 0, true);
  for (std::int64_t splits = 0; at < text.size(); ++splits) {
    if (splits == most) return take(text.substr(at));
    const std::size_t end = skip(text, at, false);
    take(text.substr(at, end - at));
    at = skip(text, end, true);
  }
}

template <class Take>
void split_with(std::string_view text, std::string_view delimiter, std::int64_t most,
                const Take& take) {
  if (delimiter.empty()) return split_at_spaces(text, most, take);
  for (std::int64_t splits = 0; splits != most; ++splits) {
    const std::size_t end = text.find(delimiter);
    if (end == text.npos) break;
    take(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  take(text);
}

}  // namespace

std::vector<char32_t> code_points(std::string_view s) {
  std::vector<char32_t> out;
  for (std::size_t i = 0; i < s.size();) {
    const Character c = character_at(s, i);
    out.push_back(c.code);
    i += c.bytes;
  }
  return out;
}

std::string utf8(const std::vector<char32_t>& text) {
  std::string out;
  for (char32_t c : text) append_character(out, c);
  return out;
}

std::string in_case(std::string_view text, LetterCase wanted) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    append_character(out, in_case(c.code, wanted));
    i += c.bytes;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view delimiter,
                                    std::int64_t most) {
  std::vector<std::string_view> out;
  split_with(text, delimiter, most, [&](std::string_view piece) { out.push_back(piece); });
  return out;
}

std::int64_t count_pieces(std::string_view text, std::string_view delimiter, std::int64_t most) {
  std::int64_t n = 0;
  split_with(text, delimiter, most, [&](std::string_view) { ++n; });
  return n;
}

std::string digits_of(double x, int digits) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x < 0 ? "-INF" : "INF";
  // 8 digits identify most numbers that people write; uses more only if this number needs them.
  for (int n = std::min(digits, 8);; ++n) {
    char text[64];
    const auto [end, error] =
        std::to_chars(std::begin(text), std::end(text), x, std::chars_format::general, n);
    HONE_ASSERT(error == std::errc(), "a number has more than ", sizeof text, " characters");
    double back = 0;
    std::from_chars(text, end, back);
    if (n >= digits || back == x) return {text, end};
  }
}

namespace {

// Rounded as any other number: too large ones to infinity, too small ones to zero.
double rounded_beyond(std::string_view digits) {
  static const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", nullptr);
  HONE_ASSERT(plain, "the locale C is missing");
  return strtod_l(std::string(digits).c_str(), nullptr, plain);
}

template <class T>
T number_of(std::string_view given, std::string_view kind) {
  constexpr std::string_view blanks = " \t\n\r\f\v";
  std::string_view text = given;
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  const bool has_sign = text.size() > 1 && text[0] == '+' && text[1] != '-';
  if (has_sign) text.remove_prefix(1);
  T x{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  const bool is_whole = end == text.data() + text.size();
  if (error == std::errc() && is_whole) return x;
  const bool is_beyond = error == std::errc::result_out_of_range;
  if constexpr (std::is_floating_point_v<T>)
    if (is_beyond && is_whole) return rounded_beyond(text);
  throw UserError("string '", given.substr(0, 40),
                  is_beyond ? "' is out of range for " : "' is not ", kind);
}

}  // namespace

double real_of(std::string_view text) { return number_of<double>(text, "a number"); }

std::int64_t integer_of(std::string_view text) {
  return number_of<std::int64_t>(text, "an integer of 64 bits");
}

}  // namespace hone
