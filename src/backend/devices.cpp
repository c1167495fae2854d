#include "backend/devices.h"

#include <array>
#include <string>

#include "backend/cpu/device/cpu_device.h"
#include "base/error.h"

namespace hone {

namespace {

struct NamedDevice {
  std::string_view name;
  std::shared_ptr<Device> (*open)();
  std::vector<LibraryStatus> (*libraries)();
};

// One line for each backend.
constexpr NamedDevice device_list[] = {
    {"cpu", open_cpu_device, cpu_device_libraries},
};

}  // namespace

std::span<const std::string_view> device_names() {
  static constexpr auto names = [] {
    std::array<std::string_view, std::size(device_list)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = device_list[i].name;
    return all;
  }();
  return names;
}

std::shared_ptr<Device> open_device(std::string_view name) {
  for (const NamedDevice& d : device_list)
    if (d.name == name) return d.open();
  std::string known;
  for (std::string_view d : device_names()) known += (known.empty() ? "" : ", ") + std::string(d);
  throw UserError("device '", name, "': is not known; there is ", known);
}

std::vector<LibraryStatus> device_libraries() {
  std::vector<LibraryStatus> out;
  for (const NamedDevice& d : device_list)
    for (LibraryStatus& l : d.libraries()) out.push_back(std::move(l));
  return out;
}

}  // namespace hone
