// Statements of a kernel that multiplies tiles of f16 or bf16 together, given how its operands are
// read and its results stored. Decides no sizes and finds no operands.
#pragma once

#include "kernel/anchored.h"
#include "kernel/group_problem.h"
#include "kernel/tensor_tiling.h"

namespace hone {

// The name of the intrinsic. Its body multiplies tiles of 2 columns, each thread what it holds of
// the subgroup's: row l / 4 of every 8 and columns l % 4 * 2 and the next of every 8, of lane l.
inline constexpr std::string_view multiply_halves = "multiply_halves";
// The same of tiles that are matrices of a subgroup, of which no thread knows its part; and what
// puts rows of them into memory of the group. Its body means that each thread stores what
// multiply_halves says it holds, from a multiple of 16 rows on. Tiles are used in pairs, which are
// 16 columns. All memory of the group is read and written in vectors of 16 bytes, or read as f32.
inline constexpr std::string_view multiply_matrices = "multiply_matrices",
                                  store_matrices = "store_matrices";

// The same, of a left operand that each thread holds in its own memory, as tiles have it, in f32:
// element (row r of every 8, column c of the t-th of so many tiles) at (r * tiles + t) * 2 + c.
// Its body rounds them into memory of the group, waits, and multiplies what lies there.
inline constexpr std::string_view multiply_held_halves = "multiply_held_halves";

// exp(x * ln 2) in its body is a power of two that may be 0 where it is below 2^-126, and 2 units
// in the last place off.
inline constexpr std::string_view short_powers = "short_powers";

// How an operand is read: its element at (free, depth), of which one may be given as so many
// vectors and the place in a vector.
struct TensorSide {
  Value element;
  bool along_depth = true;  // what is neighbouring there lies side by side, in memory and in tiles
  std::int64_t width = 1;   // elements that are read at once
  Dim free, depth;          // variables; of the one that is read in vectors, their number
  Dim lane = 0;             // in a vector

  // The vectors lie in memory as tiles have them.
  bool is_copied(DType t) const {
    return width > 1 && element.is(ops::load) && element.dtype() == t;
  }
};

struct TensorParts {
  Dim b = 0, m = 0, n = 0;  // variables of the stores
  TensorSide left, right;
  Value element;  // that the stores read
  Block stores;
  // Variable of the stores, where the depth is in parts.
  std::optional<Dim> part;
};

// Fills in what AnchoredGroup::kernel() leaves open.
// Whether neighbours along n are neighbours in memory, in rows of whole vectors: a group puts its
// tile together before it stores it. Where not, a tiling has one depth.
bool stores_vectors(const GroupProblem&, const TensorParts&);

void write_tensor_kernel(Kernel&, AnchoredGroup&, const GroupProblem&, const TensorTiling&,
                         const TensorParts&, bool has_opaque_tiles);

}  // namespace hone
