// A plan loaded on devices: its programs and weights, ready for sessions. Immutable, shared between
// threads; holds no memory of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
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

class Executable {
 public:
  enum class Purpose : std::uint8_t { run, prepare };
  using Devices = std::vector<std::shared_ptr<Device>>;

  // Each device of a variant is matched with the first of `devices` that has its name and runs its
  // target best; each is used at most once. Throws UserError when no variant can be matched.
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

  // Variants that this machine runs, best target first, then in the plan's order. Of variants with
  // equal guards only the best is kept.
  const std::vector<std::uint32_t>& variants() const { return variants_; }
  // The device that was matched with device `i` of a variant.
  std::uint32_t device_of(const Variant& v, std::size_t i) const {
    return places_[static_cast<std::size_t>(&v - plan_->variants.data())][i];
  }
  // Total number of streams over all devices; each device has as many as a variant asks for.
  std::size_t streams() const { return stream_devices_.size(); }
  std::uint32_t stream_device(std::size_t stream) const { return stream_devices_[stream]; }
  std::size_t first_stream(std::size_t device) const { return first_stream_[device]; }

  // Entry of a kernel that a variant launches on the device.
  ProgramEntry entry(std::size_t device, std::uint32_t kernel) const {
    return entries_[device][kernel];
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

  // all_symbols() of the plan.
  const Dims& symbols() const { return symbols_; }

 private:
  Executable() = default;
  void choose_variants(const Devices&);
  void choose_for_run(const Devices&);
  void choose_for_prepare();
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
  std::vector<std::uint32_t> variants_;
  std::vector<std::vector<std::uint32_t>> places_;  // per variant of the plan: its devices
  std::vector<std::size_t> first_stream_;
  std::vector<std::uint32_t> stream_devices_;
  Dims symbols_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::vector<ProgramEntry>> entries_;
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
