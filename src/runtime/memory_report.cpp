#include "runtime/memory_report.h"

#include "base/error.h"
#include "base/machine.h"

namespace hone {

std::string memory_text(const MemoryReport& m) {
  std::string out;
  const auto add = [&](std::string_view part, std::size_t bytes) {
    if (bytes > 0) out += cat(out.empty() ? "" : " + ", part, " ", bytes);
  };
  add("weights", m.shared.weights);
  add("prepared weights", m.shared.prepared);
  add("file", m.shared.file);
  add("plan", m.shared.plan);
  add("code", m.shared.code);
  add("states", m.states);
  add("arena", m.arena);
  add("scratch", m.scratch);
  add("staging", m.staging);
  add("steps", m.steps);
  add("library", m.library);
  return out;
}

std::int64_t default_memory_limit() {
  static const std::int64_t limit = usable_memory() / 5 * 4;
  return limit;
}

}  // namespace hone
