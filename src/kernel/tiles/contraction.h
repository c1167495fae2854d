// A contraction on machines with register tiles: recognised in a group, cut into blocks, and
// written as statements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/problem/anchored.h"
#include "kernel/tuning.h"
#include "target/target_info.h"

namespace hone {

// The group computed around its one contraction (or 1x1 convolution): the main step, and one that
// packs its right operand. Returns nullopt if the group does not match.
std::optional<Candidate> contraction_candidate(const GroupSpec&, const TargetInfo&,
                                               const Tuning& = {});
// Tunings worth trying, default first; empty if the group does not match.
std::vector<Tuning> contraction_space(const GroupSpec&, const TargetInfo&);

// C[b, m, n] = sum_k A[b, m, k] * B[b, k, n], accumulated in f32 (f64 for f64, i32/i64 for ints).
// Variables of a: (b, m, k); of b: (b, k, n); of epilogue: (b, m, n). Every element is one chain of
// multiply-adds in the order of k, whatever the blocking.
struct Contraction {
  Dim batch = 1, m = 1, n = 1, k = 1;
  DType accumulate = DType::f32;
  Splice a, b, epilogue;
  // Parameter in which B is already packed as [b, ceil(n/columns), k, columns] (zero-padded). Then
  // b is unused or, with b.element, is computed from a packed element. packed_batch: it has the
  // axis b. -1: b is a load that is contiguous along n.
  int packed_b = -1;
  DType packed_dtype = DType::f32;  // of packed B, unless it is widened
  bool packed_batch = false;

  bool makes_b() const { return static_cast<bool>(b.element); }
};

struct ContractionTuning {
  // How the tile reads A: from a copy in scratch with lanes along k or along m, or in place.
  enum class ReadA : std::uint8_t { copy_along_k, copy_along_m, in_place };

  // The register tile is rows x columns, columns a multiple of the vector length. A chunk is
  // chunk_rows x chunk_columns, multiples of the tile; k is cut in parts of k_part.
  std::int64_t rows = 1, columns = 16, chunk_rows = 1, chunk_columns = 16, k_part = 1;
  ReadA read_a = ReadA::copy_along_k;
  bool pack_b = true;
  // Panels are of the dtype `accumulate`, even if a narrower one would suffice.
  bool widen_b = false;

  Tuning named() const;
};

// The choice by shapes and target alone.
ContractionTuning default_tuning(const Contraction&, const TargetInfo&);
// The same, overridden by what the tuning names, as far as the contraction allows it.
ContractionTuning tuned(const Contraction&, const TargetInfo&, const Tuning&);

// Tunings worth trying. `may_choose_b`: B can be packed or read in place.
std::vector<Tuning> space_of(const Contraction&, const TargetInfo&, bool may_choose_b);

// The type of packed B.
Type packed_type(const Contraction&, const ContractionTuning&);

// Adds the statements to a kernel that has its parameters.
void write_contraction(Kernel&, Lowering&, const Contraction&, const ContractionTuning&,
                       const TargetInfo&);

}  // namespace hone
