// Emits scalar expressions and statements of a kernel, one element or a vector of elements at a
// time.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/llvm/builder.h"
#include "kernel/invariant.h"
#include "kernel/kernel.h"

namespace hone::llvm {

class Renderer {
 public:
  using Expression = hone::Value;

  Renderer(Module&, const Kernel&, const KernelArguments&);

  // Elements [at, at + lanes) of a variable at once; lanes outside the mask neither store nor read
  // memory.
  struct Lanes {
    VarId var = -1;
    int count = 1;
    std::optional<Value> mask;
  };

  void set_variable(VarId, Value at);
  void set_lanes(Lanes lanes) { lanes_ = std::move(lanes); }

  Value value(const Expression&);
  Pointer address(const Expression& load);  // of an unconditional scalar load
  void block(const Block&);
  // Registers of the block that change after their declaration; call before emitting the block.
  void note_joined(const Block&);
  // Around the whole block of a kernel: decides which results bypass the caches, and fences those
  // stores.
  void begin_streams();
  void end_streams();

 private:
  // Expressions.
  Value emit(const Expression&);
  Value emit_load(const Expression&);
  Value load_vector(const Expression&, const std::optional<Value>& mask);
  Value emit_operation(const Expression&, const Values& operands);
  Value emit_cast(const Expression&, Value);
  Value widened(Value v) const;  // to the current number of lanes
  std::optional<Value> combined_mask(const Expression& load);

  // Positions.
  Value position(const Dim&);         // scalar, at the first lane
  Value position_vector(const Dim&);  // one for each lane
  Value symbol(const Dim&);
  Value position_with(const Dim&, DType, const std::function<Value(const Dim&)>& symbol);
  bool mentions_lane(const Dim&) const;
  std::optional<Dim> lane_stride(const Dim&) const;
  DType buffer_dtype(int param) const;
  Pointer buffer(int param);

  // Statements.
  void loop(const Stmt&);
  void chunk_loop(const Stmt&);
  // A row's statements, split where the next row's first loop may run.
  struct Stages {
    Block first, middle, last;
    std::vector<RegId> handed_on;  // registers declared in `first`
  };
  std::optional<Stages> stages_of(const Stmt& rows);
  void overlapped_rows(const Stmt& rows, const Stages&);
  void serial_loop(const Stmt&);
  void unrolled_loop(const Stmt&, std::int64_t count);
  void lanes_loop(const Stmt&);
  // A reduction of a lanes loop into an outer register; `op` may be bit_and, see memory_of_nan.
  struct Join {
    RegId reg = -1;
    const Op* op = nullptr;
  };
  std::vector<Join> joins_of(const Stmt&) const;
  void add_memories(std::vector<Join>&, int vectors) const;
  Values lanes_part(const Stmt&, const Lanes&, Value at, const std::vector<Join>&,
                    const Values& parts);
  void finish_joins(const std::vector<Join>&, const Values& parts);
  void across_loop(const Stmt&);
  void across_tile(const Stmt& outer, const std::vector<Expression>& loads, Value p, int block,
                   Value q, const Lanes&);
  std::optional<Value> mask_of_rows(const Expression& load, VarId lane, Value q, const Lanes&);
  std::vector<Expression> crossing_loads(const Stmt& outer);
  int lanes_for(const Stmt&) const;
  void store(const Stmt&);
  void fetch(const Stmt&);
  int streamed_bytes(int param, int lanes) const;
  std::optional<Value> find_streaming(const Stmt& loop, Value from, int lanes,
                                      std::unordered_set<const Stmt*>& stores);
  std::optional<Value> turns_before_line(const Stmt& loop, int lanes, Value extent);
  bool may_stream(const Stmt& store, const Stmt& loop) const;
  Values past_caches_or_not(const Stmt& loop, Value from, int lanes,
                            const std::function<Values()>& run);
  // Register tiles.
  struct TileForm {
    DType dtype = DType::f32;
    int rows = 1, vectors = 1, lanes = 1;
    ValueType type() const { return {dtype, lanes}; }
  };
  // For each vector of a row, a mask if only some lanes have columns.
  using Columns = std::vector<std::optional<Value>>;
  static RegId tile_vector(int tile, int i);
  TileForm tile_form(int tile) const;
  void add_tile(int tile, std::vector<RegId>&) const;
  void add_tiles_carried(const Block& body, std::vector<RegId>&) const;
  void add_tiles_joined(const Stmt& branch, std::vector<RegId>&) const;
  void forget_tiles_filled(const Block& body);
  Columns columns_of(const TileForm&, const Dim& columns);
  Pointer window(const TileWindow&);
  void tile_fill(const Stmt&);
  void tile_load(const Stmt&);
  void tile_store(const Stmt&);
  void tile_multiply(const Stmt&);
  void tile_lanes_loop(const Stmt&);
  std::optional<std::int64_t> number_at(const Dim&);
  Value tile_element(const Expression&);
  void accumulate(const Stmt&);
  void branch(const Stmt&);
  void body_of_loop(const Stmt&, Value at);
  void hoist(const Stmt& loop);
  std::vector<RegId> modified_outside(const Block&) const;
  Values registers(const std::vector<RegId>&);
  void set_registers(const std::vector<RegId>&, const Values&);
  void forget_registers();
  void forget_memory();

  Module& m_;
  const Kernel& kernel_;
  const KernelArguments& in_;
  Lanes lanes_;
  std::unordered_map<VarId, Value> variables_;
  std::unordered_map<RegId, Value> registers_;
  std::unordered_set<RegId> joined_;
  std::unordered_map<int, Value> streamed_;    // by param: whether it bypasses the caches
  std::unordered_set<const Stmt*> streaming_;  // cache-bypassing stores in the current code
  std::unordered_map<NodeId, Value> cache_;
  ReadsOf reads_;
};

// The greatest known divisor of d, from the form of the expression; 0 for 0.
std::int64_t known_divisor(const Dim& d);

// Whether some value of the block is an element of a tile.
bool reads_tiles(const Block&);

// Row i of the result holds element i of each row; both counts are powers of two.
Values transposed(Values rows);

// `reg op value` with the meaning of accumulate.
Value combine(const Op&, Value a, Value b);
// The neutral element of `combine`.
Value neutral(Module&, const Op&, ValueType);

}  // namespace hone::llvm
