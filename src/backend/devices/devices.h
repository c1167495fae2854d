// The devices of this build by name, without the compiler half of their backends. runtime/device.h
// defines a device.
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
  // Libraries that it may use; opens them if necessary. Null: none.
  std::function<std::vector<LibraryStatus>()> libraries = nullptr;
  std::size_t count = 1;  // number of devices; each open() may return another one
};

// Adds a device to the lists of this process while this object lives: for programs with their own
// devices, and for tests.
class AddedDevice {
 public:
  explicit AddedDevice(NamedDevice);
  ~AddedDevice();
  AddedDevice(const AddedDevice&) = delete;
  AddedDevice& operator=(const AddedDevice&) = delete;

 private:
  std::string name_;
};

// The default device comes first.
std::vector<std::string> device_names();
// Throws UserError for an unknown name, or if the machine has no such device.
std::shared_ptr<Device> open_device(std::string_view name);
std::shared_ptr<Device> open_default_device();
// How many devices of that name there are; 0 for another name.
std::size_t device_count(std::string_view name);
// As many devices of each name as a variant of the plan names, limited to those of this machine.
Executable::Devices open_devices(const Plan&);

// The status of every library that a device of this build may use; opens them.
std::vector<LibraryStatus> device_libraries();

}  // namespace hone
