#include "base/flags.h"

#include <cstdio>

#include "cli/commands.h"
#include "cli/run/table.h"

namespace hone::cli {

int flags() {
  Table table({"variable", "default", "meaning"});
  for (const Flag& f : all_flags())
    table.add({std::string(f.name), f.fallback.empty() ? "-" : std::string(f.fallback),
               std::string(f.meaning)});
  std::printf("%s", table.text().c_str());
  return exit_ok;
}

}  // namespace hone::cli
