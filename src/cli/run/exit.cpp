#include "cli/run/exit.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <new>

#include "base/error.h"
#include "cli/run/arguments.h"

namespace hone::cli {

namespace {

// Only what a signal handler may do.
void say_file_is_gone(int) {
  constexpr char text[] =
      "hone: a file in use became shorter, or its disk cannot be read; leave files as they are "
      "while "
      "they are used, or set HONE_MAP_FILES=0 to have them read into memory first\n";
  const bool is_said = ::write(STDERR_FILENO, text, sizeof text - 1) > 0;
  ::_exit(is_said ? exit_user : exit_internal);
}

}  // namespace

int guarded(const char* program, const std::function<int()>& f) {
  struct sigaction on_bus = {};
  on_bus.sa_handler = say_file_is_gone;
  ::sigaction(SIGBUS, &on_bus, nullptr);
  try {
    return f();
  } catch (const UsageError& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return exit_usage;
  } catch (const UserError& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return exit_user;
  } catch (const std::filesystem::filesystem_error& e) {
    std::fprintf(stderr, "%s: %s: %s\n", program, e.path1().c_str(), e.code().message().c_str());
    return exit_user;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; use smaller sizes or fewer threads\n", program);
    return exit_user;
  } catch (const std::exception& e) {
    std::fprintf(stderr,
                 "%s: defect: %s\nPlease report this with the model and the command line.\n",
                 program, e.what());
    return exit_internal;
  }
}

}  // namespace hone::cli
