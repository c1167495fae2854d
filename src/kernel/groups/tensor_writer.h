// Statements of a kernel that multiplies tiles of f16 or bf16, given how its operands are read and
// its results stored. Does not choose sizes or operands.
#pragma once

#include "kernel/groups/tensor_tiling.h"
#include "kernel/problem/anchored.h"
#include "kernel/problem/group_problem.h"

namespace hone {

// The name of the intrinsic. Its body multiplies tiles of 2 columns: each thread holds its part of
// the subgroup's tile. Lane l holds row l / 4 of every 8 and columns l % 4 * 2 and the next of
// every 8.
inline constexpr std::string_view multiply_halves = "multiply_halves";
// The same for tiles that are matrices of a subgroup, where no thread knows its part; and the store
// of their rows to group memory and the load from there. Its body means that each thread stores or
// loads what multiply_halves says it holds, starting at a multiple of 16 rows. Tiles are used in
// pairs, which are 16 columns. All group memory is accessed in vectors of 16 bytes, or read as f32.
inline constexpr std::string_view multiply_matrices = "multiply_matrices",
                                  store_matrices = "store_matrices",
                                  load_matrices = "load_matrices";
// Each thread copies its rows of left operands for multiply_matrices from group memory to its own,
// for later products; 16 of their columns at a time, or a multiple. Only such products read that
// memory.
inline constexpr std::string_view hold_matrices = "hold_matrices";

// The same with a left operand that each thread holds in its own memory, laid out as in tiles, in
// f32: element (row r of every 8, column c of tile t of `tiles`) at (r * tiles + t) * 2 + c. Its
// body rounds them into group memory, waits, and multiplies them there.
inline constexpr std::string_view multiply_held_halves = "multiply_held_halves";

// In its body exp(x * ln 2) is a power of two that may be 0 below 2^-126 and may be off by 2 units
// in the last place.
inline constexpr std::string_view short_powers = "short_powers";

// How an operand is read: its element at (free, depth). One of these may be given as a number of
// vectors plus the position in a vector.
struct TensorSide {
  Value element;
  bool along_depth = true;  // neighbours along the depth are adjacent in memory and in tiles
  std::int64_t width = 1;   // elements read at once
  Dim free, depth;          // variables; along the axis read in vectors, a count of vectors
  Dim lane = 0;             // position in a vector

  // The vectors lie in memory exactly as in tiles.
  bool is_copied(DType t) const {
    return width > 1 && element.is(ops::load) && element.dtype() == t;
  }
};

struct TensorParts {
  Dim b = 0, m = 0, n = 0;  // variables of the stores
  TensorSide left, right;
  Value element;  // read by the stores
  Block stores;
  // Variable of the stores for the part, if the depth is divided.
  std::optional<Dim> part;
};

// True if neighbours along n are adjacent in memory, in rows of whole vectors: then a group
// assembles its tile before it stores it. Otherwise a tiling has one depth.
bool stores_vectors(const GroupProblem&, const TensorParts&);

// Fills in what AnchoredGroup::kernel() leaves open.
void write_tensor_kernel(Kernel&, AnchoredGroup&, const GroupProblem&, const TensorTiling&,
                         const TensorParts&, bool has_opaque_tiles);

}  // namespace hone
