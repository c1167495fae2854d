#include "runtime/memory_json.h"

namespace hone {

Json to_json(const MemoryReport& m) {
  return Json::Object{{"peak", m.peak()},
                      {"weights", m.shared.weights},
                      {"prepared", m.shared.prepared},
                      {"file", m.shared.file},
                      {"plan", m.shared.plan},
                      {"code", m.shared.code},
                      {"arena", m.arena},
                      {"scratch", m.scratch},
                      {"staging", m.staging},
                      {"steps", m.steps},
                      {"library", m.library},
                      {"arena_lower_bound", m.arena_lower_bound},
                      {"reading", m.shared.reading}};
}

}  // namespace hone
