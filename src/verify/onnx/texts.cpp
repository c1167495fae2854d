// Operators on strings. Their elements are numbers in the table of type/text.h, so that operators
// that move or compare elements need nothing of their own.
#include <algorithm>
#include <cctype>
#include <regex>

#include "type/text.h"
#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

std::string text_at(const Numbers& n, std::size_t i) {
  return std::string(hone::text_of(static_cast<std::uint64_t>(n.values.at(i))));
}
double number_of(std::string_view text) { return static_cast<double>(text_number(text)); }

const Numbers& texts_of(Call& c, std::size_t i) {
  if (c.in(i).dtype != DType::text) throw NotJudged();
  return c.in(i);
}

// One string for an index of a broadcast.
std::size_t broadcast_place(const Numbers& n, const Sizes& index) {
  const Sizes strides = strides_of(n.dims);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < n.dims.size(); ++i)
    if (n.dims[i] != 1) at += index[i + index.size() - n.dims.size()] * strides[i];
  return static_cast<std::size_t>(at);
}

std::vector<Numbers> concatenation(Call& c) {
  const Numbers &a = texts_of(c, 0), &b = texts_of(c, 1);
  Numbers out{DType::text, Sizes(std::max(a.dims.size(), b.dims.size()), 1), {}};
  for (const Numbers* n : {&a, &b})
    for (std::size_t i = 0; i < n->dims.size(); ++i) {
      std::int64_t& d = out.dims[out.dims.size() - n->dims.size() + i];
      if (d == 1) d = n->dims[i];
    }
  for_index(out.dims, [&](const Sizes& index) {
    out.values.push_back(
        number_of(text_at(a, broadcast_place(a, index)) + text_at(b, broadcast_place(b, index))));
  });
  return {out};
}

bool is_blank(char x) { return std::isspace(static_cast<unsigned char>(x)) != 0; }

// At runs of blanks, of which those at both ends do not count. What is left after the last split
// keeps its blanks inside.
std::vector<std::string> split_at_blanks(const std::string& text, std::int64_t most) {
  std::vector<std::string> out;
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < text.size() && is_blank(text[at])) ++at;
  };
  for (skip(); at < text.size(); skip()) {
    std::size_t end = at;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      end = text.size();
      while (end > at && is_blank(text[end - 1])) --end;
    } else {
      while (end < text.size() && !is_blank(text[end])) ++end;
    }
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::vector<std::string> split_at(const std::string& text, const std::string& delimiter,
                                  std::int64_t most) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
    const std::size_t next = text.find(delimiter, at);
    if (next == text.npos) break;
    out.push_back(text.substr(at, next - at));
    at = next + delimiter.size();
  }
  out.push_back(text.substr(at));
  return out;
}

// Strings beside one another, as many as the longest list has, then how many each has.
std::vector<Numbers> splits(Call& c) {
  const Numbers& x = texts_of(c, 0);
  const std::string delimiter = c.text("delimiter", "");
  const std::int64_t most = c.integer("maxsplit", -1);
  std::vector<std::vector<std::string>> lists;
  std::size_t width = 0;
  Numbers counts{DType::i64, x.dims, {}};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::string text = text_at(x, i);
    lists.push_back(delimiter.empty() ? split_at_blanks(text, most)
                                      : split_at(text, delimiter, most));
    width = std::max(width, lists.back().size());
    counts.values.push_back(static_cast<double>(lists.back().size()));
    // Python has one empty string here, the page does not say.
    if (text.empty() && !delimiter.empty()) throw NotJudged();
  }
  Numbers out{DType::text, x.dims, {}};
  out.dims.push_back(static_cast<std::int64_t>(width));
  for (const auto& list : lists)
    for (std::size_t k = 0; k < width; ++k)
      out.values.push_back(number_of(k < list.size() ? list[k] : ""));
  return {out, counts};
}

// Patterns that RE2 and ECMAScript read alike: letters, digits, sets of them, and repetitions.
std::vector<Numbers> full_match(Call& c) {
  const Numbers& x = texts_of(c, 0);
  const std::string pattern = c.text("pattern", "");
  for (char letter : pattern)
    if (!std::isalnum(static_cast<unsigned char>(letter)) &&
        std::string_view(" .@_-+*?|()[]").find(letter) == std::string_view::npos)
      throw NotJudged();
  if (pattern.find("(?") != pattern.npos || pattern.find("[[") != pattern.npos) throw NotJudged();
  Numbers out{DType::b1, x.dims, {}};
  try {
    const std::regex expression(pattern);
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      const std::string text = text_at(x, i);
      // Letters of several bytes are several letters here, and a line's end is none of "."
      if (!std::ranges::all_of(text, [](char l) { return l >= ' ' && l <= '~'; }))
        throw NotJudged();
      out.values.push_back(std::regex_match(text, expression) ? 1 : 0);
    }
  } catch (const std::regex_error&) {
    throw NotJudged();
  }
  return {out};
}

// Of letters that have the same two cases everywhere.
std::string in_case(std::string text, const std::string& how) {
  if (how == "NONE") return text;
  if (how != "LOWER" && how != "UPPER") throw NotJudged();
  for (char& letter : text) {
    const auto l = static_cast<unsigned char>(letter);
    if (l > 127) throw NotJudged();
    letter = static_cast<char>(how == "LOWER" ? std::tolower(l) : std::toupper(l));
  }
  return text;
}

std::vector<Numbers> normalized(Call& c) {
  const Numbers& x = texts_of(c, 0);
  const std::string how = c.text("case_change_action", "NONE");
  const bool is_exact = c.integer("is_case_sensitive", 0) != 0;
  static_cast<void>(c.text("locale", ""));
  const auto compared = [&](const std::string& s) { return is_exact ? s : in_case(s, "LOWER"); };
  std::vector<std::string> stops, kept;
  for (const std::string& s : c.texts("stopwords")) stops.push_back(compared(s));
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::string s = text_at(x, i);
    if (stops.empty() || std::ranges::find(stops, compared(s)) == stops.end())
      kept.push_back(in_case(s, how));
  }
  if (kept.empty()) kept.emplace_back();
  Numbers out{DType::text, x.dims, {}};
  if (out.dims.empty() || out.dims.size() > 2) throw NotJudged();
  out.dims.back() = static_cast<std::int64_t>(kept.size());
  for (const std::string& s : kept) out.values.push_back(number_of(s));
  return {out};
}

constexpr MeaningRow text_rows[] = {{"StringConcat", concatenation, Kind::copies},
                                    {"StringSplit", splits, Kind::copies},
                                    {"RegexFullMatch", full_match, Kind::copies},
                                    {"StringNormalizer", normalized, Kind::copies}};

}  // namespace

std::span<const MeaningRow> text_meanings() { return text_rows; }

}  // namespace hone::onnx
