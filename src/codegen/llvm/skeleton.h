// What the skeletons of contraction and convolution share: register tiles, holes as functions that
// emit code, sizes. Not a place for loop nests (those are lowered for every kernel).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/llvm/builder.h"
#include "kernel/kernel.h"

namespace hone::llvm {

// Emits the elements of an operand: `lanes` consecutive ones along variable `along`, from `vars`
// on. Lanes outside the mask read as zero.
struct LoadHole {
  std::function<Value(std::span<const Value> vars, int along, int lanes, std::optional<Value> mask)>
      elements;
  // The place of one element, of this dtype; only where the operand is a load.
  std::function<Pointer(std::span<const Value> vars)> address;
  DType dtype = DType::f32;
};

// Emits the epilogue for `accumulated`, whose lanes lie along the last variable.
using StoreHole =
    std::function<void(std::span<const Value> vars, Value accumulated, std::optional<Value> mask)>;

// A number of rows times some vectors of columns, held in registers as [row][vector].
struct RegisterTile {
  DType dtype = DType::f32;
  int rows = 1, vectors = 1, lanes = 16;

  int block() const { return vectors * lanes; }
  ValueType vector_type() const { return {dtype, lanes}; }
};

// Where a tile finds its left operand: element (row, k) is offsets[row] + k * step from `base`.
struct TileRows {
  Pointer base;
  std::vector<std::int64_t> offsets;
  std::int64_t step = 1;
};

// The right operand of a tile: vector `v` of row `k`, where k counts from the start of the run.
using TileColumns = std::function<Value(Value k, int v)>;
TileColumns packed_columns(const RegisterTile&, Pointer);

Values zero_tile(Module&, const RegisterTile&);
Values load_tile(const RegisterTile&, Pointer);
void store_tile(const RegisterTile&, Pointer, const Values&);

// accumulators[r][v] += sum over k < count of a(r, k) * b(k, v), in the order of k. Not unrolled:
// LLVM would share elements of A between the k of neighbouring rows, and spill.
Values multiply_add(Module&, const RegisterTile&, Values accumulators, const TileRows& a,
                    const TileColumns& b, Value count);

// The columns [first, first + vectors) of a panel that exist.
struct ColumnMasks {
  int vectors = 0;                              // at least one of whose lanes exists
  std::vector<std::optional<Value>> of_vector;  // nullopt: all lanes exist
};
ColumnMasks all_columns(const RegisterTile&);
// `remaining` columns, at least one.
ColumnMasks first_columns(Module&, const RegisterTile&, std::int64_t remaining);
ColumnMasks first_columns(Module&, const RegisterTile&, Value remaining);

// Calls body with the masks of the panel that starts at column `n` of `count`, which is a number
// when known: twice, in two branches, if the last panel is narrower than the others.
void for_panel(Module&, const RegisterTile&, Value n, Value count,
               std::optional<std::int64_t> known,
               const std::function<void(const ColumnMasks&)>& body);

// Runs the epilogue for rows [first, last) of a stored tile.
using TileEpilogue = std::function<void(Value row, int vector, Value, std::optional<Value> mask)>;
void store_rows(Module&, const RegisterTile&, Pointer stored, Value first, Value last,
                const ColumnMasks&, const TileEpilogue&);

// The same for all rows of a tile in registers.
void store_whole(Module&, const RegisterTile&, const Values& sums, const ColumnMasks&,
                 const TileEpilogue&);
// An epilogue so short that it is repeated for each register.
bool is_short(const Hole& epilogue, const RegisterTile&);

// The value of a Dim in this call: `sizes` are the kernel's symbols.
Value size_of(Module&, const KernelArguments&, std::span<const Dim> sizes, const Dim&);

// Calls body(i, mask) for vectors that cover [0, count); the mask stands at the last one only.
void for_vectors(Module&, int lanes, Value count,
                 const std::function<void(Value i, std::optional<Value> mask)>& body);

// The body of the kernel: computes chunks [begin, end).
void emit_contraction(Module&, const Kernel&, const KernelArguments&, const LoadHole& a,
                      const LoadHole& b, const StoreHole& epilogue);
void emit_convolution(Module&, const Kernel&, const KernelArguments&, const LoadHole& input,
                      const StoreHole& epilogue);

}  // namespace hone::llvm
