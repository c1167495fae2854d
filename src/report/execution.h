// The plan's variant that served the sample, as JSON: groups, steps, kernels with source, memory,
// and the measurements of each. Measures nothing itself.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"
#include "compile/optimize.h"

namespace hone {

//   groups    those that run: group, name, origins, chosen, reason, bytes, flops, ms, bound_ms (see
//             below), candidates, steps, nodes (places in the last stage of graphs_json; null:
//             not known)
//   steps     in order: kind, name, depth, group, kernel, chunks, ms, calls, operands, settings
//   kernels   that are launched, longest time first: kernel, hash, name, source, and assembly of
//             those on which most time is spent
//   timeline  [step, start, us] of one run
//   memory    in bytes: weights ... peak; buffers of the arena as [buffer, offset, bytes, first
//             step, last step]; live at each step
//   rates     of this machine: fma_gflops and copies as [bytes, gbytes]
// Times are in ms, as [median, low, high].
Json execution_json(const Plan&, const Profile&, const CompileReport* compiled);

// Lower bound of a group's milliseconds on a machine with these rates: its arithmetic at the rate
// of multiply-adds, or its bytes at the rate of copying a buffer of that size, whichever is longer.
double bound_ms(double bytes, double flops, const MachineRates&);

// Arena buffers with the steps in which they hold data. Steps are numbered in the order of
// for_each_step. Data that lies in the memory of another buffer counts in both.
struct BufferLife {
  std::uint32_t buffer = 0;
  std::int64_t offset = 0, bytes = 0;
  std::uint32_t first = 0, last = 0;
};
std::vector<BufferLife> buffer_lives(const Variant&, const Sizing&);
// Bytes of the arena that hold data at each step.
std::vector<std::int64_t> live_bytes(std::span<const BufferLife>, std::size_t steps);

}  // namespace hone
