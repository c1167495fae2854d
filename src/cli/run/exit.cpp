#include "cli/run/exit.h"

#include <cstdio>
#include <filesystem>
#include <new>

#include "base/error.h"
#include "base/file.h"
#include "cli/run/arguments.h"

namespace hone::cli {

int guarded(const char* program, const std::function<int()>& f) {
  exit_when_a_file_is_gone(exit_user);
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
