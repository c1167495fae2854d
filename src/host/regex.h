// Regular expressions without backtracking: time grows with pattern times text, whatever they are.
// Syntax is that of RE2, less what a match of the whole text has no use for: literals, ., classes,
// \d \w \s \b and their opposites, ( ), (?: ), |, * + ? {m,n} (greedy or not), ^ $ \A \z, the flags
// i, s and U.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

class Regex {
 public:
  // Steps that matching may take: some, and for each byte of text some more. A state of a pattern
  // that is alive at a character is a step.
  struct Budget {
    std::int64_t steps = std::int64_t{1} << 24;
    static constexpr std::int64_t per_byte = 64;
  };

  // Throws UserError naming what is not understood and where.
  explicit Regex(std::string_view pattern);
  // The whole text, which is UTF-8; bytes that are not match . and negated classes. Throws
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
    std::uint32_t next = 0, other = 0;  // other: of split
    std::uint32_t set = 0;              // characters: index into sets
  };

 private:
  class Run;

  std::vector<Instruction> program_;
  std::vector<Ranges> sets_;
};

}  // namespace hone
