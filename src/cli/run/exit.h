// Exit codes of the programs `hone` and `hone-run`, and the border at which errors become them.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace hone::cli {

// Documented by --help.
enum ExitCode : int {
  exit_ok = 0,
  exit_differs = 1,   // validate: a result is outside its tolerance; doctor: something is missing
  exit_usage = 2,     // the command line
  exit_user = 3,      // the model, a file or the machine: UserError
  exit_internal = 4,  // a defect of Hone
};

// Runs f and gives its exit code; what it throws goes to stderr behind the program's name and,
// where the arguments ask for --json, as {"error": ..., "exit_code": ...} to stdout. So does the
// end of a process that reads a mapped file whose bytes are gone. Output that could not be written
// is an error, too.
int guarded(const char* program, std::span<char* const> words, const std::function<int()>& f);

// Warns of HONE_ variables that are not read but look like those that are, unless the arguments ask
// for --quiet or --json.
void warn_of_misspelt_flags(const char* program, std::span<char* const> words);

// Prints an error that ended a command without an exception, as `guarded` prints exceptions.
int tell_error(const char* program, bool is_json, int code, std::string_view text);

}  // namespace hone::cli
