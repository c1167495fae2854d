#include "backend/devices/devices.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "backend/cpu/device/cpu_device.h"
#include "backend/cuda/device/cuda_device.h"
#include "backend/vulkan/device/vulkan_device.h"
#include "base/error.h"

namespace hone {

namespace {

struct ListedDevice {
  NamedDevice device;
  // Null: use device.count. It may open a driver, so it is only called when the number matters.
  std::size_t (*count)() = nullptr;

  std::size_t how_many() const { return count ? count() : device.count; }
};

// One line for each backend; the first is the default.
std::vector<ListedDevice> built_in() {
  return {
      {{"cpu", open_cpu_device, cpu_device_libraries}},
#ifdef HONE_CUDA
      {{"cuda", open_cuda_device, cuda_device_libraries}, cuda_device_count},
#endif
#ifdef HONE_VULKAN
      {{"vulkan", vulkan::open_device, vulkan::device_libraries}, vulkan::device_count},
#endif
  };
}

struct DeviceList {
  std::mutex mutex;
  std::vector<ListedDevice> all = built_in();
};

DeviceList& list() {
  static DeviceList it;
  return it;
}

std::vector<ListedDevice> listed() {
  const std::scoped_lock lock(list().mutex);
  return list().all;
}

}  // namespace

AddedDevice::AddedDevice(NamedDevice device) : name_(device.name) {
  const std::scoped_lock lock(list().mutex);
  for (const ListedDevice& d : list().all)
    if (d.device.name == name_) throw UserError("device '", name_, "' is already registered");
  list().all.push_back({std::move(device)});
}

AddedDevice::~AddedDevice() {
  const std::scoped_lock lock(list().mutex);
  std::erase_if(list().all, [&](const ListedDevice& d) { return d.device.name == name_; });
}

std::vector<std::string> device_names() {
  std::vector<std::string> out;
  for (const ListedDevice& d : listed())
    if (d.how_many() > 0) out.push_back(d.device.name);
  return out;
}

std::shared_ptr<Device> open_device(std::string_view name) {
  std::string known;
  for (const ListedDevice& d : listed()) {
    if (d.device.name == name) return d.device.open();
    known += cat(known.empty() ? "" : ", ", d.device.name);
  }
  throw UserError("device '", name, "' is not in this build, expected one of ", known);
}

std::shared_ptr<Device> open_default_device() { return listed().front().device.open(); }

std::size_t device_count(std::string_view name) {
  for (const ListedDevice& d : listed())
    if (d.device.name == name) return d.how_many();
  return 0;
}

Executable::Devices open_devices(const Plan& plan) {
  std::map<std::string, std::size_t> wanted;
  for (const Variant& v : plan.main().variants) {
    std::map<std::string, std::size_t> of_variant;
    for (const PlanDevice& d : v.devices)
      ++of_variant[d.name.empty() ? listed().front().device.name : d.name];
    for (const auto& [name, count] : of_variant) wanted[name] = std::max(wanted[name], count);
  }
  if (wanted.empty()) return {open_default_device()};
  Executable::Devices out;
  std::string missing;
  for (const ListedDevice& d : listed()) try {
      for (std::size_t i = 0; i < wanted[d.device.name]; ++i) out.push_back(d.device.open());
      wanted.erase(d.device.name);
    } catch (const UserError& e) {
      missing += cat("; ", d.device.name, ": ", e.what());
    }
  if (!out.empty()) return out;
  for (const auto& [name, count] : wanted)
    if (count > 0) missing += cat("; it needs device '", name, "'");
  throw UserError(plan.name, ": this build and machine have none of the plan's devices", missing);
}

std::vector<LibraryStatus> device_libraries() {
  std::vector<LibraryStatus> out;
  for (const ListedDevice& d : listed())
    if (d.device.libraries)
      for (LibraryStatus& l : d.device.libraries()) out.push_back(std::move(l));
  return out;
}

}  // namespace hone
