// What a session keeps for the last few sets of sizes: bound steps and their needs. Knows the sizes
// and types of inputs and outputs, not their contents.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/bound.h"
#include "runtime/executable.h"
#include "runtime/ports.h"

namespace hone {

// Everything kept for one set of sizes.
struct Ready {
  std::vector<std::int64_t> values;
  std::uint32_t variant = 0;
  BoundProgram program;
  std::vector<OutputNeed> outputs;
  // The operands' addresses are computed from these.
  struct Placement {
    std::uint64_t number = 0;
    std::vector<DeviceMemory> arenas, ports;
    std::uint64_t last_use = 0;
  };
  std::array<Placement, most_placements> placements;  // of the last runs
  std::uint64_t uses = 0;                             // of `placements`
  std::vector<std::size_t> used;  // places of inputs and outputs (see Ports) that steps use
  std::uint64_t last_use = 0;
  bool is_allowed = false;  // fits the memory limit

  std::size_t bytes() const;
};

class ReadyCache {
 public:
  // Keeps up to `most` sets of sizes, at least one.
  ReadyCache(const Executable&, const LoadedEntry&, std::size_t most);

  // For the bound inputs. Throws UserError when their sizes contradict each other or no variant
  // serves them.
  Ready& at(const Ports&);
  const std::vector<std::unique_ptr<Ready>>& all() const { return kept_; }
  void clear() { kept_.clear(); }
  std::int64_t binds() const { return binds_; }  // sets of sizes that were evaluated

 private:
  std::int64_t value(const Dim&) const;
  void match_sizes(const Ports&);
  void match_symbol(const Ports&, std::size_t symbol, std::size_t input, std::size_t axis);
  std::string sizes_text() const;
  std::uint32_t choose_variant() const;
  std::unique_ptr<Ready> make(const Ports&) const;
  void audit_steps(const Variant&) const;
  OutputNeed output_need(const Variant&, std::size_t output) const;
  void note_places(const Ports&, const Variant&, Ready&) const;

  const Executable& executable_;
  const LoadedEntry& loaded_;
  const PlanEntry& entry_;
  std::size_t most_;
  std::vector<std::int64_t> values_;      // of loaded_.symbols
  std::vector<std::size_t> value_input_;  // the input that determined it
  std::vector<std::unique_ptr<Ready>> kept_;
  std::uint64_t uses_ = 0;
  std::int64_t binds_ = 0;
};

}  // namespace hone
