#include "cli/run/memory.h"

#include <cstdio>

#include "base/process_memory.h"
#include "cli/run/table.h"
#include "runtime/memory_json.h"

namespace hone::cli {

Json memory_json(Runner& runner, std::span<const Array> inputs) {
  Session* session = runner.session();
  if (!session) return {};
  // The memory depends only on sizes; the run binds the data again.
  for (std::size_t i = 0; i < inputs.size(); ++i) session->bind_input(i, as_input(inputs[i]));
  return to_json(session->memory());
}

Json resident_json() {
  const Resident r = resident_memory();
  return Json::Object{{"rss", r.bytes}, {"peak_rss", r.peak}};
}

void tell_memory(const Json& memory) {
  if (memory.is_null()) return;
  std::printf("memory: %s at most:", bytes_text(memory.at("peak").integer()).c_str());
  const char* sign = " ";
  for (const char* part : {"weights", "prepared", "file", "plan", "code", "states", "arena",
                           "scratch", "staging", "steps", "library"}) {
    const std::int64_t bytes = memory.at(part).integer();
    if (bytes == 0) continue;
    std::printf("%s%s %s", sign, part, bytes_text(bytes).c_str());
    sign = " + ";
  }
  std::printf("\n");
  std::fflush(stdout);
}

void tell_resident(const Json& resident) {
  std::printf("resident: %s, at most %s\n", bytes_text(resident.at("rss").integer()).c_str(),
              bytes_text(resident.at("peak_rss").integer()).c_str());
}

}  // namespace hone::cli
