// Walks over the statements and scalar expressions of a kernel, and copies with replacements.
// Independent of loop orders.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/positions.h"

namespace hone {

// True for a hint, or for loops and branches that contain only hints.
bool only_fetches(const Stmt&);

inline bool is_loop(const Stmt& s) { return s.kind == Stmt::Kind::loop; }

// The symbol of a loop's variable in positions.
inline Dim symbol_of(const Stmt& loop) { return loop_symbol(loop.var, loop.extent); }

// The values that a statement uses itself; not those of its body.
std::vector<Value> values_of(const Stmt&);
// The same for all statements of a block, bodies included.
std::vector<Value> values_of(const Block&);

// A constant as held in kernels: small dtypes as their codes.
Array in_registers(const Array&);

// The memory that a statement's `param` names; null when it names a parameter of the kernel.
const KernelMemory* memory_named(const Kernel&, int param);

void for_each_statement(const Block&, const std::function<void(const Stmt&)>&);
// Visits sizes and positions of a block: extents, offsets of loads and stores, positions used as
// values. Stops early and returns false when the function returns false.
bool for_each_dim(const Block&, const std::function<bool(const Dim&)>&);

// New numbers for a kernel's memory and registers. Registers in positions keep theirs.
struct Renumbering {
  std::vector<int> memory = {};  // of each parameter, then of each piece of memory; empty: the same
  RegId registers = 0;           // is added
};

// The first numbers that no loop and no register of a kernel has.
struct FreeNumbers {
  VarId loop = 0;
  RegId reg = 0;
};
FreeNumbers free_numbers(const Kernel&);

// Copies expressions with positions, values and numbers replaced, also from another graph. In
// statements, loops whose variable is replaced by another get that variable.
class Rewriter {
 public:
  Rewriter(Graph& to, std::vector<Replacement> list, Renumbering numbers = {})
      : graph_(to), list_(std::move(list)), numbers_(std::move(numbers)) {}
  void set(Value from, Value to) { done_[from.node()] = to; }

  Value operator()(Value);
  Dim operator()(const Dim& d) const { return replace(d, list_); }
  void operator()(Block&);

 private:
  Value copy(Value);
  int memory(int number) const {
    return number < 0 || numbers_.memory.empty()
               ? number
               : numbers_.memory.at(static_cast<std::size_t>(number));
  }

  Graph& graph_;
  std::vector<Replacement> list_;
  Renumbering numbers_;
  std::unordered_map<NodeId, Value> done_;
};

// Loop variables and registers that a value depends on, directly or through its operands.
struct Dependences {
  std::unordered_set<VarId> loops;
  std::unordered_set<RegId> registers;
};
Dependences dependences(Value);
void add_dependences(const Dim&, Dependences&);

// An error message: there is no `what` with number `n`, only `count`; `letter` precedes numbers.
std::string unknown_number(std::string_view what, std::string_view letter, std::int64_t n,
                           std::size_t count);

}  // namespace hone
