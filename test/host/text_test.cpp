// String functions: characters, case, splitting.
#include "host/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"

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

// The tables of the C library against Python's, which are derived from UnicodeData.txt
// independently: every character that both know, except those whose other case is several
// characters.
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

// The simple mappings of UnicodeData.txt, where a language or SpecialCasing.txt has another one:
// one letter maps to one letter, regardless of context.
TEST(HostText, CaseIsLetterByLetter) {
  struct {
    char32_t letter, lower, upper;
  } rows[] = {
      {0x00b5, 0x00b5, 0x039c},     // micro sign
      {0x00df, 0x00df, 0x00df},     // sharp s, SS when it may be two letters
      {0x1e9e, 0x00df, 0x1e9e},     // capital sharp s
      {0x0130, 0x0069, 0x0130},     // capital i with dot
      {0x0131, 0x0131, 0x0049},     // dotless i
      {0x0149, 0x0149, 0x0149},     // n preceded by apostrophe
      {0x017f, 0x017f, 0x0053},     // long s
      {0x01c4, 0x01c6, 0x01c4},     // DZ with caron, its title case, its small letter
      {0x01c5, 0x01c6, 0x01c4},     //
      {0x01c6, 0x01c6, 0x01c4},     //
      {0x01f0, 0x01f0, 0x01f0},     // j with caron
      {0x0307, 0x0307, 0x0307},     // combining dot above
      {0x0345, 0x0345, 0x0399},     // combining iota
      {0x0390, 0x0390, 0x0390},     // iota with dialytika and tonos
      {0x03a3, 0x03c3, 0x03a3},     // sigma, at the end of a word too
      {0x03c2, 0x03c2, 0x03a3},     // final sigma
      {0x0587, 0x0587, 0x0587},     // Armenian ligature
      {0x10d0, 0x10d0, 0x1c90},     // Georgian
      {0x13a0, 0xab70, 0x13a0},     // Cherokee
      {0xab70, 0xab70, 0x13a0},     //
      {0x1f80, 0x1f80, 0x1f88},     // alpha with psili and iota
      {0x1fb3, 0x1fb3, 0x1fbc},     // alpha with iota
      {0x2126, 0x03c9, 0x2126},     // ohm, kelvin, angstrom
      {0x212a, 0x006b, 0x212a},     //
      {0x212b, 0x00e5, 0x212b},     //
      {0x2160, 0x2170, 0x2160},     // Roman one
      {0x24b6, 0x24d0, 0x24b6},     // circled A
      {0xfb00, 0xfb00, 0xfb00},     // ligatures ff and st
      {0xfb06, 0xfb06, 0xfb06},     //
      {0xff21, 0xff41, 0xff21},     // fullwidth A
      {0x10400, 0x10428, 0x10400},  // Deseret
      {0x1e900, 0x1e922, 0x1e900},  // Adlam
  };
  for (const auto& row : rows) {
    EXPECT_EQ(in_case(utf8({row.letter}), LetterCase::lower), utf8({row.lower}))
        << "U+" << std::hex << static_cast<unsigned>(row.letter);
    EXPECT_EQ(in_case(utf8({row.letter}), LetterCase::upper), utf8({row.upper}))
        << "U+" << std::hex << static_cast<unsigned>(row.letter);
  }
  // A letter and its combining mark stay two characters.
  EXPECT_EQ(in_case("e\xcc\x81i\xcc\x87", LetterCase::upper), "E\xcc\x81I\xcc\x87");
  EXPECT_EQ(in_case("\xce\x9f\xce\xa3 \xce\xa3", LetterCase::lower), "\xce\xbf\xcf\x83 \xcf\x83");
}

// As C's %g: 8 digits, and for f64 as many more as identify the number.
TEST(HostText, DigitsOfNumbers) {
  struct {
    double x;
    int digits;  // 17 for f64, 8 for others
    std::string_view text;
  } rows[] = {
      {0.0, 8, "0"},
      {-0.0, 8, "-0"},
      {INFINITY, 8, "INF"},
      {-INFINITY, 17, "-INF"},
      {NAN, 8, "NaN"},
      {-NAN, 8, "NaN"},
      {1, 8, "1"},
      {-1.5, 8, "-1.5"},
      {0.1f, 8, "0.1"},
      {0.1, 17, "0.1"},
      {1.0 / 3, 17, "0.3333333333333333"},
      {1e-4, 17, "0.0001"},
      {1e-5, 17, "1e-05"},
      {123456789, 17, "123456789"},
      {1e15, 17, "1e+15"},
      {1e100, 17, "1e+100"},
      {65504, 8, "65504"},
      {0x1p-24, 8, "5.9604645e-08"},
      {3.3895313892515355e38, 8, "3.3895314e+38"},  // largest bf16
      {3.4028234663852886e38, 8, "3.4028235e+38"},  // largest f32
      {1.401298464324817e-45, 8, "1.4012985e-45"},  // smallest f32
      {1.1754943508222875e-38, 8, "1.1754944e-38"},
      {1.7976931348623157e308, 17, "1.7976931348623157e+308"},
      {2.2250738585072014e-308, 17, "2.2250738585072014e-308"},
      {5e-324, 17, "4.9406565e-324"},
  };
  for (const auto& row : rows) EXPECT_EQ(digits_of(row.x, row.digits), row.text);
}

TEST(HostText, NumbersOfDigits) {
  struct {
    std::string_view text;
    double x;
  } rows[] = {
      {"0", 0.0},
      {"-0", -0.0},
      {"+0", 0.0},
      {"1", 1},
      {"+1.5", 1.5},
      {".5", 0.5},
      {"5.", 5},
      {"-3e2", -300},
      {"3.1415926E8", 3.1415926e8},
      {"1e+05", 1e5},
      {"1E-05", 1e-5},
      {" \t12\n", 12},
      {"INF", INFINITY},
      {"+INF", INFINITY},
      {"-INF", -INFINITY},
      {"inf", INFINITY},
      {"Infinity", INFINITY},
      {"NaN", NAN},
      {"nan", NAN},
      {"-NaN", NAN},
      {"9007199254740993", 9007199254740992},  // a tie, to even
      {"9007199254740993.0000000001", 9007199254740994},
      {"1.7976931348623157e308", 1.7976931348623157e308},
      {"1.7976931348623159e308", INFINITY},
      {"1e400", INFINITY},
      {"-1e400", -INFINITY},
      {"5e-324", 5e-324},
      {"2e-324", 0},
      {"-1e-400", -0.0},
  };
  for (const auto& row : rows) {
    const double x = real_of(row.text);
    EXPECT_TRUE(std::isnan(row.x) ? std::isnan(x) : x == row.x) << row.text << ": " << x;
    EXPECT_EQ(std::signbit(x) && !std::isnan(x), std::signbit(row.x) && !std::isnan(row.x))
        << row.text;
  }
  for (std::string_view wrong : {"", " ", "+", "-", ".", "e5", "1e", "1e+", "1 2", "1,5", "+-1",
                                 "--1", "0x10", "1f", "one", "1_000", "\xd9\xa1"})
    EXPECT_THROW(real_of(wrong), UserError) << wrong;
  EXPECT_EQ(integer_of("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer_of(" +9223372036854775807 "), INT64_MAX);
  EXPECT_EQ(integer_of("-0"), 0);
  for (std::string_view wrong : {"", "9223372036854775808", "1.0", "1e3", "0x10", "+-1", "- 1"})
    EXPECT_THROW(integer_of(wrong), UserError) << wrong;
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
