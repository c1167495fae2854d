// Kernels: the statements that compute one step of a group, as data that any backend
// renders. Scalar expressions are rank-0 values of the graph IR, so they share its ops, rules and
// printer; statements are a small tree. Not text and not machine code.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "ir/function.h"
#include "type/type.h"

namespace hone {

// A buffer argument: an n-dimensional strided window. Strides in elements.
struct KernelParam {
  DType dtype = DType::f32;
  Dims dims;
  Dims strides;
  bool written = false;
  // A result written once, in order, bypasses the caches from this many bytes on; 0: never.
  std::int64_t streams_from = 0;
  bool is_weight = false;  // no launch of a run changes it, see read_weights.h
};

using VarId = std::int32_t;
using RegId = std::int32_t;

// Positions, offsets and extents inside a kernel are Dims, so that equal ones compare equal and
// affine uses of a variable can be recognised. Besides the kernel's sizes they hold these symbols.
Dim loop_symbol(VarId, const Dim& extent);                        // a variable of a loop
Dim register_symbol(RegId, std::int64_t low, std::int64_t high);  // an i64 register
std::optional<VarId> loop_of(const Dim& symbol);
std::optional<RegId> register_of(const Dim& symbol);

// Which threads share a piece of a kernel's own memory.
enum class MemoryScope : std::uint8_t {
  thread,  // none: scratch of one thread; data may remain from earlier iterations of the grid
  group,   // the threads of one iteration of the grid, see LoopKind::group
  spread,  // none; of known size, larger than registers hold. Machines that can place it in group
           // memory do so, one piece per thread
};

// The number of blocks in a group of `threads` threads that has memory of scope spread, on machines
// whose groups consist of blocks.
inline constexpr std::int64_t threads_of_one_block = 512, spread_block_threads = 256;
constexpr std::int64_t blocks_of_spread(std::int64_t threads) {
  return threads <= threads_of_one_block ? 1 : threads / spread_block_threads;
}

// Memory of a kernel besides its parameters. Loads and stores name it by params.size() + i.
struct KernelMemory {
  DType dtype = DType::f32;
  Dim elements = 0;  // known if scope is group
  Dim offset = 0;    // bytes from the start of its scope's memory, a multiple of 64
  MemoryScope scope = MemoryScope::thread;
};

// A rectangle of registers of one thread, named by its index in Kernel::tiles. Vector machines lay
// columns along lanes, so there they are a multiple of the vector length. It has a value from the
// statement that fills or loads it on; a tile that the body of a loop fills before reading has no
// value after that loop.
struct KernelTile {
  DType dtype = DType::f32;
  int rows = 1, columns = 1;
};

// Leaves of scalar expressions, besides ops::constant and ops::dims (both rank 0; a dims may hold
// the symbols above).
namespace ops {
extern const Op load;  // attrs: param, dtype, offset (one Dim: elements). Operand, optional: bool[]
                       // condition (if false, the value is 0 and memory is not accessed)
extern const Op reg;   // attrs: index, dtype. The current value of a register
// attrs: index, dtype (the tile's), offset (Dims: row, column, known after unrolling; only a column
// may run along a lanes loop)
extern const Op tile_element;
}  // namespace ops

enum class LoopKind : std::uint8_t {
  grid,  // outermost. Iterations may run at once, in any order, on any part of the machine. Several
         // grid loops run one after another: each starts when the previous one has finished
  group,  // the only statement of a grid loop, of known extent: threads that run together, share
          // memory of scope group and synchronize at barriers
  serial,
  unrolled,  // serial, of known extent, and written out
  lanes,     // iterations are independent or only feed accumulations; rendered as vectors. Loops
             // inside are serial, and their extents do not depend on the lane
  across,  // contains only a lanes loop: data contiguous along this loop is read in order, a square
           // at a time, and transposed in registers
};

struct Stmt;
using Block = std::vector<Stmt>;

// Elements (row, step) of a piece of memory: offset + rows[row] + step * stride. Offsets in
// elements.
struct TileWindow {
  int param = -1;
  Dim offset = 0;
  std::vector<std::int64_t> rows;  // of each row of the tile, relative to `offset`
  Dim stride = 1;
};

struct Stmt {
  enum class Kind : std::uint8_t {
    loop,        // var from 0 to extent
    declare,     // reg = value (a mutable scalar register; a vector one inside a lanes loop)
    assign,      // reg = value
    accumulate,  // reg = combine(reg, value); combine is add, mul, maximum, minimum, and, or
    store,       // params[param][offset] = value, when condition (if any) holds
    branch,      // if (condition) body, else otherwise
    fetch,       // a hint: params[param][offset], which may lie past its end, is read soon

    // Tiles: all rows and the first `columns` columns. Memory of other columns is not accessed.
    tile_fill,      // every element of `tile`, in all columns, = value
    tile_load,      // tile(row, column) = a(row, column)
    tile_store,     // a(row, column) = tile(row, column)
    tile_multiply,  // tile(row, column) += a(row, k) * b(k, column) for k from 0 to extent, in
                    // order

    // Groups: either every thread of the group reaches them or none does.
    barrier,       // all threads see after it what each thread wrote before it; extent > 1: only
                   // every `extent` neighbouring threads wait for each other and see that
    reduce_group,  // reg = combine over all threads of value, in an order fixed by the extent
                   // alone; extent > 1: over `extent` neighbouring threads, a power of two up to 32
    copy_async,    // params[param][offset, + extent) = a(0, 0...extent), or zeros where condition
                   // (if any) does not hold; belongs to this thread's open batch
    end_batch,     // ends the open batch of copies, which may be empty, and opens the next one
    wait_copies,   // waits until at most extent of this thread's ended batches are unfinished; the
                   // oldest ones finish first

    intrinsic,  // specific to one machine: `name`, with `body` as its portable meaning
  };
  Kind kind;
  LoopKind loop = LoopKind::serial;
  VarId var = -1;
  Dim extent = 1;
  RegId reg = -1;
  const Op* combine = nullptr;
  int param = -1;
  Dim offset = 0;  // elements
  Value value;
  Value condition;  // bool[]
  int cache = 1;    // that a fetch targets: the first or the second level
  Block body, otherwise;

  int tile = -1;
  // Columns of the tile to use; a load fills the others with 0, a multiplication leaves them
  // unchanged.
  Dim columns = 0;
  // The operands of a tile statement. Of tile_multiply: a(row, k) is one element for all columns
  // or, with a_has_columns, as many elements as there are columns, in order. b(k, column) lies at
  // b.offset + (k / k_group) * b.stride + column * k_group + k % k_group: k_group neighbouring k of
  // narrow operands lie side by side. Operands of another dtype than the tile's are cast to it
  // first.
  TileWindow a, b;
  bool a_has_columns = false;
  int k_group = 1;

  std::string name;  // of an intrinsic
};

// Alignment in bytes of memory that is accessed in vectors.
inline constexpr std::int64_t vector_alignment = 16;

struct Kernel {
  std::string name;  // readable, e.g. "add_relu"; the hash identifies the kernel
  std::vector<KernelParam> params;
  bool is_aligned = false;  // every parameter begins at a multiple of vector_alignment
  Dims sizes;               // symbols passed at run time, in the order of the sizes argument
  Dim chunks = 1;
  Dim scratch_bytes = 0;  // per thread
  std::vector<KernelMemory> memory;
  std::vector<KernelTile> tiles;
  std::shared_ptr<Graph> graph;  // owns the scalar expressions
  // One grid loop, which runs the chunks. Only where chunks is 1 there may be several in sequence,
  // which then run serially, or none.
  Block body;
};

// True if the body is one grid loop, so that each call can run some of the chunks.
bool has_grid(const Kernel&);
// 1 if the kernel has no groups.
int group_threads(const Kernel&);
bool spreads(const Kernel&);  // uses memory of scope spread

// Throws InternalError if the statements violate the rules of this file.
void check(const Kernel&);

// The whole kernel as text.
std::string print(const Kernel&);
// One statement and the values it uses, without its body, as one line.
std::string print(const Kernel&, const Stmt&);
// Inverse of print. Throws UserError with the line and what was expected there.
Kernel parse_kernel(std::string_view text);
// Covers everything that code generation reads, so not the name.
Hash128 hash(const Kernel&);

// A group: a Function whose parameters and results have given layouts (strides in elements).
struct GroupSpec {
  Function function;
  std::vector<Dims> param_strides, result_strides;
  std::vector<bool> param_is_weight;  // known before the run: may be packed by prepare
  bool is_aligned = false;  // every parameter and result begins at a multiple of vector_alignment
  // (result, parameter): both share memory, and the group changes a part of it. A candidate writes
  // only that part.
  std::vector<std::pair<int, int>> updates = {};
  // The group depends on weights alone: it runs once, before the first run, together with others of
  // its kind, whose results it may read.
  bool prepares = false;
};

// One way to compute a whole group: steps over the group's parameters, results and temporaries.
struct Candidate {
  struct Operand {
    enum class Kind : std::uint8_t { param, result, temporary };
    Kind kind = Kind::param;
    int index = 0;
  };
  struct Step {
    std::variant<Kernel, std::string> what;  // a kernel, or a library call by name
    std::vector<Operand> operands;           // in the kernel's parameter order
    std::vector<std::pair<std::string, std::int64_t>> settings;  // library
    bool prepare = false;  // depends on weights alone: runs once
  };
  struct Temporary {
    Type type;
    bool prepared = false;  // written by a prepare step, kept in the plan
  };
  std::string name;  // "generated", a library, ...
  std::vector<Step> steps;
  std::vector<Temporary> temporaries;
};

}  // namespace hone
