// Predicts the time of a kernel from what it computes and moves, on one thread, for choosing
// without measuring. Good for ratios between ways to compute one group, not for absolute times.
#pragma once

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

double predicted_ms(const Kernel&, const TargetInfo&);
// True if computing one element costs as much as a function of the math library.
bool is_expensive(const Op&);
bool has_expensive(Value);  // true if the value depends on such an operation
// Sum over the steps that run on every call, with launch costs. All steps must be kernels.
double predicted_ms(const Candidate&, const TargetInfo&);

}  // namespace hone
