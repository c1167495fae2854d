// What a backend offers the compiler. Each backend has one line in targets.cpp; there is no other
// registration. The device half is in devices.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/devices/devices.h"
#include "codegen/target.h"

namespace hone {

struct Backend {
  std::string_view name;  // "cpu"; as a strategy: kernels only
  // Takes one of target_names, the first of which fits this machine; throws UserError for other
  // names.
  std::unique_ptr<Target> (*target)(std::string_view name);
  std::span<const std::string_view> target_names;
  // Libraries that the target's candidates may call. Each is also a strategy: use the library
  // wherever possible.
  std::span<const std::string_view> libraries;
  // Measures the rates of this machine with that many threads, in a fraction of a second. Null: no
  // machine.
  MachineRates (*measure)(int threads);
};

// The backends of this build and the added ones.
std::vector<const Backend*> backends();
// The default: the first backend that has a device on this machine.
const Backend& default_backend();
bool has_device(const Backend&);
// Whether this machine's device runs code for one of the backend's targets.
bool runs_here(const Backend&, std::string_view target);
// Throws UserError listing the known backends.
const Backend& backend(std::string_view name);

// Adds a backend to the list of this process while this object lives, as AddedDevice does for the
// device half. The backend must outlive it.
class AddedBackend {
 public:
  explicit AddedBackend(const Backend&);
  ~AddedBackend();
  AddedBackend(const AddedBackend&) = delete;
  AddedBackend& operator=(const AddedBackend&) = delete;

 private:
  const Backend& backend_;
};

}  // namespace hone
