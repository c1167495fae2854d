// Checks that a whole plan computes its function. Finds faults of the passes and the planner, which
// checks of single kernels cannot find. For functions so small that it is cheap compared with
// compiling them; optimize.h does it for all, on usual numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ir/function.h"
#include "kernel/kernel.h"
#include "plan/plan.h"
#include "runtime/executable.h"
#include "verify/sample.h"

namespace hone {

// Of the whole function; data-dependent sizes take their upper bounds.
Dim flops_of(const Function&);
std::int64_t flops_at(const Dim& flops, const Sizing&);

// Few operations and few bytes at these sizes, and no loop whose iteration count depends on data.
bool is_small(const Function&, const Sizing&);
// One evaluation is cheap compared with a compilation; no such loop.
bool is_medium(const Function&, const Sizing&);
// About how many bytes the reference needs at least for these sizes, in f64.
std::int64_t bytes_to_evaluate(const Function&, const Sizing&);
// Whether it, or a body in it, has a loop whose iteration count depends on data.
bool has_loop(const Function&);
// Whether rounding may move a value to the next integer, as in quantized models.
bool has_steps(const Function&);
// Small enough to analyze a difference (explanation.h). If rounding decides a step, such as the
// next quantized number, correct results differ and the search may take seconds.
bool is_explainable(const Function&, const Sizing&);

// Hash of everything that a run of the plan reads except its inputs.
Hash128 contents_of(const Plan&);

// Returns text to append to a refusal, given the inputs that caused it.
using Blame = std::function<std::string(const std::vector<Array>& inputs)>;

// Further sizes at which a plan is checked.
struct OtherSizes {
  std::vector<Sizing> of_kernels;  // sizes at which kernels are checked; a third of them are used
  std::vector<Sizing> of_plans;    // all of these
};

// Runs the plan on made-up data: numbers of many magnitudes, and numbers of which few are special.
// If the function is small, also on typical, all negative and extreme numbers, and then on all
// again (repeat.h). Also at the other sizes, as far as that is little work. Throws UserError that
// names the first wrong result. False: the function itself refuses such data, so the check says
// nothing.
bool check_whole(const Function&, const Sizing&, const OtherSizes&, const Plan&,
                 const Executable::Devices&, const std::shared_ptr<ThreadPool>&, const Blame&);

// The inputs with reals replaced by numbers of this kind: for more runs of a function that may be
// too large to evaluate. Empty if no input is real, or if the function has a loop, which might not
// end with such numbers.
std::optional<std::vector<Array>> special_like(const Function&, const std::vector<Array>& inputs,
                                               Fill);

// Checks each launch: the layout of its operands must be the one that its kernel was compiled for.
// Throws InternalError.
void check_operands(const Plan&, const Variant&, std::span<const Kernel>);

}  // namespace hone
