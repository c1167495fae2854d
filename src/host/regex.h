// Regular expressions without backtracking: time is at most proportional to pattern length times
// text length. RE2 syntax, without what is useless when matching the whole text: literals, .,
// classes, \d \w \s \b and their opposites, ( ), (?: ), |, * + ? {m,n} (greedy or not), ^ $ \A \z,
// the flags i, s and U.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

class Regex {
 public:
  // Limit of matching steps: a constant plus a number per byte of text. Each state of a pattern
  // that is active at a character is one step.
  struct Budget {
    std::int64_t steps = std::int64_t{1} << 24;
    static constexpr std::int64_t per_byte = 64;
  };

  // Throws UserError naming the unsupported syntax and its position.
  explicit Regex(std::string_view pattern);
  // Matches the whole text. It should be UTF-8; invalid bytes match . and negated classes. Throws
  // UserError when the budget is spent.
  bool matches(std::string_view text, Budget&) const;

  using Ranges = std::vector<std::pair<char32_t, char32_t>>;
  struct Instruction {
    enum class Kind : std::uint8_t {
      characters,
      split,
      jump,
      at_start,
      at_end,
      at_word_edge,
      off_word_edge,
      accept,
    };
    Kind kind = Kind::accept;
    std::uint32_t next = 0, other = 0;  // `other` is for split
    std::uint32_t set = 0;              // characters: index into sets
  };

 private:
  class Run;

  std::vector<Instruction> program_;
  std::vector<Ranges> sets_;
};

}  // namespace hone
