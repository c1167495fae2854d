// Measures this CPU in a few milliseconds, to calibrate the cost model and to give tests a
// reference speed. Not a benchmark of kernels.
#pragma once

#include <cstddef>

#include "target/target_info.h"

namespace hone::cpu {

// One thread: multiply-adds of f32 per second x 2, in 10^9, with the widest vectors this process
// may use (HONE_CPU_ISA); the best of several short loops of independent chains.
double measure_fma_gflops(double milliseconds = 3);

// One thread: bytes read plus bytes written per second, in 10^9, copying a warm buffer of the given
// size.
double measure_copy_gbytes(std::size_t bytes, double milliseconds = 3);

// Both, with `threads` threads at once, each with its own memory: buffers that fit the first-level
// cache, the second-level cache, the last-level cache, and no cache.
MachineRates measure_rates(int threads);

}  // namespace hone::cpu
