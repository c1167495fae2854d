#include "compile/options.h"

#include <algorithm>

#include "backend/backend.h"
#include "base/error.h"

namespace hone {

namespace {

// The backend with this name or library; null for strategies of all backends. Does not query the
// devices of others, because that may open a driver.
const Backend* backend_named(std::string_view strategy) {
  for (const Backend* b : backends())
    if ((b->name == strategy || std::ranges::count(b->libraries, strategy) > 0) && has_device(*b))
      return b;
  return nullptr;
}

std::string absence_of_multi() {
  std::size_t devices = 0;
  for (const Backend* b : backends()) devices += device_count(b->name);
  return devices < 2 ? cat("needs at least two devices, and here is ", devices) : "";
}

}  // namespace

std::vector<std::string_view> strategies() {
  std::vector<std::string_view> out = {"ref"};
  for (const Backend* b : backends()) {
    if (!has_device(*b)) continue;
    out.push_back(b->name);
    out.insert(out.end(), b->libraries.begin(), b->libraries.end());
  }
  out.insert(out.end(), {"multi", "auto"});
  return out;
}

std::string absence_of(std::string_view strategy) {
  if (strategy == "multi") return absence_of_multi();
  for (const Backend* b : backends())
    if ((b->name == strategy || std::ranges::count(b->libraries, strategy) > 0) && !has_device(*b))
      try {
        open_device(b->name);
      } catch (const UserError& e) {
        return cat("has no device here: ", e.what());
      }
  return "";
}

bool can_compile(std::string_view strategy) {
  return strategy == "multi" || strategy == "auto" || backend_named(strategy);
}

bool names_library(std::string_view strategy) {
  return std::ranges::any_of(
      backends(), [&](const Backend* b) { return std::ranges::count(b->libraries, strategy) > 0; });
}

const Backend& backend_of(const CompileOptions& options) {
  if (options.backend) return *options.backend;
  const Backend* named = backend_named(options.strategy);
  return named ? *named : default_backend();
}

std::shared_ptr<Device> device_of(const CompileOptions& options) {
  return open_device(backend_of(options).name);
}

}  // namespace hone
