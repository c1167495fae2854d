#include <algorithm>
#include <mutex>

#include "backend/backend.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/target/measure.h"
#include "backend/cuda/target/cuda_target.h"
#include "backend/vulkan/target/vulkan_target.h"
#include "base/error.h"

namespace hone {

namespace {

// The default backend is the first that has a device.
constexpr Backend built_in[] = {
#ifdef HONE_CUDA
    {"cuda", cuda::make_target, cuda::target_names, cuda::library_names, nullptr},
#endif
    {"cpu", cpu::make_target, cpu::target_names, cpu::library_names, cpu::measure_rates},
#ifdef HONE_VULKAN
    {"vulkan", vulkan::make_target, vulkan::target_names, {}, nullptr},
#endif
};

struct BackendList {
  std::mutex mutex;
  std::vector<const Backend*> all;

  BackendList() {
    for (const Backend& b : built_in) all.push_back(&b);
  }
};

BackendList& list() {
  static BackendList it;
  return it;
}

}  // namespace

AddedBackend::AddedBackend(const Backend& b) : backend_(b) {
  const std::scoped_lock lock(list().mutex);
  for (const Backend* known : list().all)
    if (known->name == b.name) throw UserError("backend '", b.name, "' is already registered");
  list().all.push_back(&b);
}

AddedBackend::~AddedBackend() {
  const std::scoped_lock lock(list().mutex);
  std::erase(list().all, &backend_);
}

std::vector<const Backend*> backends() {
  const std::scoped_lock lock(list().mutex);
  return list().all;
}

bool has_device(const Backend& b) { return device_count(b.name) > 0; }

bool runs_here(const Backend& b, std::string_view target) {
  return has_device(b) && open_device(b.name)->rank(b.target(target)->info().name) >= 0;
}

const Backend& default_backend() {
  for (const Backend* b : backends())
    if (has_device(*b)) return *b;
  throw InternalError("no backend of this build has a device");
}

const Backend& backend(std::string_view name) {
  std::string known;
  for (const Backend* b : backends()) {
    if (b->name == name) return *b;
    known += cat(known.empty() ? "" : ", ", b->name);
  }
  throw UserError("backend '", name, "' is not in this build, expected one of ", known);
}

}  // namespace hone
