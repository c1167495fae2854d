// Walks over the statements and scalar expressions of a kernel, and copies with replacements. Knows
// nothing of loop orders.
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

// A hint, or hints in loops and branches.
bool only_fetches(const Stmt&);

inline bool is_loop(const Stmt& s) { return s.kind == Stmt::Kind::loop; }

// What positions call the variable of a loop.
inline Dim symbol_of(const Stmt& loop) { return loop_symbol(loop.var, loop.extent); }

// The values that a statement holds itself; not those of its body.
std::vector<Value> values_of(const Stmt&);
// Of all statements of a block, bodies included.
std::vector<Value> values_of(const Block&);

// A constant as kernels hold it: small dtypes as their codes.
Array in_registers(const Array&);

void for_each_statement(const Block&, const std::function<void(const Stmt&)>&);
// Sizes and positions of a block: extents, offsets of loads and stores, positions used as values.
// Ends early when the function returns false; then the result is false.
bool for_each_dim(const Block&, const std::function<bool(const Dim&)>&);

// Copies expressions with positions and values replaced.
class Rewriter {
 public:
  Rewriter(Graph& graph, std::vector<Replacement> list) : graph_(graph), list_(std::move(list)) {}
  void set(Value from, Value to) { done_[from.node()] = to; }

  Value operator()(Value);
  Dim operator()(const Dim& d) const { return replace(d, list_); }
  void operator()(Block&);

 private:
  Value copy(Value);

  Graph& graph_;
  std::vector<Replacement> list_;
  std::unordered_map<NodeId, Value> done_;
};

// Loop variables and registers that a value depends on, all the way down.
struct Dependences {
  std::unordered_set<VarId> loops;
  std::unordered_set<RegId> registers;
};
Dependences dependences(Value);
void add_dependences(const Dim&, Dependences&);

// Says that the thing of this letter and number is none of `count` that there are.
std::string unknown_number(std::string_view what, std::string_view letter, std::int64_t n,
                           std::size_t count);

}  // namespace hone
