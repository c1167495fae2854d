// A plan loaded on a device: its programs and weights, ready for sessions. Immutable, shared
// between threads; holds no memory of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"

namespace hone {

// Bytes that all sessions of an executable share.
struct SharedMemory {
  std::size_t weights = 0, prepared = 0;  // that runs read; each content counts once
  std::size_t file = 0;                   // the rest of the mapped plan file
  std::size_t plan = 0;                   // the plan's own data structures
  std::size_t code = 0;                   // loaded machine code
  std::size_t reading = 0;                // transient, while the plan file was read

  std::size_t total() const { return weights + prepared + file + plan + code; }
  // The most at once, before there was a session.
  std::size_t peak() const {
    const std::size_t read = weights + prepared + file + plan + reading;
    return read > total() ? read : total();
  }
};

class Executable {
 public:
  enum class Purpose : std::uint8_t { run, prepare };

  // Throws UserError when the machine has the target of none of the plan's variants. To prepare,
  // the variants are loaded whose prepared buffers are not all there, and what their prepare steps
  // write gets memory.
  static std::shared_ptr<const Executable> load(std::shared_ptr<const Plan>,
                                                std::shared_ptr<Device>, Purpose = Purpose::run);
  // Reads a plan file.
  static std::shared_ptr<const Executable> open(const std::filesystem::path&,
                                                std::shared_ptr<Device>);

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  const std::vector<Step>& steps(const Variant& v) const {
    return purpose_ == Purpose::run ? v.steps : v.prepare;
  }

  // Variants that this machine runs, best target first, else in the plan's order; of variants with
  // equal guards only the best.
  const std::vector<std::uint32_t>& variants() const { return variants_; }
  // Of a kernel that one of these variants launches.
  ProgramEntry entry(std::uint32_t kernel) const { return entries_[kernel]; }
  // Aligned bytes; copied only when the plan's own are not aligned.
  std::span<const std::byte> weight(std::uint32_t i) const { return weights_[i]; }
  std::span<const std::byte> prepared(std::uint32_t i) const { return prepared_[i]; }
  // What was made to be written by prepare steps, else null.
  const std::shared_ptr<OwnedMemory>& prepared_memory(std::uint32_t i) const { return made_[i]; }
  const SharedMemory& memory() const { return memory_; }

  // all_symbols() of the plan.
  const Dims& symbols() const { return symbols_; }

 private:
  Executable() = default;
  void choose_variants();
  void choose_for_run();
  void choose_for_prepare();
  void load_programs();
  void place_constants();
  std::span<const std::byte> aligned(std::span<const std::byte>);
  std::span<const std::byte> make_prepared(std::uint32_t i);
  void measure();

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Device> device_;
  Purpose purpose_ = Purpose::run;
  std::vector<std::uint32_t> variants_;
  Dims symbols_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<ProgramEntry> entries_;
  std::vector<std::span<const std::byte>> weights_, prepared_;
  std::vector<std::shared_ptr<OwnedMemory>> made_;
  std::vector<OwnedMemory> copies_;
  SharedMemory memory_;
};

// Calls f for every step, those in bodies included.
template <class F>
void for_each_step(const std::vector<Step>& steps, const F& f) {
  for (const Step& s : steps) {
    f(s);
    for_each_step(s.body, f);
    for_each_step(s.otherwise, f);
  }
}

}  // namespace hone
