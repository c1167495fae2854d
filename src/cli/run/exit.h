// Exit codes of the programs `hone` and `hone-run`, and the conversion of errors to exit codes.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace hone::cli {

// Documented in --help.
enum ExitCode : int {
  exit_ok = 0,
  exit_differs = 1,  // validate: a result is outside of its tolerance; doctor: something is missing
  exit_usage = 2,    // wrong command line
  exit_user = 3,     // problem with the model, a file or the machine: UserError
  exit_internal = 4,  // a defect of Hone
};

// Runs f and returns its exit code. Prints exceptions to stderr after the program's name and, with
// --json, as {"error": ..., "exit_code": ...} to stdout. Does the same for a crash caused by
// reading a mapped file that was truncated. Failed writes to stdout are also errors.
int guarded(const char* program, std::span<char* const> words, const std::function<int()>& f);

// Warns about unknown HONE_ variables with names similar to known ones, unless --quiet or --json is
// given.
void warn_of_misspelt_flags(const char* program, std::span<char* const> words);

// Prints an error that ended a command without an exception, in the same form as `guarded`.
int tell_error(const char* program, bool is_json, int code, std::string_view text);

}  // namespace hone::cli
