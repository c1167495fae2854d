#include "api/hone.h"

#include "backend/devices/devices.h"
#include "runtime/prepare.h"

namespace hone {

Source source(const Function& f, std::string name) { return {std::move(name), {{{}, f}}, {}}; }

Source source(const Imported& imported) {
  Source out;
  out.name = imported.name;
  for (const ImportedVariant& v : imported.variants) {
    SourceVariant variant{{}, v.function};
    for (const Assumption& a : v.assumptions)
      variant.guards.push_back({Guard::Kind::equal, a.condition, Dim(a.holds ? 1 : 0)});
    out.variants.push_back(std::move(variant));
  }
  return out;
}

std::unique_ptr<Session> open_session(const Plan& plan, SessionOptions options) {
  const Executable::Devices devices = open_devices(plan);
  return std::make_unique<Session>(
      Executable::load(with_prepared(std::make_shared<const Plan>(plan), devices), devices),
      std::move(options));
}

}  // namespace hone
