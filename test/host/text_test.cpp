// Texts by themselves: characters, case, pieces.
#include "host/text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace hone {
namespace {

using Pieces = std::vector<std::string_view>;

TEST(HostText, CharactersOfUtf8) {
  EXPECT_EQ(code_points("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            (std::vector<char32_t>{'a', 0xe9, 0x20ac, 0x1f600}));
  EXPECT_EQ(utf8({'a', 0xe9, 0x20ac, 0x1f600}), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(HostText, BytesThatAreNoCharactersStayWhatTheyAre) {
  // Lone and cut-off bytes, overlong forms, surrogates, beyond the last character.
  for (std::string_view broken :
       {"\x80", "\xff", "\xc3", "\xc3(", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xf0\x9f\x98"}) {
    const std::vector<char32_t> all = code_points(broken);
    EXPECT_GE(all[0], broken_byte);
    EXPECT_EQ(utf8(all), broken);
    EXPECT_EQ(in_case(broken, LetterCase::upper), broken);
  }
}

TEST(HostText, Case) {
  EXPECT_EQ(in_case("aZ1_@[`{", LetterCase::upper), "AZ1_@[`{");
  EXPECT_EQ(in_case("aZ1_@[`{", LetterCase::lower), "az1_@[`{");
  EXPECT_EQ(in_case("\xc3\xa9\xce\xa9\xd0\x96", LetterCase::lower), "\xc3\xa9\xcf\x89\xd0\xb6");
  EXPECT_EQ(in_case("\xc3\xa9\xce\xa9\xd0\xb6", LetterCase::upper), "\xc3\x89\xce\xa9\xd0\x96");
}

// The tables of the C library against those of Python, which come from UnicodeData.txt on another
// way: each character that both know, but for those whose other case is several characters.
TEST(HostText, CaseAndBlanksOfEveryCharacter) {
  constexpr const char* script =
      "python3 -c \""
      "import unicodedata\n"
      "one = lambda s, c: ord(s) if len(s) == 1 else ord(c)\n"
      "for c in map(chr, range(0x110000)):\n"
      "  if unicodedata.category(c) in ('Cn', 'Cs'): continue\n"
      "  row = one(c.lower(), c), one(c.upper(), c), c.isspace()\n"
      "  if row != (ord(c), ord(c), False): print(ord(c), *map(int, row))\n"
      "\"";
  const auto close = [](std::FILE* f) { EXPECT_EQ(::pclose(f), 0); };
  const std::unique_ptr<std::FILE, decltype(close)> table(::popen(script, "r"), close);
  ASSERT_TRUE(table);
  unsigned code = 0, lower = 0, upper = 0;
  int is_blank = 0, rows = 0, blanks = 0;
  while (std::fscanf(table.get(), "%u %u %u %d", &code, &lower, &upper, &is_blank) == 4) {
    const std::string c = utf8({code});
    EXPECT_EQ(code_points(in_case(c, LetterCase::lower)).at(0), lower) << "U+" << std::hex << code;
    EXPECT_EQ(code_points(in_case(c, LetterCase::upper)).at(0), upper) << "U+" << std::hex << code;
    EXPECT_EQ(count_pieces("a" + c + "b", "", -1), 1 + is_blank) << "U+" << std::hex << code;
    ++rows;
    blanks += is_blank;
  }
  EXPECT_GT(rows, 2700);
  EXPECT_GE(blanks, 29);
}

// As Python's str.split.
TEST(HostText, Pieces) {
  struct {
    std::string_view text, delimiter;
    std::int64_t most;
    Pieces pieces;
  } cases[] = {
      {"a.b.c", ".", -1, {"a", "b", "c"}},
      {"a.b.c", ".", 1, {"a", "b.c"}},
      {"a.b.c", ".", 0, {"a.b.c"}},
      {"..", ".", -1, {"", "", ""}},
      {"", ".", -1, {""}},
      {"a--b---c", "--", -1, {"a", "b", "-c"}},
      {"abc", "abcd", -1, {"abc"}},
      {" a \t b\n", "", -1, {"a", "b"}},
      {" a \t b c ", "", 1, {"a", "b c "}},
      {" a ", "", 0, {"a "}},
      {"  ", "", -1, {}},
      {"", "", -1, {}},
      {"a\xc2\xa0"
       "b\xe3\x80\x80"
       "c\x1c"
       "d",
       "",
       -1,
       {"a", "b", "c", "d"}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(split(c.text, c.delimiter, c.most), c.pieces) << c.text;
    EXPECT_EQ(count_pieces(c.text, c.delimiter, c.most), std::ssize(c.pieces)) << c.text;
  }
}

}  // namespace
}  // namespace hone
