// Regular expressions: matches, refused patterns, and bounded time for every pattern.
#include "host/regex.h"

#include <gtest/gtest.h>

#include <ctime>
#include <regex>
#include <string>

#include "base/error.h"

namespace hone {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  Regex::Budget budget;
  return Regex(pattern).matches(text, budget);
}

std::string refusal(std::string_view pattern, std::string_view text = "") {
  try {
    matches(pattern, text);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Regex, WholeTextsThatMatch) {
  struct {
    std::string_view pattern, text;
    bool does;
  } cases[] = {
      {"", "", true},
      {"", "a", false},
      {"abc", "abc", true},
      {"abc", "abcd", false},
      {"a|b|cd", "cd", true},
      {"a|b|cd", "c", false},
      {"(a|b)*c", "ababc", true},
      {"(?:ab)+", "ababa", false},
      {"a|", "", true},
      {"|a", "a", true},
      {"a*?b??c+?", "aac", true},
      {"a{3}", "aaa", true},
      {"a{3}", "aa", false},
      {"a{2,}", "aaaa", true},
      {"a{2,3}", "aaaa", false},
      {"a{0}", "", true},
      {"a{,2}", "a{,2}", true},
      {"a{b", "a{b", true},
      {"(a|b){2}c", "bac", true},
      {"(a*)*", "aaaa", true},
      {"(a*|b)*c", "abac", true},
      {".", "\n", false},
      {".", "\xe2\x82\xac", true},
      {"..", "\xe2\x82\xac", false},
      {".", "\xff", true},
      {"[^a]", "\xff", true},
      {"\xff", "\xff", true},
      {"\xc3\xbf", "\xff", false},
      {"[a-c]+", "abcb", true},
      {"[^a-c]", "b", false},
      {"[]a]+", "]a", true},
      {"[a-]+", "a-", true},
      {"[\\d.]+", "3.14", true},
      {"[[:alpha:]]+", "aZ", true},
      {"[[:^digit:]]", "1", false},
      {"[^\\W]", "a", true},
      {"[^\\W]", " ", false},
      {"\\d\\D\\s\\S\\w\\W", "1a b_-", true},
      {"\\x41\\x{20AC}\\n\\.", "A\xe2\x82\xac\n.", true},
      {"^abc$", "abc", true},
      {"a^b", "ab", false},
      {"a$b", "ab", false},
      {"a(^)*b", "ab", true},
      {"\\Aab\\z", "ab", true},
      {"a\\b-\\bb", "a-b", true},
      {"a\\Bb", "ab", true},
      {"a\\bb", "ab", false},
      {"(?i)ABC[x-z]", "abCY", true},
      {"(?i:a)b", "Ab", true},
      {"(?i:a)b", "AB", false},
      {"((?i)a)b", "Ab", true},
      {"(?i)[^a]", "A", false},
      // The long s and the sign of Kelvin fold to s and k.
      {"(?i)s", "\xc5\xbf", true},
      {"(?i)[a-z]+", "\xc5\xbf\xe2\x84\xaa", true},
      {"(?i)[^k]", "\xe2\x84\xaa", false},
      {"(?i)\\w", "\xe2\x84\xaa", true},
      {"(?i)\\W", "\xe2\x84\xaa", false},
      {"(?i)[^\\W]", "\xc5\xbf", true},
      {"\\w", "\xe2\x84\xaa", false},
      {"[^k]", "\xe2\x84\xaa", true},
      {"(?i)a(?-i)b", "Ab", true},
      {"(?i)a(?-i)b", "AB", false},
      {"(?i:a(?-i:b))c", "Abc", true},
      {"(?i:a(?-i:b))c", "ABc", false},
      {"(?s).", "\n", true},
      {"(?s:.).", "\n\n", false},
      {"(?is-U:a.)b", "A\nb", true},
      {"(?-s).", "\n", false},
      {"(?U)a*", "aa", true},
      {"\\101\\0", std::string_view("A\0", 2), true},
      {"\\08",
       std::string_view("\0"
                        "8",
                        2),
       true},
      {"[\\101-C]+", "ABC", true},
      {"[[:blank:]]+", " \t", true},
      {"[[:cntrl:]]+", "\x1f\x7f", true},
      {"[[:graph:]]+", "!~", true},
      {"[[:graph:]]", " ", false},
      {"[[:print:]]+", " ~", true},
      {"[[:^ascii:]]", "\xc3\xa9", true},
      {"(?P<name>a)(?<other>b)", "ab", true},
      {"(\\w+)@(\\w+)\\.(com|org)", "me@example.org", true},
  };
  for (const auto& c : cases)
    EXPECT_EQ(matches(c.pattern, c.text), c.does) << c.pattern << " on " << c.text;
}

// Small patterns on all short strings, against the standard library.
TEST(Regex, AgreesWithAnother) {
  const char* patterns[] = {"(a|ab)(c|bcd)*",    "(a*)(b|ab)*",   "((a|b)?c)*",   "a(b|c)*d?",
                            "(a|(b|(c|d)))+",    "(ab|a)(bc|c)?", "[ab]*c[^c]",   "(a{2}|b{1,2})*",
                            "(^a|b)*$",          "a?a?a?aaa",     "(a|b|c){2,3}", "((ab)*|c)d*",
                            "(?:a|b)*a(?:a|b)$", "a*b*c*d*"};
  for (const char* pattern : patterns) {
    const Regex ours{pattern};
    const std::regex other(pattern);
    for (int n = 0; n < 4 * 4 * 4 * 4 * 4 * 4; ++n) {
      std::string text;
      for (int k = n; k > 0; k /= 5)
        if (k % 5 > 0) text += static_cast<char>('a' + k % 5 - 1);
      Regex::Budget budget;
      EXPECT_EQ(ours.matches(text, budget), std::regex_match(text, other))
          << pattern << " " << text;
    }
  }
}

TEST(Regex, WhatIsNotUnderstoodIsNamed) {
  struct {
    std::string_view pattern, why;
  } cases[] = {
      {"(a", "'(' without ')'"},
      {"a)", "')' without '('"},
      {"[a", "'[' without ']'"},
      {"[b-a]", "ends before it starts"},
      {"*a", "nothing to repeat before '*'"},
      {"a**", "a repetition is repeated"},
      {"a{2}{3}", "a repetition is repeated"},
      {"a{3,2}", "repeat count"},
      {"a{1001}", "at most 1000"},
      {"a{99999999999999999999}", "at most 1000"},
      {"\\", "a \\ at the end"},
      {"[\\", "a \\ at the end"},
      {"\\p{L}", "unknown escape \\p"},
      {"\\1", "unknown escape \\1"},
      {"\\x4", "\\x without hexadecimal digits"},
      {"\\x{110000}", "\\x without hexadecimal digits"},
      {"(?=a)", "lookaround"},
      {"(?m)a", "lookaround"},
      {"(?)a", "lookaround"},
      {"(?i-)a", "lookaround"},
      {"(?i", "lookaround"},
      {"{1}", "nothing to repeat before a count"},
      {"(?<=a)", "a group name"},
      {"[[:what:]]", "[: :]"},
      {"(?i)\xc3\xa9", "ASCII letters only"},
  };
  for (const auto& c : cases)
    EXPECT_NE(refusal(c.pattern).find(c.why), std::string::npos)
        << c.pattern << ": " << refusal(c.pattern);
}

TEST(Regex, LargePatternsAreRefused) {
  std::string nested(300, '(');
  EXPECT_NE(refusal(nested).find("groups are nested"), std::string::npos);
  EXPECT_NE(refusal("((a{100}){100}){100}").find("states"), std::string::npos);
  EXPECT_NE(refusal(std::string(1 << 20, 'a')).find("bytes"), std::string::npos);
  // States that are created and discarded count towards the limit, too.
  std::string nothing;
  for (int i = 0; i < 5000; ++i) nothing += "(a{99}){0}";
  EXPECT_NE(refusal(nothing).find("states"), std::string::npos);
  std::string many = "a";
  for (int i = 0; i < 5000; ++i) many += "|a";
  EXPECT_TRUE(matches(many, "a"));
}

std::int64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

// Patterns that take exponential time in a backtracking matcher.
TEST(Regex, TimeIsLinear) {
  for (const char* pattern : {"(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)b", "(a*)*b"}) {
    const auto time_of = [&](std::size_t characters) {
      const std::int64_t start = cpu_ns();
      EXPECT_FALSE(matches(pattern, std::string(characters, 'a'))) << pattern;
      return cpu_ns() - start;
    };
    const std::int64_t few = time_of(8'000);
    EXPECT_LT(time_of(64'000), 24 * few) << pattern;  // 8 times if linear, 64 times if quadratic
  }
  EXPECT_NE(refusal("(.*a){900}b", std::string(100'000, 'a')).find("too long"), std::string::npos);
}

}  // namespace
}  // namespace hone
