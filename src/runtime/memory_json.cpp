#include "runtime/memory_json.h"

namespace hone {

Json to_json(const MemoryReport& m) {
  Json::Array devices;
  for (const DeviceUse& d : m.devices)
    devices.push_back(Json::Object{{"name", d.name},
                                   {"arena", d.arena},
                                   {"arena_lower_bound", d.arena_lower_bound},
                                   {"scratch", d.scratch},
                                   {"staging", d.staging}});
  return Json::Object{{"peak", m.peak()},
                      {"weights", m.shared.weights},
                      {"prepared", m.shared.prepared},
                      {"file", m.shared.file},
                      {"plan", m.shared.plan},
                      {"code", m.shared.code},
                      {"states", m.states},
                      {"arena", m.arena},
                      {"scratch", m.scratch},
                      {"staging", m.staging},
                      {"steps", m.steps},
                      {"library", m.library},
                      {"arena_lower_bound", m.arena_lower_bound},
                      {"reading", m.shared.reading},
                      {"devices", std::move(devices)}};
}

}  // namespace hone
