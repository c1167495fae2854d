// One candidate of one group, made runnable on its own: to check it against the reference and to
// time it beside the others.
#pragma once

#include <memory>
#include <vector>

#include "codegen/kernel_code.h"
#include "kernel/kernel.h"
#include "runtime/session.h"
#include "verify/sample.h"
#include "verify/trial_memory.h"

namespace hone {

class Trial {
 public:
  // Memory that is checked ends where no page is, at addresses that are multiples of an element's
  // size and of no more; memory for timing lies as a plan's does.
  enum class Use : std::uint8_t { check, time };

  // Compiles the candidate's kernels, runs its prepare steps on made-up weights.
  Trial(const GroupSpec&, const Candidate&, KernelCode&, const std::shared_ptr<TrialMemory>&,
        const std::shared_ptr<ThreadPool>&, const Sizing&, Fill, std::uint64_t seed, Use);
  ~Trial();

  // What inputs() would be, without other orders of axes: made-up numbers, finite ones where a
  // weight or a filter is.
  static std::vector<Array> sample_inputs(const GroupSpec&, const Sizing&, Fill,
                                          std::uint64_t seed);

  // Runs the prepare steps again, on the same weights.
  void prepare();
  // Makes ready what the first run would; throws UserError when a library refuses.
  void bind() { static_cast<void>(session_->memory()); }
  // Throws UserError when a kernel faults, if its memory is checked. For timing, a device that has
  // its own memory copies parameters there once, and results stay there.
  void run();
  // Other numbers in the parameters that are no weights or filters; results are as if nothing had
  // run.
  void refill(Fill, std::uint64_t seed);
  // Dense results of the last run; those that lie densely are not copied and change with the next.
  std::vector<Array> results() const;
  // Throws UserError when runs wrote anywhere but to the elements of results and to memory that
  // they were given for it: to a parameter, between the elements of a result or beyond an end of
  // either.
  void check_untouched() const;
  // Of a result: its bytes are those that were there before the first run.
  static bool is_unwritten(const Array&, std::int64_t element);
  // The parameters as dense arrays, for the reference. Those of weights may have the axes in the
  // order in which they lie in memory: large ones are then made once.
  const std::vector<Array>& inputs() const { return inputs_; }
  // The group's function, with sizes as numbers, of inputs().
  Function of_inputs(const Function&) const;

  struct Place;

 private:
  class Fenced;
  struct Operand;
  Operand& add_operand(const Type&, const Dims& strides, bool is_result);
  Array add_weight(const Place&, std::uint64_t seed);

  const GroupSpec& spec_;
  const Sizing& sizes_;
  Use use_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<ThreadPool> pool_;
  Plan plan_;                              // with nothing prepared
  std::shared_ptr<Fenced> memory_, host_;  // of the device, and of operands
  std::vector<Array> inputs_;              // dense
  // What the session reads and writes: parameters that are no weights, then results.
  std::vector<std::unique_ptr<Operand>> operands_;
  std::unique_ptr<Session> session_;
};

}  // namespace hone
