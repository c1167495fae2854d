// What a backend offers the compiler. One line in targets.cpp for each; there is no other
// registration. Its device half stands in devices.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/devices/devices.h"
#include "codegen/target.h"

namespace hone {

struct Backend {
  std::string_view name;  // "cpu"; a strategy: kernels alone
  // By one of target_names, of which the first is what fits this machine; throws UserError for
  // another one.
  std::unique_ptr<Target> (*target)(std::string_view name);
  std::span<const std::string_view> target_names;
  // Whose functions its target's candidates may call. Each is a strategy: the library wherever it
  // can.
  std::span<const std::string_view> libraries;
  // The rates of this machine with so many threads, in a fraction of a second. Null: no machine.
  MachineRates (*measure)(int threads);
};

// Of this build, and what was added.
std::vector<const Backend*> backends();
// The first one that has a device here: what is used where nothing else is asked for.
const Backend& default_backend();
bool has_device(const Backend&);
// Throws UserError that lists the known ones.
const Backend& backend(std::string_view name);

// A backend that is in the list of this process for as long as this lives, as AddedDevice is for
// its other half. The backend must live longer.
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
