// The command line of one program or subcommand as a table: each option's names, values and
// destination. Parses arguments and prints the help from this table.
#pragma once

#include <climits>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cli {

// An error in the command line: exit code 2. The message says what was given and what is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The known word with the most similar spelling, or an empty string when none is similar.
std::string nearest(std::string_view given, std::span<const std::string_view> known);
// "; did you mean X?", or an empty string.
std::string did_you_mean(std::string_view given, std::span<const std::string_view> known);
// "a, b or c"
std::string alternatives(std::span<const std::string_view> words);

class Arguments {
 public:
  // `program`: "hone run"; `does`: one sentence for the help.
  Arguments(std::string program, std::string does);

  // The options added after this are listed below this line in the help.
  void heading(std::string text);
  // The positional argument. Required, except with the option `unless`.
  void positional(std::string name, std::string meaning, std::string& to, std::string unless = "");

  // `names` is "--long" or "-s,--long,--alias"; the help shows the first long one.
  void flag(std::string_view names, std::string meaning, bool& to);
  void text(std::string_view names, std::string value, std::string meaning, std::string& to);
  // Repeatable; with `commas`, each argument may hold several values.
  void list(std::string_view names, std::string value, std::string meaning,
            std::vector<std::string>& to, bool commas = false);
  // One of the words, or several; with `may_repeat`, a word may occur more than once.
  void choice(std::string_view names, std::vector<std::string_view> words, std::string meaning,
              std::string& to);
  void choices(std::string_view names, std::vector<std::string_view> words, std::string meaning,
               std::vector<std::string>& to, bool may_repeat = false);
  // An integer from `least` to `most`.
  void number(std::string_view names, std::string value, std::string meaning, std::int64_t& to,
              std::int64_t least = 0, std::int64_t most = INT64_MAX);
  void number(std::string_view names, std::string value, std::string meaning, int& to,
              int least = 0, int most = INT_MAX);
  // A number of bytes, with or without a unit: 512, 64k, 1.5G (powers of 1000), 64Ki, 2Gi (powers
  // of 1024).
  void bytes(std::string_view names, std::string meaning, std::int64_t& to);
  // A non-negative, finite number.
  void real(std::string_view names, std::string value, std::string meaning, double& to);
  void real(std::string_view names, std::string value, std::string meaning,
            std::function<void(double)> set);
  // Any other value: `set` throws UsageError with what is allowed; the option's name is added in
  // front.
  void parsed(std::string_view names, std::string value, std::string meaning,
              std::function<void(const std::string&)> set);

  void example(std::string line);

  // Parses the words after the program's name. False when help was requested and printed.
  bool parse(std::span<char* const> words);
  bool is_given(std::string_view name) const;
  // The first given option below the heading; empty when there is none.
  std::string given_below(std::string_view heading) const;
  std::string help() const;

 private:
  struct Option {
    std::vector<std::string> names;
    std::string value, meaning, heading;
    bool is_repeatable = false, is_given = false;
    std::function<void(const std::string&)> set;
  };
  struct Positional {
    std::string name, meaning, unless;
    std::string* to = nullptr;
    bool is_given = false;
  };

  Option& add(std::string_view names, std::string value, std::string meaning,
              std::function<void(const std::string&)> set);
  Option& find(std::string_view name);
  bool is_option(std::string_view word) const;
  void take(Option&, std::string_view name, const std::string& value);
  void take_positional(std::string_view word);

  std::string program_, does_, heading_;
  std::vector<Option> options_;
  std::vector<Positional> positionals_;
  std::vector<std::string> examples_;
};

// Printed at the end of every help.
inline constexpr std::string_view exit_codes =
    "exit codes: 0 success, 1 results differ or something is missing, 2 wrong command line,\n"
    "            3 model, file or machine, 4 defect of hone\n";

}  // namespace hone::cli
