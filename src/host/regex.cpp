#include "host/regex.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "host/text.h"

namespace hone {

namespace {

constexpr std::size_t most_instructions = 20'000;
constexpr std::size_t most_pattern_bytes = 64 << 10;
constexpr int most_repeats = 1000, most_nesting = 200;

using Ranges = Regex::Ranges;
using Instruction = Regex::Instruction;
using Kind = Instruction::Kind;

void sort_and_join(Ranges& r) {
  std::sort(r.begin(), r.end());
  Ranges out;
  for (auto [low, high] : r)
    if (!out.empty() && low <= out.back().second + 1)
      out.back().second = std::max(out.back().second, high);
    else
      out.emplace_back(low, high);
  r = std::move(out);
}

// Invalid bytes are in every negated class.
Ranges opposite(Ranges r) {
  sort_and_join(r);
  Ranges out;
  char32_t next = 0;
  for (auto [low, high] : r) {
    if (low > next) out.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= broken_byte + 0xff) out.emplace_back(next, broken_byte + 0xff);
  return out;
}

bool holds(const Ranges& r, char32_t c) {
  auto after = std::upper_bound(r.begin(), r.end(), c,
                                [](char32_t x, const auto& range) { return x < range.first; });
  return after != r.begin() && c <= std::prev(after)->second;
}

const Ranges digits = {{'0', '9'}}, spaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
             words = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

struct NamedClass {
  std::string_view name;
  Ranges ranges;
};
const NamedClass named_classes[] = {
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
    {"digit", digits},
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {"upper", {{'A', 'Z'}}},
    {"lower", {{'a', 'z'}}},
    {"space", {{'\t', '\r'}, {' ', ' '}}},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    {"word", words},
    {"blank", {{'\t', '\t'}, {' ', ' '}}},
    {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
    {"graph", {{'!', '~'}}},
    {"print", {{' ', '~'}}},
    {"ascii", {{0, 0x7f}}},
};

// What (?i) lets letters of ASCII match beside their other case: the long s and the sign of Kelvin.
constexpr std::pair<char32_t, char32_t> other_letters[] = {{'s', 0x17f}, {'k', 0x212a}};

int hexadecimal_digit(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A') + 10;
  return -1;
}

// Builds the program while parsing; each part continues after its own end.
class Compiler {
 public:
  Compiler(std::string_view pattern, std::vector<Instruction>& program, std::vector<Ranges>& sets)
      : program_(program), sets_(sets) {
    if (pattern.size() > most_pattern_bytes)
      throw UserError("regular expression: ", "the pattern has ", pattern.size(),
                      " bytes, expected at most ", most_pattern_bytes);
    text_ = code_points(pattern);
    shown_ = pattern.size() <= 60 ? std::string(pattern) : cat(pattern.substr(0, 60), "...");
  }

  void run() {
    alternatives(0);
    if (at_ < text_.size()) fail("')' without '('");
    emit({});
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("regular expression '", shown_, "': ", what, " at character ", at_);
  }
  bool more() const { return at_ < text_.size(); }
  bool is_next(char32_t c) const { return more() && text_[at_] == c; }
  bool take(char32_t c) {
    if (!is_next(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (text_.size() - at_ < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if (text_[at_ + i] != static_cast<unsigned char>(word[i])) return false;
    at_ += word.size();
    return true;
  }

  std::uint32_t here() const { return static_cast<std::uint32_t>(program_.size()); }
  // Counts all emitted instructions, also copied or removed ones.
  std::uint32_t emit(Instruction i) {
    if (++emitted_ > most_instructions)
      throw UserError("regular expression '", shown_, "' needs more than ", most_instructions,
                      " states; use smaller repeat counts");
    program_.push_back(i);
    return here() - 1;
  }
  void emit_set(Ranges r) {
    if (ignores_case_) add_other_case(r);
    sort_and_join(r);
    sets_.push_back(std::move(r));
    emit({Kind::characters, here() + 1, 0, static_cast<std::uint32_t>(sets_.size() - 1)});
  }
  void emit_condition(Kind kind) { emit({kind, here() + 1}); }
  static void add_other_case(Ranges& r) {
    const std::size_t n = r.size();
    for (std::size_t i = 0; i < n; ++i)
      for (auto [from, to] : {std::pair{U'a', U'z'}, std::pair{U'A', U'Z'}}) {
        const char32_t low = std::max(r[i].first, from), high = std::min(r[i].second, to);
        if (low <= high) r.emplace_back(low ^ 0x20, high ^ 0x20);
      }
    for (const auto& [letter, other] : other_letters)
      if (std::ranges::any_of(
              r, [&](const auto& x) { return x.first <= letter && letter <= x.second; }))
        r.emplace_back(other, other);
  }
  // Of a class and, with (?i), of the other case of its letters.
  Ranges opposite_here(Ranges r) const {
    if (ignores_case_) add_other_case(r);
    return opposite(std::move(r));
  }

  // With more than one, a jump before them leads to the splits behind them.
  void alternatives(int depth) {
    if (depth > most_nesting)
      fail(cat("groups are nested more than ", most_nesting, " levels deep"));
    const std::uint32_t entry = emit({Kind::jump, here() + 1});
    std::vector<std::uint32_t> starts = {here()}, ends;
    sequence(depth);
    while (take(U'|')) {
      ends.push_back(emit({Kind::jump}));
      starts.push_back(here());
      sequence(depth);
    }
    if (ends.empty()) return;
    ends.push_back(emit({Kind::jump}));
    program_[entry].next = here();
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
      emit({Kind::split, starts[i], i + 2 < starts.size() ? here() + 1 : starts[i + 1]});
    for (std::uint32_t e : ends) program_[e].next = here();
  }

  void sequence(int depth) {
    while (more() && !is_next(U'|') && !is_next(U')')) {
      const std::uint32_t start = here();
      if (atom(depth)) repeats(start);
    }
  }

  // Whether there is something to repeat.
  bool atom(int depth) {
    if (take(U'(')) return group(depth);
    for (char32_t c : {U'*', U'+', U'?'})
      if (is_next(c)) fail(cat("there is nothing to repeat before '", static_cast<char>(c), "'"));
    if (is_next(U'{') && count()) fail("there is nothing to repeat before a count");
    if (take(U'['))
      emit_set(bracket());
    else if (take(U'.'))
      emit_set(dot_takes_all_ ? opposite({}) : opposite({{'\n', '\n'}}));
    else if (take(U'^'))
      emit_condition(Kind::at_start);
    else if (take(U'$'))
      emit_condition(Kind::at_end);
    else if (take(U'\\'))
      escape();
    else
      literal(text_[at_++]);
    return true;
  }

  void literal(char32_t c) {
    if (ignores_case_ && c >= 0x80) fail("(?i) supports ASCII letters only");
    emit_set({{c, c}});
  }

  bool group(int depth) {
    const bool case_outside = ignores_case_, dot_outside = dot_takes_all_;
    if (take("?P<") || take("?<")) {
      while (more() && (text_[at_] == '_' || holds(words, text_[at_]))) ++at_;
      if (!take(U'>')) fail("a group name without '>'");
    } else if (take(U'?')) {
      flags();
      if (take(U')')) return false;  // they hold to the end of the group around it
      take(U':');
    }
    alternatives(depth + 1);
    if (!take(U')')) fail("'(' without ')'");
    ignores_case_ = case_outside;
    dot_takes_all_ = dot_outside;
    return true;
  }

  // Up to the ) or : behind them.
  void flags() {
    const std::size_t start = at_ - 1;
    bool sets = true;
    while (more() && !is_next(U')') && !is_next(U':')) {
      if (take(U'i'))
        ignores_case_ = sets;
      else if (take(U's'))
        dot_takes_all_ = sets;
      else if (take(U'U'))
        continue;  // what is tried first makes no difference to whether the whole matches
      else if (sets && take(U'-'))
        sets = false;
      else
        break;
    }
    const bool is_empty = at_ == start + 1 && !is_next(U':');
    const bool ends_in_minus = text_[at_ - 1] == '-';
    if (!(is_next(U')') || is_next(U':')) || is_empty || ends_in_minus) {
      at_ = start;
      fail("this kind of (? group is not supported (lookaround is not)");
    }
  }

  void escape() {
    if (!more()) fail("a \\ at the end");
    if (std::optional<Ranges> named = class_escape()) return emit_set(*named);
    if (take(U'A')) return emit_condition(Kind::at_start);
    if (take(U'z')) return emit_condition(Kind::at_end);
    if (take(U'b')) return emit_condition(Kind::at_word_edge);
    if (take(U'B')) return emit_condition(Kind::off_word_edge);
    literal(character_escape());
  }

  std::optional<Ranges> class_escape() {
    if (take(U'd')) return digits;
    if (take(U'D')) return opposite_here(digits);
    if (take(U's')) return spaces;
    if (take(U'S')) return opposite_here(spaces);
    if (take(U'w')) return words;
    if (take(U'W')) return opposite_here(words);
    return std::nullopt;
  }

  char32_t character_escape() {
    const char32_t c = text_[at_++];
    constexpr std::u32string_view names = U"ntrfva", stand_for = U"\n\t\r\f\v\a";
    if (auto i = names.find(c); i != names.npos) return stand_for[i];
    if (c == U'x') return hexadecimal();
    if (c == U'0' || (is_octal(c) && more() && is_octal(text_[at_]))) return octal(c - U'0');
    if (c >= 0x80 || (c != '_' && holds(words, c))) fail(cat("unknown escape \\", utf8({c})));
    return c;
  }

  static bool is_octal(char32_t c) { return c >= '0' && c <= '7'; }

  // Up to two more digits.
  char32_t octal(char32_t n) {
    for (int i = 0; i < 2 && more() && is_octal(text_[at_]); ++i) n = n * 8 + (text_[at_++] - U'0');
    return n;
  }

  char32_t hexadecimal() {
    const bool braced = take(U'{');
    char32_t n = 0;
    int count = 0;
    for (; more() && count < (braced ? 6 : 2); ++count, ++at_) {
      const int digit = hexadecimal_digit(text_[at_]);
      if (digit < 0) break;
      n = n * 16 + static_cast<char32_t>(digit);
    }
    const bool is_whole = braced ? count > 0 && take(U'}') : count == 2;
    if (!is_whole || n > last_character) fail("\\x without hexadecimal digits");
    return n;
  }

  Ranges bracket() {
    const bool negated = take(U'^');
    Ranges out;
    for (bool is_first = true; is_first || !is_next(U']'); is_first = false) {
      if (!more()) fail("'[' without ']'");
      if (take("[:"))
        named_class(out);
      else
        class_item(out);
    }
    take(U']');
    if (negated && ignores_case_) add_other_case(out);
    return negated ? opposite(out) : out;
  }

  void class_item(Ranges& out) {
    if (take(U'\\')) {
      if (!more()) fail("a \\ at the end");
      if (std::optional<Ranges> named = class_escape()) {
        out.insert(out.end(), named->begin(), named->end());
        return;
      }
      return range_from(character_escape(), out);
    }
    range_from(text_[at_++], out);
  }

  void named_class(Ranges& out) {
    const bool negated = take(U'^');
    for (const NamedClass& c : named_classes) {
      if (!take(cat(c.name, ":]"))) continue;
      const Ranges r = negated ? opposite_here(c.ranges) : c.ranges;
      out.insert(out.end(), r.begin(), r.end());
      return;
    }
    fail("unknown character class [: :]");
  }

  void range_from(char32_t low, Ranges& out) {
    char32_t high = low;
    const bool is_range = is_next(U'-') && at_ + 1 < text_.size() && text_[at_ + 1] != U']';
    if (is_range) {
      ++at_;
      high = text_[at_++];
      if (high == U'\\') {
        if (!more()) fail("a \\ at the end");
        high = character_escape();
      }
      if (high < low) fail("a range that ends before it starts");
    }
    if (ignores_case_ && high >= 0x80) fail("(?i) supports ASCII letters only");
    out.emplace_back(low, high);
  }

  struct Count {
    int least, most;  // most -1: any number
  };

  std::optional<Count> count() {
    if (take(U'*')) return Count{0, -1};
    if (take(U'+')) return Count{1, -1};
    if (take(U'?')) return Count{0, 1};
    const std::size_t before = at_;
    if (!take(U'{')) return std::nullopt;
    const std::optional<int> least = number();
    std::optional<int> most = least;
    if (least && take(U',')) most = is_next(U'}') ? -1 : number();
    if (!least || !most || !take(U'}')) {
      at_ = before;  // a { that does not start a count is a literal
      return std::nullopt;
    }
    if (*least > most_repeats || *most > most_repeats || (*most >= 0 && *most < *least))
      fail(cat("invalid repeat count, expected at most ", most_repeats));
    return Count{*least, *most};
  }

  std::optional<int> number() {
    std::optional<int> n;
    for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      n = std::min(n.value_or(0) * 10 + static_cast<int>(text_[at_] - '0'), most_repeats + 1);
    return n;
  }

  void repeats(std::uint32_t start) {
    const std::optional<Count> c = count();
    if (!c) return;
    take(U'?');  // what is tried first makes no difference to whether the whole matches
    repeat(start, *c);
    const std::size_t before = at_;
    if (count()) fail("a repetition is repeated; put the inner one in (?: )");
    at_ = before;
  }

  void repeat(std::uint32_t start, Count c) {
    const std::vector<Instruction> part(program_.begin() + start, program_.end());
    program_.resize(start);
    for (int i = 0; i < c.least; ++i) append(part, start);
    if (c.most < 0) {
      const std::uint32_t split = emit({Kind::split, here() + 1, 0});
      append(part, start);
      emit({Kind::jump, split});
      program_[split].other = here();
      return;
    }
    std::vector<std::uint32_t> splits;
    for (int i = c.least; i < c.most; ++i) {
      splits.push_back(emit({Kind::split, here() + 1, 0}));
      append(part, start);
    }
    for (std::uint32_t s : splits) program_[s].other = here();
  }

  // A copy of instructions that were made to stand at `start`.
  void append(const std::vector<Instruction>& part, std::uint32_t start) {
    const std::uint32_t by = here() - start;
    for (Instruction i : part) {
      i.next += by;
      i.other += by;
      emit(i);
    }
  }

  std::vector<char32_t> text_;
  std::string shown_;
  std::vector<Instruction>& program_;
  std::vector<Ranges>& sets_;
  std::size_t at_ = 0, emitted_ = 0;
  bool ignores_case_ = false, dot_takes_all_ = false;
};

bool is_word(char32_t c) { return holds(words, c); }

// Properties of a position between two characters.
struct Surroundings {
  bool is_start, is_end, is_word_edge;
};

}  // namespace

// Tracks the active states, character by character.
class Regex::Run {
 public:
  Run(const std::vector<Instruction>& program, const std::vector<Ranges>& sets)
      : program_(program), sets_(sets), mark_(program.size(), 0) {}

  bool matches(const std::vector<char32_t>& text, Budget& budget) {
    const std::size_t n = text.size();
    add(0, around(text, 0));
    now_.swap(next_);
    for (std::size_t i = 0; i < n && !now_.empty(); ++i) {
      ++round_;
      next_.clear();
      const Surroundings at = around(text, i + 1);
      for (std::uint32_t s : now_)
        if (program_[s].kind == Kind::characters && holds(sets_[program_[s].set], text[i]))
          add(program_[s].next, at);
      budget.steps -= static_cast<std::int64_t>(now_.size()) + visited_;
      visited_ = 0;
      if (budget.steps < 0)
        throw UserError(
            "regular expression: matching takes too long; use a simpler expression or shorter "
            "strings");
      now_.swap(next_);
    }
    return std::ranges::any_of(now_,
                               [&](std::uint32_t s) { return program_[s].kind == Kind::accept; });
  }

 private:
  static Surroundings around(const std::vector<char32_t>& text, std::size_t i) {
    const bool before = i > 0 && is_word(text[i - 1]), after = i < text.size() && is_word(text[i]);
    return {i == 0, i == text.size(), before != after};
  }

  static bool passes(Kind kind, const Surroundings& at) {
    switch (kind) {
      case Kind::split:
      case Kind::jump:
        return true;
      case Kind::at_start:
        return at.is_start;
      case Kind::at_end:
        return at.is_end;
      case Kind::at_word_edge:
        return at.is_word_edge;
      case Kind::off_word_edge:
        return !at.is_word_edge;
      case Kind::characters:
      case Kind::accept:
        return false;
    }
    return false;
  }

  // Follows instructions that read no character. Not recursive, because patterns may be long.
  void add(std::uint32_t first, const Surroundings& at) {
    open_.push_back(first);
    while (!open_.empty()) {
      const std::uint32_t s = open_.back();
      open_.pop_back();
      ++visited_;
      if (mark_[s] == round_) continue;
      mark_[s] = round_;
      const Instruction& i = program_[s];
      if (passes(i.kind, at)) open_.push_back(i.next);
      if (i.kind == Kind::split) open_.push_back(i.other);
      if (i.kind == Kind::characters || i.kind == Kind::accept) next_.push_back(s);
    }
  }

  const std::vector<Instruction>& program_;
  const std::vector<Ranges>& sets_;
  std::vector<std::uint32_t> now_, next_, open_;
  std::vector<std::size_t> mark_;  // the round in which a state was added
  std::size_t round_ = 1;
  std::int64_t visited_ = 0;
};

Regex::Regex(std::string_view pattern) { Compiler(pattern, program_, sets_).run(); }

bool Regex::matches(std::string_view text, Budget& budget) const {
  budget.steps += Budget::per_byte * static_cast<std::int64_t>(text.size());
  return Run(program_, sets_).matches(code_points(text), budget);
}

}  // namespace hone
