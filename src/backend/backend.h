// What a backend offers the compiler. One line in targets.cpp for each; there is no other
// registration. Its device half stands in devices.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/devices.h"
#include "codegen/target.h"

namespace hone {

struct Backend {
  std::string_view name;  // "cpu"
  // By instruction set: "native", "x86-64-v3", ...; throws UserError for another one.
  std::unique_ptr<Target> (*target)(std::string_view isa);
  // Ways to compute a group with the backend's library, none when it fits none. `library` names it.
  std::string_view library;
  std::vector<Candidate> (*library_candidates)(const GroupSpec&, const TargetInfo&);
  // The rates of this machine with so many threads, in a fraction of a second. Null: no machine.
  MachineRates (*measure)(int threads);
};

std::span<const Backend> backends();
// Throws UserError that lists the known ones.
const Backend& backend(std::string_view name);

}  // namespace hone
