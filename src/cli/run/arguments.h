// The command line of one program or subcommand as a table: what each option is called, what it
// takes, where it goes. Reads the arguments and prints the help from it.
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

// The command line is at fault: exit code 2. Says what was given and what is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The known word nearest in spelling to `given`, or nothing when none is near.
std::string nearest(std::string_view given, std::span<const std::string_view> known);
// "; did you mean X?", or nothing.
std::string did_you_mean(std::string_view given, std::span<const std::string_view> known);
// "a, b or c"
std::string alternatives(std::span<const std::string_view> words);

class Arguments {
 public:
  // `program`: "hone run"; `does`: one sentence for the help.
  Arguments(std::string program, std::string does);

  // What follows stands below this line in the help.
  void heading(std::string text);
  // The argument that is no option. It must be given, but with the option `unless`.
  void positional(std::string name, std::string meaning, std::string& to, std::string unless = "");

  // `names` is "--long" or "-s,--long,--alias"; the first long one stands in the help.
  void flag(std::string_view names, std::string meaning, bool& to);
  void text(std::string_view names, std::string value, std::string meaning, std::string& to);
  // Repeatable; with `commas` each may hold several.
  void list(std::string_view names, std::string value, std::string meaning,
            std::vector<std::string>& to, bool commas = false);
  // One of the words, or several; with `may_repeat` a word may occur more than once.
  void choice(std::string_view names, std::vector<std::string_view> words, std::string meaning,
              std::string& to);
  void choices(std::string_view names, std::vector<std::string_view> words, std::string meaning,
               std::vector<std::string>& to, bool may_repeat = false);
  // Whole, from `least` to `most`.
  void number(std::string_view names, std::string value, std::string meaning, std::int64_t& to,
              std::int64_t least = 0, std::int64_t most = INT64_MAX);
  void number(std::string_view names, std::string value, std::string meaning, int& to,
              int least = 0, int most = INT_MAX);
  // A number of bytes, with or without a unit: 512, 64k, 1.5G (powers of 1000), 64Ki, 2Gi (of
  // 1024).
  void bytes(std::string_view names, std::string meaning, std::int64_t& to);
  // Not negative, not infinite.
  void real(std::string_view names, std::string value, std::string meaning, double& to);
  void real(std::string_view names, std::string value, std::string meaning,
            std::function<void(double)> set);
  // Anything else: `set` throws UsageError with what is allowed; the option's name is put before
  // it.
  void parsed(std::string_view names, std::string value, std::string meaning,
              std::function<void(const std::string&)> set);

  void example(std::string line);

  // Reads the words behind the program's name. False when help was asked for, and printed.
  bool parse(std::span<char* const> words);
  bool is_given(std::string_view name) const;
  // Whether an option below the heading was given; the first such.
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
