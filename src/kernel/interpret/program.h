// The flat form of a kernel that the interpreter runs: instructions over slots of a frame. A slot
// holds one number, or one for each lane (a thread of the group, an iteration of a lanes loop or of
// the grid). Of the statements it knows only their numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernel/interpret/checks.h"
#include "kernel/kernel.h"

namespace hone::interpreter {

// How registers are held: narrow floats as f32, coded dtypes as their codes.
enum class Cell : std::uint8_t { b1, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 };
inline constexpr int cell_count = 11;
Cell cell_of(DType);
int byte_size(Cell);
// Calls f with a number of the cell's type.
template <class F>
void by_cell(Cell c, const F& f) {
  switch (c) {
    case Cell::b1:
      return f(bool());
    case Cell::i8:
      return f(std::int8_t());
    case Cell::i16:
      return f(std::int16_t());
    case Cell::i32:
      return f(std::int32_t());
    case Cell::i64:
      return f(std::int64_t());
    case Cell::u8:
      return f(std::uint8_t());
    case Cell::u16:
      return f(std::uint16_t());
    case Cell::u32:
      return f(std::uint32_t());
    case Cell::u64:
      return f(std::uint64_t());
    case Cell::f32:
      return f(float());
    case Cell::f64:
      return f(double());
  }
}

inline bool is_narrow(DType t) { return t == DType::f16 || t == DType::bf16; }

using Slot = std::uint32_t;  // bytes from the start of the frame
inline constexpr Slot no_slot = ~Slot{0};

struct Frame;
struct Instr;
using Run = void (*)(Frame&, const Instr&);

struct Instr {
  Run run = nullptr;
  bool wide = false;  // for all lanes
  std::uint8_t kind = 0;
  Slot to = no_slot, a = no_slot, b = no_slot, c = no_slot;
  std::int32_t jump = 0;       // instructions to skip, or to go back by
  std::uint32_t detail = 0;    // index into one of the lists of Program
  std::int32_t statement = 0;  // index into Program::statements
};

// A position for each lane: base + lane * step, or a list. Slots of i64.
struct Place {
  enum class Kind : std::uint8_t { same, steps, list };
  Kind kind = Kind::same;
  Slot base = no_slot;  // for a list: the list
  Slot step = no_slot;
};

struct Access {
  int buffer = 0;
  Place place;
  Slot condition = no_slot;
  bool wide_condition = false;
};

// constant + sum of factor * product of slots
struct Linear {
  struct Term {
    std::int64_t factor;
    std::vector<Slot> slots;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms;
};

struct Window {
  int buffer = -1;
  Place offset, stride;
  std::vector<std::int64_t> rows;
};

// A statement of tiles, or an asynchronous copy.
struct TileWork {
  int tile = -1;
  Window a, b;
  Place columns, extent;
  bool a_has_columns = false;
  int k_group = 1;
};

struct Tile {
  Slot slot;
  Cell cell;
  int rows, columns;
};

struct Program {
  Kernel kernel;
  std::vector<const Stmt*> statements;  // of `kernel`
  std::vector<Instr> code;
  std::vector<Access> accesses;
  std::vector<Linear> sums;
  std::vector<TileWork> tile_works;
  std::vector<Tile> tiles;
  std::vector<double (*)(double)> functions;
  struct Constant {
    Slot slot;
    Cell cell;
    std::int64_t integer;
    double real;
  };
  std::vector<Constant> constants;
  std::vector<Slot> sizes;
  std::size_t frame_bytes = 0;
  std::int64_t width = 1;       // maximum number of lanes
  std::int64_t threads = 0;     // of a group; 0 if the kernel has no groups
  std::int32_t neighbours = 1;  // threads that meet at a barrier of neighbours
  bool grid_in_lanes = false;
  int grids = 0;
  int lanes_of_tiles = 1;
};

// Fills in the program; its kernel must be set.
void compile(Program&);

// ---- running

// The last accesses of an element of a buffer.
struct Mark {
  std::int64_t write_iteration = -1, read_iteration = -1;  // of the grid; -1: none
  std::uint32_t write_epoch = 0, read_epoch = 0;
  std::uint32_t write_near = 0, read_near = 0;  // epochs of barriers of neighbours
  std::int32_t writer = 0, reader = 0;          // threads
  std::int32_t write_statement = 0, read_statement = 0;
  bool read_by_several = false;     // by several threads of the iteration
  bool read_by_far = false;         // by threads that are not neighbours
  bool read_by_iterations = false;  // by several iterations
  bool written = false, pending = false;
};

struct Buffer {
  std::byte* data = nullptr;
  std::int64_t elements = 0;
  std::int64_t lane_bytes = 0;  // distance between the copies of threads, where each has its own
  DType dtype = DType::f32;
  bool written = true;  // may be written
  bool is_group = false;
  bool is_thread = false;
  std::vector<Mark>* marks = nullptr;
  std::int64_t marks_of_lane = 0;
  // Marks per element, and the first mark of the buffer.
  std::int64_t marks_per_element = 1, first_mark = 0;
};

struct PendingCopy {
  std::int64_t lane, from, to, step, elements;
  int from_buffer, to_buffer;
  std::int32_t statement;
  bool reads = true;       // false: zeros are written
  std::int64_t batch = 0;  // its number among those of its thread
};

struct Frame {
  const Program& program;
  const InterpretChecks& checks;
  std::byte* slots = nullptr;
  std::int64_t width = 1;
  const bool* mask = nullptr;  // null: all lanes
  std::vector<const bool*> masks;
  const Instr* next = nullptr;
  std::int64_t begin = 0, end = 0;  // of the grid
  std::int64_t iteration = 0;       // of the grid, for lane 0
  std::uint32_t epoch = 1;          // incremented by every barrier of the group
  std::uint32_t near_epoch = 1;     // incremented by every barrier of neighbours
  bool in_vector = false;
  std::vector<Buffer> buffers;
  std::vector<std::vector<PendingCopy>> copies;  // of each thread, oldest first
  std::vector<std::int64_t> batches;             // that each thread has ended

  template <class T>
  T* at(Slot s) const {
    return reinterpret_cast<T*>(slots + s);
  }
  std::int64_t integer(Slot s) const { return *at<std::int64_t>(s); }
  std::int64_t lanes(const Instr& i) const { return i.wide ? width : 1; }
  bool is_active(std::int64_t lane) const { return !mask || mask[lane]; }
  std::int64_t iteration_of(std::int64_t lane) const {
    return program.grid_in_lanes && in_vector ? iteration + lane : iteration;
  }
  std::int32_t thread_of(std::int64_t lane) const {
    return program.threads > 0 && in_vector ? static_cast<std::int32_t>(lane) : 0;
  }
};

// Positions of the lanes.
struct Positions {
  Positions(const Frame& f, const Place& p)
      : base(p.kind == Place::Kind::list ? 0 : f.integer(p.base)),
        step(p.kind == Place::Kind::steps ? f.integer(p.step) : 0),
        list(p.kind == Place::Kind::list ? f.at<std::int64_t>(p.base) : nullptr) {}
  std::int64_t operator[](std::int64_t lane) const {
    return list ? list[lane] : base + lane * step;
  }
  std::int64_t base, step;
  const std::int64_t* list;
};

[[noreturn]] void fail(const Frame&, const Instr&, std::int64_t lane, const std::string& what);
std::string statement_text(const Program&, std::int32_t statement);
void check_range(const Frame&, const Instr&, int buffer, std::int64_t lane, std::int64_t element);
void note_read(Frame&, const Instr&, int buffer, std::int64_t lane, std::int64_t element);
void note_write(Frame&, const Instr&, int buffer, std::int64_t lane, std::int64_t element);

// ---- instructions by operand

// `op` on operands of this cell type; null if there is none. Comparisons give b1.
Run unary_run(const Op&, Cell);
Run binary_run(const Op&, Cell);
Run select_run(Cell);
Run copy_run(Cell);         // to = a
Run copy_masked_run(Cell);  // of active lanes
Run broadcast_run(Cell);    // all lanes of the program = a, one number
Run cast_run(Cell from, Cell to);
Run round_run(DType);         // f32 to the numbers of f16 or bf16
Run round_double_run(DType);  // from f64, rounded once
Run bitcast_run(DType from, DType to);
Run join_lanes_run(const Op&, Cell);  // to = combine(to, all lanes of a)
// Every lane of to = combine of all lanes of a; detail > 1: of `detail` neighbouring lanes.
Run reduce_group_run(const Op&, Cell);
Run load_run(DType memory);
Run store_run(DType memory);

// On positions: one number, or lanes.
void linear(Frame&, const Instr&);
void spread(Frame&, const Instr&);  // to, a list = a + lane * b
Run position_run(DimExpr::Kind);

void tile_fill(Frame&, const Instr&);
void tile_load(Frame&, const Instr&);
void tile_store(Frame&, const Instr&);
void tile_multiply(Frame&, const Instr&);
void tile_element(Frame&, const Instr&);
void copy_async(Frame&, const Instr&);
void end_batch(Frame&, const Instr&);
void wait_copies(Frame&, const Instr&);

}  // namespace hone::interpreter
