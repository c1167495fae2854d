// A plan loaded on devices: its programs and weights, ready for sessions. Immutable, shared between
// threads; holds no memory of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"

namespace hone {

// Bytes that all sessions of an executable share, on all its devices.
struct SharedMemory {
  // Constants that runs read: each content counts once, plus each copy on a device.
  std::size_t weights = 0, prepared = 0;
  std::size_t file = 0;     // the rest of the mapped plan file
  std::size_t plan = 0;     // the plan's own data structures
  std::size_t code = 0;     // loaded machine code
  std::size_t reading = 0;  // transient, while the plan file was read

  std::size_t total() const { return weights + prepared + file + plan + code; }
  // The most in use at the same time, before the first session.
  std::size_t peak() const {
    const std::size_t read = weights + prepared + file + plan + reading;
    return read > total() ? read : total();
  }
};

// Constant data as a device reads it.
struct DeviceBytes {
  DeviceMemory at;
  std::size_t size = 0;
};

// An entry of a plan as this machine runs it.
struct LoadedEntry {
  const PlanEntry* plan = nullptr;
  // Variants that this machine runs, best target first, then in the entry's order. Of variants with
  // equal guards only the best is kept.
  std::vector<std::uint32_t> variants;
  // Per variant of the entry: the devices of the executable that its own were matched with.
  std::vector<std::vector<std::uint32_t>> places;
  Dims symbols;  // all_symbols()
};

class Executable {
 public:
  enum class Purpose : std::uint8_t { run, prepare };
  using Devices = std::vector<std::shared_ptr<Device>>;

  // Each device of a variant is matched with the first of `devices` that has its name and runs its
  // target best; each is used at most once. Throws UserError when no variant of an entry can be
  // matched.
  // Purpose::prepare loads the matched variants that have prepared buffers without data, and
  // allocates memory for what their prepare steps write. Purpose::run needs all prepared data;
  // load_plan() in runtime/prepare.h ensures that.
  static std::shared_ptr<const Executable> load(std::shared_ptr<const Plan>, Devices,
                                                Purpose = Purpose::run);
  static std::shared_ptr<const Executable> load(std::shared_ptr<const Plan>,
                                                std::shared_ptr<Device>, Purpose = Purpose::run);
  // Reads a plan file.
  static std::shared_ptr<const Executable> open(const std::filesystem::path&,
                                                std::shared_ptr<Device>);

  const Plan& plan() const { return *plan_; }
  Purpose purpose() const { return purpose_; }
  const std::vector<Step>& steps(const Variant& v) const {
    return purpose_ == Purpose::run ? v.steps : v.prepare;
  }

  // The devices that its variants use; device numbers below are indices into this list.
  const Devices& devices() const { return devices_; }
  const std::shared_ptr<Device>& device(std::size_t i = 0) const { return devices_[i]; }

  // Of the plan's entries, in their order.
  const std::vector<LoadedEntry>& entries() const { return entries_; }
  const LoadedEntry& main() const { return entries_.front(); }
  // By name; empty: the only one. Throws UserError that lists the plan's entries.
  const LoadedEntry& entry(std::string_view name) const;
  // The entry of a variant of the plan.
  const LoadedEntry& entry_of(const Variant&) const;
  // The device that was matched with device `i` of a variant.
  std::uint32_t device_of(const Variant& v, std::size_t i) const {
    const LoadedEntry& e = entry_of(v);
    return e.places[static_cast<std::size_t>(&v - e.plan->variants.data())][i];
  }
  // Total number of streams over all devices; each device has as many as a variant asks for.
  std::size_t streams() const { return stream_devices_.size(); }
  std::uint32_t stream_device(std::size_t stream) const { return stream_devices_[stream]; }
  std::size_t first_stream(std::size_t device) const { return first_stream_[device]; }

  // Entry of a kernel that a variant launches on the device.
  KernelHandle entry(std::size_t device, std::uint32_t kernel) const {
    return kernels_[device][kernel];
  }
  // Data of weights and prepared buffers that a variant uses on the device.
  const DeviceBytes& weight(std::size_t device, std::uint32_t i) const {
    return weights_[device][i];
  }
  const DeviceBytes& prepared(std::size_t device, std::uint32_t i) const {
    return prepared_[device][i];
  }
  // Memory that was allocated for prepare steps to write, and its device; else null.
  struct Made {
    std::shared_ptr<OwnedMemory> memory;
    std::uint32_t device = 0;
  };
  const Made& made(std::uint32_t prepared) const { return made_[prepared]; }
  const SharedMemory& memory() const { return memory_; }

 private:
  Executable() = default;
  void choose_variants(const Devices&);
  void choose_for_run(LoadedEntry&, const Devices&) const;
  void choose_for_prepare(LoadedEntry&) const;
  // Calls f(variant) for the chosen variants of all entries.
  template <class F>
  void for_each_variant(const F& f) const {
    for (const LoadedEntry& e : entries_)
      for (std::uint32_t v : e.variants) f(e.plan->variants[v]);
  }
  void take_devices(const Devices&);
  void place_streams();
  void load_programs();
  void place_constants();
  void place_constant(const Variant&, const PlanBuffer&, bool is_written);
  DeviceBytes on_device(std::uint32_t device, std::span<const std::byte>);
  void upload();
  DeviceBytes make_prepared(std::uint32_t device, std::uint32_t i);
  void measure();

  std::shared_ptr<const Plan> plan_;
  Devices devices_;
  Purpose purpose_ = Purpose::run;
  std::vector<LoadedEntry> entries_;
  std::vector<std::size_t> first_stream_;
  std::vector<std::uint32_t> stream_devices_;
  std::vector<std::unique_ptr<LoadedCode>> programs_;
  std::vector<std::vector<KernelHandle>> kernels_;
  std::vector<std::vector<DeviceBytes>> weights_, prepared_;
  std::vector<Made> made_;
  std::vector<OwnedMemory> copies_;
  struct Upload {
    std::uint32_t device;
    DeviceMemory to;
    std::span<const std::byte> from;
  };
  std::vector<Upload> uploads_;    // still to be done by place_constants()
  std::vector<Storage> contents_;  // of prepared buffers; being uploaded, or read in place
  std::vector<std::shared_ptr<const ResidentBytes>> residents_;  // used in place
  SharedMemory memory_;
};

}  // namespace hone
