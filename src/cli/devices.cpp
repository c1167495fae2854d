#include "backend/devices/devices.h"

#include <cstdio>

#include "base/error.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/run/table.h"

namespace hone::cli {

namespace {

Json describe(std::string_view name) {
  Json out = Json::Object{{"name", name}};
  try {
    out.add("target", open_device(name)->description());
  } catch (const UserError& e) {
    out.add("failure", e.what());
  }
  if (name != device_names()[0]) return out;  // the rest is about the processor
  const Machine m = this_machine();
  out.add("processor", m.processor);
  out.add("processors", m.processors);
  out.add("threads", default_thread_count());
  out.add("l1_bytes", m.l1);
  out.add("l2_bytes", m.l2);
  out.add("l3_bytes", m.l3);
  out.add("memory_bytes", m.memory);
  return out;
}

}  // namespace

int devices(Words words) {
  Printing printing;
  Arguments a("hone devices", "Lists what this machine computes with.");
  add_printing(a, printing);
  a.example("hone devices --json");
  if (!a.parse(words)) return exit_ok;
  Json devices = Json::Array{}, libraries = Json::Array{};
  for (const std::string& name : device_names()) devices.push(describe(name));
  for (const LibraryStatus& l : device_libraries())
    libraries.push(Json::Object{
        {"name", l.name}, {"version", l.version}, {"file", l.file}, {"failure", l.failure}});
  if (printing.json) {
    std::printf("%s\n",
                Json(Json::Object{{"devices", devices}, {"libraries", libraries}}).text(2).c_str());
    return exit_ok;
  }
  for (const Json& d : devices.array())
    for (const auto& [key, value] : d.object()) {
      if (key == "name") {
        std::printf("%s\n", value.text_value().c_str());
        continue;
      }
      const bool is_bytes = key.ends_with("_bytes");
      std::printf("  %-12s %s\n", (is_bytes ? key.substr(0, key.size() - 6) : key).c_str(),
                  is_bytes          ? bytes_text(value.integer()).c_str()
                  : value.is_text() ? value.text_value().c_str()
                                    : value.text().c_str());
    }
  for (const LibraryStatus& l : device_libraries())
    std::printf("library %s %s\n", std::string(l.name).c_str(),
                l.failure.empty() ? cat(l.version, ", ", l.file).c_str() : l.failure.c_str());
  return exit_ok;
}

}  // namespace hone::cli
