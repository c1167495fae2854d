// Makes one candidate of one group runnable on its own, to check it against the reference and to
// time it beside others.
#pragma once

#include <memory>
#include <vector>

#include "codegen/kernel_code.h"
#include "kernel/kernel.h"
#include "runtime/session.h"
#include "verify/kernel/trial_memory.h"
#include "verify/sample.h"

namespace hone {

class Trial {
 public:
  // For checks, parameters are views that end at an unreadable page and are aligned to the element
  // size only, and results end there as closely as the device's alignment allows. Memory for timing
  // is aligned as in a plan.
  enum class Use : std::uint8_t { check, time };

  // Compiles the candidate's kernels and runs its prepare steps on made-up weights.
  Trial(const GroupSpec&, const Candidate&, KernelCode&, const std::shared_ptr<TrialMemory>&,
        const std::shared_ptr<ThreadPool>&, const Sizing&, Fill, std::uint64_t seed, Use);
  ~Trial();

  // As inputs(), but with axes in the usual order: made-up numbers, finite for weights and filters.
  static std::vector<Array> sample_inputs(const GroupSpec&, const Sizing&, Fill,
                                          std::uint64_t seed);

  // Runs the prepare steps again, on the same weights.
  void prepare();
  // Does the preparation of the first run; throws UserError when a library refuses.
  void bind() { static_cast<void>(session_->memory()); }
  // With Use::check, throws UserError when a kernel faults. For timing, a device with its own
  // memory copies parameters there once, and results stay there.
  void run();
  // Puts other numbers into the parameters that are not weights or filters, and resets the results
  // to their state before the first run.
  void refill(Fill, std::uint64_t seed, std::int64_t draw = 0);
  // How often refill() must draw extreme numbers so that each operand held all of them.
  std::int64_t extreme_draws() const;
  bool has_mask() const { return has_mask_; }
  // Dense results of the last run; results that are already dense are not copied and change with
  // the next run.
  std::vector<Array> results() const;
  // Throws UserError when runs wrote outside of result elements and their own work memory: to a
  // parameter, between the elements of a result or beyond an end of either.
  void check_untouched() const;
  // Whether this element of a result still has the bytes from before the first run.
  static bool is_unwritten(const Array&, std::int64_t element);
  // The parameters as dense arrays, for the reference. Weights may have their axes in memory order:
  // large ones are then made only once.
  const std::vector<Array>& inputs() const { return inputs_; }
  // The group's function on inputs(), with numbers as sizes.
  Function of_inputs(const Function&) const;

  struct Place;

 private:
  class Fenced;
  struct Operand;
  void allocate(Operand&) const;
  Array fill_operand(Operand&, Fill, std::uint64_t seed, std::int64_t draw) const;
  Operand& add_operand(const Type&, const Dims& strides, bool is_result);
  Array add_weight(const Place&, std::uint64_t seed);

  const GroupSpec& spec_;
  const Sizing& sizes_;
  Use use_;
  std::shared_ptr<Device> device_;
  std::size_t alignment_;  // where operands end
  std::shared_ptr<ThreadPool> pool_;
  Plan plan_;                              // without prepared data
  std::shared_ptr<Fenced> memory_, host_;  // of the device, and of operands
  std::vector<Array> inputs_;              // dense
  bool has_mask_ = false;
  // What the session reads and writes: parameters except weights, then results.
  std::vector<std::unique_ptr<Operand>> operands_;
  std::unique_ptr<Session> session_;
};

}  // namespace hone
