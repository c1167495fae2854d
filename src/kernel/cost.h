// How long a kernel would take by what it computes and moves, on one thread: for choosing without a
// clock. Good for ratios between ways to compute one group, not for promises.
#pragma once

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

double predicted_ms(const Kernel&, const TargetInfo&);
// Whether computing one element costs as much as a function of the mathematical library.
bool is_expensive(const Op&);
bool has_expensive(Value);  // whether an operation that the value depends on is
// Of the steps that run each time, with what a launch costs. Its steps must all be kernels.
double predicted_ms(const Candidate&, const TargetInfo&);

}  // namespace hone
