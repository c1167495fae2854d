#include "backend/devices/devices.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "backend/cpu/device/cpu_device.h"
#include "base/error.h"

namespace hone {

namespace {

// One line for each backend; the first is the default.
std::vector<NamedDevice> built_in() { return {{"cpu", open_cpu_device, cpu_device_libraries}}; }

struct DeviceList {
  std::mutex mutex;
  std::vector<NamedDevice> all = built_in();
};

DeviceList& list() {
  static DeviceList it;
  return it;
}

std::vector<NamedDevice> listed() {
  const std::scoped_lock lock(list().mutex);
  return list().all;
}

}  // namespace

AddedDevice::AddedDevice(NamedDevice device) : name_(device.name) {
  const std::scoped_lock lock(list().mutex);
  if (std::ranges::count(list().all, name_, &NamedDevice::name) > 0)
    throw UserError("device '", name_, "' is in the list already");
  list().all.push_back(std::move(device));
}

AddedDevice::~AddedDevice() {
  const std::scoped_lock lock(list().mutex);
  std::erase_if(list().all, [&](const NamedDevice& d) { return d.name == name_; });
}

std::vector<std::string> device_names() {
  std::vector<std::string> out;
  for (const NamedDevice& d : listed()) out.push_back(d.name);
  return out;
}

std::shared_ptr<Device> open_device(std::string_view name) {
  std::string known;
  for (const NamedDevice& d : listed()) {
    if (d.name == name) return d.open();
    known += cat(known.empty() ? "" : ", ", d.name);
  }
  throw UserError("device '", name, "' is not in this build; there are: ", known);
}

std::shared_ptr<Device> open_default_device() { return listed().front().open(); }

std::size_t device_count(std::string_view name) {
  for (const NamedDevice& d : listed())
    if (d.name == name) return d.count;
  return 0;
}

Executable::Devices open_devices(const Plan& plan) {
  std::map<std::string, std::size_t> wanted;
  for (const Variant& v : plan.variants) {
    std::map<std::string, std::size_t> of_variant;
    for (const PlanDevice& d : v.devices)
      ++of_variant[d.name.empty() ? listed().front().name : d.name];
    for (const auto& [name, count] : of_variant) wanted[name] = std::max(wanted[name], count);
  }
  if (wanted.empty()) return {open_default_device()};
  Executable::Devices out;
  std::string missing;
  for (const NamedDevice& d : listed()) try {
      for (std::size_t i = 0; i < wanted[d.name]; ++i) out.push_back(d.open());
      wanted.erase(d.name);
    } catch (const UserError& e) {
      missing += cat("; ", d.name, ": ", e.what());
    }
  if (!out.empty()) return out;
  for (const auto& [name, count] : wanted)
    if (count > 0) missing += cat("; it needs device '", name, "'");
  throw UserError(plan.name, ": this build and machine have none of the plan's devices", missing);
}

std::vector<LibraryStatus> device_libraries() {
  std::vector<LibraryStatus> out;
  for (const NamedDevice& d : listed())
    if (d.libraries)
      for (LibraryStatus& l : d.libraries()) out.push_back(std::move(l));
  return out;
}

}  // namespace hone
