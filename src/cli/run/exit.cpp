#include "cli/run/exit.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/terminal.h"
#include "cli/run/arguments.h"

namespace hone::cli {

namespace {

// Flushes output that is still buffered.
int flushed(const char* program, int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  std::fprintf(stderr, "%s: standard output: cannot be written: %s; is the disk full?\n", program,
               std::strerror(errno));
  return exit_user;
}

}  // namespace

int tell_error(const char* program, bool is_json, int code, std::string_view text) {
  std::fprintf(stderr, "%s: %s\n", program, std::string(text).c_str());
  if (is_json)
    std::printf("%s\n", Json(Json::Object{{"error", text}, {"exit_code", code}}).text(2).c_str());
  return code;
}

void warn_of_misspelt_flags(const char* program, std::span<char* const> words) {
  for (const std::string_view word : words)
    if (word == "--json" || word == "--quiet" || word == "-q") return;
  // Compares after the prefix, which all share.
  constexpr std::size_t prefix = std::string_view("HONE_").size();
  std::vector<std::string_view> known;
  for (const Flag& f : all_flags()) known.push_back(f.name.substr(prefix));
  for (const std::string& name : unknown_flags()) {
    const std::string_view own = std::string_view(name).substr(prefix);
    const auto longer = std::ranges::find_if(
        known, [&](std::string_view k) { return !own.empty() && k.starts_with(own); });
    const std::string near = longer != known.end() ? std::string(*longer) : nearest(own, known);
    if (!near.empty())
      std::fprintf(stderr,
                   "%s: warning: environment variable %s is not read; did you mean HONE_%s?\n",
                   program, name.c_str(), near.c_str());
  }
}

int guarded(const char* program, std::span<char* const> words, const std::function<int()>& f) {
  exit_when_a_file_is_gone(exit_user);
  std::signal(SIGXFSZ, SIG_IGN);  // so that a write beyond `ulimit -f` fails with a reason
  print_only_printable();
  const bool is_json =
      std::ranges::any_of(words, [](const char* w) { return std::strcmp(w, "--json") == 0; });
  const auto fail = [&](int code, const std::string& text) {
    return flushed(program, tell_error(program, is_json, code, text));
  };
  try {
    return flushed(program, f());
  } catch (const UsageError& e) {
    return fail(exit_usage, e.what());
  } catch (const UserError& e) {
    return fail(exit_user, e.what());
  } catch (const std::filesystem::filesystem_error& e) {
    return fail(exit_user, cat(e.path1().string(), ": ", e.code().message()));
  } catch (const std::bad_alloc&) {
    return fail(exit_user,
                "out of memory; use smaller sizes or fewer threads, or raise the limit of this "
                "process (ulimit -v)");
  } catch (const std::system_error& e) {
    return fail(exit_user, cat("the system refused a thread or file: ", e.what(),
                               "; use fewer threads (--threads), or raise the limits of this "
                               "process (ulimit -u, -v, -n)"));
  } catch (const std::exception& e) {
    return fail(exit_internal, cat("defect: ", e.what(),
                                   "\nPlease report this with the model and the command line."));
  }
}

}  // namespace hone::cli
