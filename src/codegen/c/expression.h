// Writes scalar expressions and statements of a kernel as C: one constant for each value, loops as
// loops.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/c/helpers.h"
#include "codegen/c/text.h"
#include "kernel/invariant.h"
#include "kernel/kernel.h"

namespace hone::c {

class Renderer {
 public:
  // `vector_bytes`: size of the vectors of register tiles.
  Renderer(Text&, Helpers&, const Kernel&, int vector_bytes);

  void block(const Block&);
  // The position as an expression; a sum is not parenthesized.
  std::string position(const Dim&);

  // Parameters that the text reads or writes.
  const std::unordered_set<int>& used_params() const { return used_params_; }
  // Declares the variables of the register tiles.
  void declare_tiles(Text&) const;
  // The text uses `zero`, which must be set to hone_zero.
  bool uses_zero() const { return uses_zero_; }
  // Type of positions.
  std::string_view index_type() const { return is_near_ ? "int32_t" : "int64_t"; }
  // Declarations of arrays that a group shares, in C without a qualifier.
  const std::vector<std::string>& shared() const { return shared_; }
  std::int64_t shared_bytes() const {
    return shared_bytes_;
  }  // size of the memory declared by
     // Dialect::shared
  // The types used with Dialect::vector_type, each once.
  const std::vector<VectorType>& vectors() const { return vectors_; }
  bool uses_subgroups() const { return uses_subgroups_; }
  bool uses_matrices() const { return uses_matrices_; }
  // Declarations that precede a group kernel's text: sizes, tiles, thread memory.
  void declare_group(Text&);

 private:
  // A lanes loop split into strips: iteration `base` + `turn`, turn < count.
  struct Strip {
    VarId var = -1;
    std::string base, turn, count;
    std::int64_t width = 1;  // count is at most this
  };
  // Expressions that can be used as operands.
  std::string value(const Value&);
  std::string emit(const Value&);
  std::string name_value(const Value&, const std::string& expression);
  std::optional<std::string> near_position(const Value&);
  std::string multiplicand(const Value&);
  std::string narrowed(DType, const std::string& expression) const;
  std::string emit_load(const Value&);
  std::string conditional_load(const Value&);
  std::string operation(const Value&, const std::vector<std::string>& operands);
  bool is_open_product(const Value&) const;  // floats, not computed yet
  std::string sum_with(const Value& product, const std::string& addend);
  bool is_rounded(const Value&) const;
  // The load that a register holds, if it holds an unmodified narrow float.
  std::optional<Value> held_load(const Value&) const;
  std::string cast(const Value&, const std::string& x);
  std::string cast_number(DType from, DType to, const std::string& x);
  std::string bitcast(const Value&, const std::string& x);
  std::string narrow_bits(const Value&, const std::string& x);
  // `stays`: in registers, where it may be converted back at once.
  std::string to_memory(DType, const std::string& x, bool stays = false);
  std::string from_memory(DType, const std::string& element);

  // Positions and memory.
  std::string factor(const Dim&);
  std::string buffer(int param);
  std::string sum_text(const DimExpr&);
  std::string symbol(const Dim&);
  std::string number_of(const Dim&, bool is_short);
  std::string element_at(int param, const Dim& offset);
  std::string element_at(int param, const std::string& offset);
  bool is_array(int param) const;
  bool is_shared(int param) const;  // by the threads of a group
  bool stays_in_registers(int param) const { return is_array(param) && !is_shared(param); }
  bool is_spread(int param) const;  // in the memory of a block
  std::string spread_place(int param, const std::string& at) const;
  std::int64_t block_threads() const;
  std::int64_t shared_of_group() const;
  std::string in_array(const std::string& name, const std::string& at) const;
  DType buffer_dtype(int param) const;

  // Statements. Before a loop with at least one iteration: emits the reads and computations of the
  // block that do not depend on the loop variable.
  void hoist(VarId var, const Block&);
  // for (name from 0 to count) block, with independent iterations. `var` is `first` + name.
  void independent(VarId var, const std::string& first, const std::string& count, const Block&);
  void statement(const Stmt&);
  void declare(const Stmt&);
  void assign(const Stmt&);
  void accumulate(const Stmt&);
  void store(const Stmt&);
  void branch(const Stmt&);
  void loop(const Stmt&);
  bool is_short_of_steps(const Stmt&) const;
  void serial_loop(const Stmt&);
  void unrolled_loop(const Stmt&, std::int64_t turns);
  void lanes_loop(const Stmt&);
  void strips(const Stmt&, const std::vector<RegId>& sums);
  void strip(const Stmt&, const Strip&);
  void strip_block(const Block&, const Strip&);
  void strip_run(std::span<const Stmt>, bool is_cut, const Strip&);
  void join_parts(const Op& combine, DType, const std::string& total, const std::string& parts,
                  std::int64_t width);
  void across_loop(const Stmt&);
  // Register tiles: each vector of a row is a variable.
  struct TileForm {
    std::string name, type, macro;
    DType dtype = DType::f32;
    int rows = 1, vectors = 1, lanes = 1;
    std::string vector(int row, int v) const { return cat(name, "_", row, "_", v); }
  };
  TileForm tile_form(int tile) const;
  TileForm use_tile(int tile);
  std::string window(const TileWindow&);
  std::string tile_columns(const Stmt&);
  std::string tile_row(const TileForm&, int param, const std::string& from,
                       const std::string& columns);
  void tile_fill(const Stmt&);
  void tile_load(const Stmt&);
  void tile_store(const Stmt&);
  void tile_multiply(const Stmt&);
  void tile_step(const Stmt&, const TileForm&, const std::string& columns, std::int64_t a_place,
                 std::int64_t b_place);
  bool show_tiles(const Stmt&);
  std::vector<int> tiles_by_rows(const Stmt& loop) const;
  void turn_tile(int tile);
  std::string tile_element(const Value&);
  // Groups of threads; their tiles are per-thread arrays.
  bool group_statement(const Stmt&);
  void grid_loop(const Stmt&);
  void group_loop(const Stmt&);
  void reduce_group(const Stmt&);
  void copy_async(const Stmt&);
  bool copies_vector(const Stmt&, const Dim& from);
  void array_tile(const Stmt&);
  void array_multiply(const Stmt&);
  void barrier(std::int64_t neighbours = 1);
  void intrinsic(const Stmt&);
  void multiply_halves(const Stmt&);
  void join_exponentials(const Stmt&);
  // Matrices, which only some kernels use.
  void find_matrices();
  std::int64_t word_elements(int param) const;
  std::string words_name(int param);
  std::string word_number(int param, const Dim& at);
  std::string word_at(int param, const Dim& at);
  std::string element_in_words(int param, const std::string& at);
  std::string unpacked(int param, std::int64_t width, const std::string& name, const Dim& first);
  std::string packed(int param, std::int64_t width, const std::string& name, const Dim& first);
  bool moves_word(const Stmt&);
  void at_corner(const std::function<void()>& write);
  void fill_matrices(const Stmt&);
  void multiply_matrices(const Stmt&);
  void store_matrices(const Stmt&);
  void load_matrices(const Stmt&);
  void hold_matrices(const Stmt&);
  std::string held_matrix(int param, std::int64_t row, std::int64_t column);
  void declare_matrices(Text&);
  void multiply_held_halves(const Stmt&);
  // For exp of a product with ln 2: the other factor, if the statement allows short powers.
  std::optional<Value> power_of_two(const Value&) const;
  std::string zero_of(DType) const;
  void vector_loop(const Stmt&);
  std::string copied_element(const Stmt&);
  std::string rounded_element(const Stmt&);
  std::optional<Dim> vector_start(const Stmt& loop, int param, const Dim& offset) const;
  std::string vector_text(std::string_view pattern, int param, std::int64_t width,
                          const std::string& name, const std::string& at);
  bool use_vector(int param, std::int64_t width);
  void scoped(const std::function<void()>&);
  void forget_registers();
  void forget_memory();
  std::string fresh(std::string_view prefix) { return cat(prefix, next_++); }

  Text& out_;
  Helpers& helpers_;
  const Kernel& kernel_;
  std::unordered_map<VarId, std::string> variables_;
  std::unordered_map<RegId, std::string> registers_;
  std::unordered_map<RegId, DType> register_dtypes_;
  std::unordered_set<RegId> read_registers_;  // anywhere in the kernel
  std::unordered_map<RegId, Value> held_loads_;
  std::unordered_map<NodeId, std::string> cache_;
  ReadsOf reads_;
  std::unordered_set<int> used_params_;
  const Dialect& dialect_;
  const bool hides_conditions_;
  const bool is_near_;  // positions have 32 bits
  bool uses_zero_ = false;
  std::vector<std::string> shared_;
  std::int64_t shared_bytes_ = 0;
  // Vector elements of the current lanes loop.
  std::unordered_map<NodeId, std::string> vector_loads_;
  std::unordered_map<const Stmt*, std::string> vector_stores_;
  std::vector<VectorType> vectors_;
  bool uses_subgroups_ = false, uses_matrices_ = false;
  std::set<std::string> held_matrices_;  // names
  std::unordered_set<int> in_words_;     // memory stored as an array of words, for matrices
  VarId group_thread_ = -1;              // the variable of the group loop
  bool has_short_powers_ = false;        // in the current statement
  std::optional<Dim> lane_;              // of the current strip
  std::unordered_set<RegId> arrays_;     // registers of a strip with one element per iteration
  int vector_bytes_;
  std::set<int> used_tiles_;
  std::unordered_map<int, VarId> tile_rows_;          // by tile: the loop that rotates it
  std::unordered_map<int, std::string> shown_tiles_;  // in memory, by tile
  int next_ = 0;
};

// Whether memory of a group kernel is a variable of its text: shared memory, and small thread
// memory.
bool is_variable(const KernelMemory&);

// `reg op value` with the meaning of accumulate.
std::string combined(Helpers&, const Op&, DType, const std::string& a, const std::string& b);
// The neutral element of `combine`.
std::string neutral(const Op&, DType);

}  // namespace hone::c
