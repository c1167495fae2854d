// What the compiler decides about a contraction before code is made: recognition in a
// group, blocking, scratch, chunks.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel/kernel.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one contraction (or convolution of single pixels): the main step,
// and one that packs its right operand. Nothing when the group is not of that form.
std::optional<Candidate> contraction_candidate(const GroupSpec&, const TargetInfo&);

// How elements of A lie in memory, as far as it is known.
struct OperandAccess {
  bool is_plain = false;                             // a load of dtype `accumulate`, no arithmetic
  std::optional<std::int64_t> row_stride, k_stride;  // elements
};

// Chooses the register tile, the blocking and how A is read, from shapes and target alone. Sets
// everything behind `packed_batch`.
void choose_blocking(Contraction&, const OperandAccess& a, const TargetInfo&);

// How the memory of one thread is used, in elements of the accumulating dtype.
struct ContractionScratch {
  std::int64_t sums = 0;         // accumulated tiles, at offset 0
  std::int64_t copy_stride = 0;  // of a row of the copy of A
  std::int64_t copy = 0;         // elements of that copy, behind the sums
};
ContractionScratch scratch_of(const Contraction&);
std::int64_t scratch_bytes(const Contraction&);

// k is accumulated in one go: no sums are kept between its parts.
bool is_single_part(const Contraction&);

// Chunks of the kernel: rows change fastest, so neighbours share B.
Dim chunks_of(const Contraction&);

// The type of packed B.
Type packed_type(const Contraction&);

}  // namespace hone
