#include "base/start_again.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hone {

void start_again(char** arguments, const std::string& variable, const std::string& value) {
  std::fflush(nullptr);
  ::setenv(variable.c_str(), value.c_str(), 1);
  ::execv("/proc/self/exe", arguments);
}

}  // namespace hone
