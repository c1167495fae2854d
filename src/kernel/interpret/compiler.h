// Turns the statements of a kernel into the interpreter's instructions. An expression is computed
// once for all statements that see the same registers and memory, and outside of loops that do not
// change it.
#pragma once

#include <array>
#include <unordered_map>
#include <unordered_set>

#include "kernel/interpret/program.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::interpreter {

using StmtKind = Stmt::Kind;

constexpr std::int64_t most_lanes = 256;

// What an expression or position depends on.
struct Needs {
  std::unordered_set<VarId> loops;
  std::unordered_set<RegId> registers;
  bool written = false;  // memory that the kernel writes
  bool loads = false;    // of any memory
  bool tiles = false;

  void add(const Dim& d) {
    if (d.is_number()) return;
    for (const Dim& s : d.symbols()) {
      if (auto v = loop_of(s)) loops.insert(*v);
      if (auto r = register_of(s)) registers.insert(*r);
    }
  }
  void add(const Needs& o) {
    loops.insert(o.loops.begin(), o.loops.end());
    registers.insert(o.registers.begin(), o.registers.end());
    written |= o.written, loads |= o.loads, tiles |= o.tiles;
  }
};

// What the statements of a block change.
struct Changes {
  std::unordered_set<RegId> registers;
  bool memory = false, tiles = false;

  explicit Changes(const Block& block) {
    for_each_statement(block, [&](const Stmt& s) {
      switch (s.kind) {
        case StmtKind::declare:
        case StmtKind::assign:
        case StmtKind::accumulate:
        case StmtKind::reduce_group:
          registers.insert(s.reg);
          break;
        case StmtKind::tile_store:
        case StmtKind::store:
        case StmtKind::barrier:
        case StmtKind::copy_async:
        case StmtKind::end_batch:
        case StmtKind::wait_copies:
          memory = true;
          break;
        case StmtKind::tile_fill:
        case StmtKind::tile_load:
        case StmtKind::tile_multiply:
          tiles = true;
          break;
        default:
          break;
      }
    });
  }
  bool touch(const Needs& n) const {
    return (memory && n.written) || (tiles && n.tiles) ||
           std::ranges::any_of(n.registers, [&](RegId r) { return registers.contains(r); });
  }
};

enum class Lanes : std::uint8_t { none, group, loops, grid };
class Compiler {
 public:
  explicit Compiler(Program& p);

 private:
  // ---- lanes

  // Lanes loops that are not inside another lanes loop.
  static void outer_lanes(const Block& block, std::vector<const Stmt*>& out);

  void choose_lanes();

  static bool changes_outside_of_grid(const Block& body);

  static std::vector<RegId> modified_outside(const Block& block);

  bool in_vector() const { return vector_level_ > 0; }
  bool in_group() const { return in_vector() && lanes_ == Lanes::group; }
  // True if lanes must be told apart to detect races.
  bool tells_lanes_apart() const { return in_vector() && lanes_ != Lanes::loops; }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw UserError("kernel '", kernel_.name, "': ", parts...);
  }

  // ---- slots and instructions

  Slot reserve(std::int64_t bytes);
  Slot allocate(Cell c, bool wide) { return reserve(byte_size(c) * (wide ? p_.width : 1)); }

  struct Scope {
    VarId var = -1;
    bool is_branch = false;
    bool may_not_run = false;
    Changes changes{Block()};
    std::vector<Instr> before, body;
  };

  int level() const { return static_cast<int>(scopes_.size()) - 1; }

  void emit(Instr i, int at) {
    i.statement = statement_;
    if (at == level())
      scopes_.back().body.push_back(i);
    else
      scopes_[static_cast<std::size_t>(at) + 1].before.push_back(i);
  }
  void emit(Instr i) { emit(i, level()); }

  // The outermost level at which it may be computed.
  int level_of(const Needs& n, bool wide) const;
  static bool may_leave(const Scope& s, const Needs& n);

  // ---- values

  struct Val {
    Slot slot = no_slot;
    bool wide = false;
    Cell cell = Cell::f32;
    NodeId node = no_node;
  };
  static constexpr NodeId no_node = ~NodeId{0};

  struct Known {
    Val value;
    Slot broadcast = no_slot;
    int level = 0;
  };
  struct KnownPosition {
    Dim dim;
    Place place;
    Slot list = no_slot;
    int level = 0, list_level = 0;
    Needs needs;
  };

  const Needs& needs_of(Value v);

  Slot constant_slot(Cell cell, std::int64_t integer, double real);
  Slot number(std::int64_t n);

  Val value(Value v);

  Val remember(Value v, const Val& x, int at);

  Val register_value(Value v);

  // The value, one copy per lane.
  Slot widen(const Val& x);

  Slot operand(const Val& x, bool wide) { return wide ? widen(x) : x.slot; }

  Val operation(Value v, const Needs& n, int& at);

  static DType registers_as(DType t) { return is_coded(t) ? code_dtype(t) : t; }

  Val unary(Run run, const Val& x, Cell to, int at);

  // Values held wider than their dtype are rounded before they are cast.
  Val cast(Value v, Val x, int at);
  Val converted(Val x, DType to, int at);

  Val dims(Value v, const Needs& n, int& at);

  // ---- memory

  DType buffer_dtype(int p) const;
  // True if accesses by different threads must be told apart.
  bool is_shared(int p) const;

  Val load(Value v, const Needs& n, int& at);

  void store(const Stmt& s);

  // ---- positions

  Place position(const Dim& d);

  Place symbol(const Dim& d);

  // A list with the number of each lane.
  Slot listed(const Dim& d);

  Slot linear_slot(Linear sum, int at);

  Place sum(const Dim& d, KnownPosition& k);

  Slot wide_i64(const Op& op, Slot a, Slot b, int at);

  // floor_div, mod, min, max, equal
  Place called(const Dim& d, KnownPosition& k);

  // ---- forgetting

  template <class F>
  void forget_if(const F& is_stale) {
    std::erase_if(known_, [&](auto& entry) {
      if (is_stale(needs_of_node(entry.first), entry.second.level)) return true;
      return false;
    });
    for (auto& [hash, list] : positions_) {
      std::erase_if(list, [&](const KnownPosition& k) { return is_stale(k.needs, k.level); });
      for (KnownPosition& k : list)
        if (k.list != no_slot && is_stale(k.needs, k.list_level)) k.list = no_slot;
    }
  }
  const Needs& needs_of_node(NodeId n);
  void forget_changes(const Changes& c);
  void forget_register(RegId r);
  void forget_memory();
  void forget_tiles();
  void forget_level(int at);

  // ---- statements

  void block(const Block& b);

  void statement(const Stmt& s);

  void barrier(const Stmt&);
  void meet(std::string_view what);

  void declare(const Stmt& s);

  const Val& changed_register(const Stmt& s);

  void assign(const Stmt& s, const Val& x);

  void accumulate(const Stmt& s);

  void reduce_group(const Stmt& s);

  // ---- control

  void open(const Stmt& s, const Block& body, VarId var, bool is_branch);
  // Returns the body's code; emits what was hoisted out of it.
  std::vector<Instr> close();
  void append(const std::vector<Instr>& code);

  void branch(const Stmt& s);

  bool makes_lanes(const Stmt& s) const;

  void loop(const Stmt& s);

  // Reductions over lanes keep one partial result per lane, combined at the end.
  struct Part {
    RegId reg;
    const Op* combine;
    Val outside, lanes;
  };
  std::vector<Part> open_parts(const Stmt& s);

  static Array neutral(const Op& op, DType t);
  static constexpr std::array<DType, cell_count> register_dtypes_ = {
      DType::b1,  DType::i8,  DType::i16, DType::i32, DType::i64, DType::u8,
      DType::u16, DType::u32, DType::u64, DType::f32, DType::f64};

  void lanes_loop(const Stmt& s);

  // ---- tiles

  Val tile_value(Value v, const Needs& n, int& at);

  const Tile& tile(int i) const;

  Window window(const TileWindow& w);

  void tile_statement(const Stmt& s);

  Program& p_;
  const Kernel& kernel_;
  Lanes lanes_ = Lanes::none;
  std::vector<Scope> scopes_;
  int vector_level_ = 0;  // of the scope whose iterations are lanes; 0: none is open
  int masks_ = 0;         // open loops and branches that some lanes leave early
  std::int32_t statement_ = 0;
  Slot one_ = no_slot;
  std::unordered_map<std::string, Slot> sizes_;
  std::unordered_map<std::int64_t, Slot> numbers_;
  std::unordered_map<VarId, Place> variables_;
  std::unordered_map<RegId, Val> registers_;
  std::unordered_map<NodeId, Known> known_;
  std::unordered_map<NodeId, Needs> needs_;
  std::unordered_map<std::uint64_t, std::vector<KnownPosition>> positions_;
};

}  // namespace hone::interpreter
