#include "base/flags.h"

#include <cstdio>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/run/table.h"

namespace hone::cli {

int flags(Words words) {
  Printing printing;
  Arguments a("hone flags", "Lists the environment variables that hone reads.");
  add_printing(a, printing);
  a.example("HONE_THREADS=2 hone flags");
  if (!a.parse(words)) return exit_ok;
  Json list = Json::Array{};
  Table table({"variable", "value", "default", "meaning"});
  for (const Flag& f : all_flags()) {
    const std::string value = flag(f.name);
    const bool is_set = value != f.fallback;
    list.push(Json::Object{{"name", f.name},
                           {"value", value},
                           {"default", f.fallback},
                           {"set", is_set},
                           {"meaning", f.meaning}});
    table.add({std::string(f.name), is_set ? value : "",
               f.fallback.empty() ? "-" : std::string(f.fallback), std::string(f.meaning)});
  }
  std::printf("%s", printing.json ? (list.text(2) + "\n").c_str() : table.text().c_str());
  return exit_ok;
}

}  // namespace hone::cli
