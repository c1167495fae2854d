// Whether a whole plan computes its function: what the checks of single kernels cannot see, the
// passes and the planner. For functions so small that it costs little beside their code; optimize.h
// does it for all, on usual numbers.
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

// Of the whole function; sizes that data decides are as large as they can be.
Dim flops_of(const Function&);
std::int64_t flops_at(const Dim& flops, const Sizing&);

// Few operations and few bytes at these sizes, and no loop whose rounds depend on data.
bool is_small(const Function&, const Sizing&);
// So few that one evaluation costs little beside a compilation; no such loop.
bool is_medium(const Function&, const Sizing&);
// Whether rounding may move a value to the next whole number, as in quantized models.
bool has_steps(const Function&);
// So few that a difference can be looked into (explanation.h): where a rounding decides a step,
// such as the next quantized number, the search may take seconds, for right results differ there.
bool is_explainable(const Function&, const Sizing&);

// Of everything that a run of the plan reads but its inputs.
Hash128 contents_of(const Plan&);

// A text for the end of a refusal, for the inputs that led to it.
using Blame = std::function<std::string(const std::vector<Array>& inputs)>;

// At which a plan is run beside those that are checked first.
struct OtherSizes {
  std::vector<Sizing> of_kernels;  // a third of those at which kernels are checked
  std::vector<Sizing> of_plans;    // all of these
};

// Runs the plan on made-up data: numbers of many magnitudes, and such of which few are special;
// where the function is small also typical, all negative and extreme ones, and then all again
// (repeat.h); at the other sizes too, as far as it is little work there. Throws UserError that
// names the first wrong result. False: the function itself refuses such data, so nothing can be
// said.
bool check_whole(const Function&, const Sizing&, const OtherSizes&, const Plan&,
                 const Executable::Devices&, const std::shared_ptr<ThreadPool>&, const Blame&);

// The inputs with other numbers, of that kind, in place of reals: for more runs of a function that
// may be too large to evaluate. Nothing where no input is real, or where the function has a loop,
// which such numbers might never end.
std::optional<std::vector<Array>> special_like(const Function&, const std::vector<Array>& inputs,
                                               Fill);

// Looks at each launch: its operands must lie as its kernel was compiled for. Throws InternalError.
void check_operands(const Plan&, const Variant&, std::span<const Kernel>);

}  // namespace hone
