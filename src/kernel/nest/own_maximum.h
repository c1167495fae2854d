// Sums of exp(x - m), where m is the maximum of all x that the threads of a group hold.
#pragma once

#include <string_view>

#include "kernel/nest/lower.h"

namespace hone {

// The name of the intrinsic. Given each thread's maximum and its sum of exp(x - maximum), the body
// computes those of the group: it keeps the thread's maximum, reduces the maximum (statement 1),
// corrects the sum and reduces it (the last statement).
inline constexpr std::string_view join_exponentials = "join_exponentials";

// Each thread first subtracts the maximum of its own x; its sum is corrected once m is known, since
// exp(x - m) = exp(x - own) * exp(own - m) (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018). So threads that are far apart wait for each other once instead of twice. A
// later loop that needs exp(x - m), too, computes it again.
void subtract_own_maximum(Block&, Lowering&);

}  // namespace hone
