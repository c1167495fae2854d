// The devices of this build by name, without the compiler's half of their backends. What a device
// is stands in runtime/device.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executable.h"
#include "runtime/library_status.h"

namespace hone {

struct NamedDevice {
  std::string name;
  // Throws UserError when the machine has none.
  std::function<std::shared_ptr<Device>()> open;
  // What it may use, opened now if it was not. Null: nothing.
  std::function<std::vector<LibraryStatus>()> libraries = nullptr;
  std::size_t count = 1;  // how many there are; each open() may give another one
};

// A device that is in the lists of this process for as long as this lives: for programs with
// devices of their own, and for tests.
class AddedDevice {
 public:
  explicit AddedDevice(NamedDevice);
  ~AddedDevice();
  AddedDevice(const AddedDevice&) = delete;
  AddedDevice& operator=(const AddedDevice&) = delete;

 private:
  std::string name_;
};

// The one that is used where none is asked for comes first.
std::vector<std::string> device_names();
// Throws UserError when there is none of that name, or the machine has none.
std::shared_ptr<Device> open_device(std::string_view name);
std::shared_ptr<Device> open_default_device();
// How many devices of that name there are; 0 for another name.
std::size_t device_count(std::string_view name);
// As many of each as a variant of the plan names, and that this machine has.
Executable::Devices open_devices(const Plan&);

// Opens every library that a device of this build may use.
std::vector<LibraryStatus> device_libraries();

}  // namespace hone
