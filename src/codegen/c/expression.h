// Writes scalar expressions and statements of a kernel as C: one constant for each value, loops as
// loops. Used for loop nests and for the holes of skeletons.
#pragma once

#include <functional>
#include <optional>
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
  Renderer(Text&, Helpers&, const Kernel&);

  // The C expression that is a loop variable's value, an operand as it stands.
  void set_variable(VarId, std::string);
  // The C variable that a register is.
  void set_register(RegId, std::string);
  // Forgets the names of values; for text outside of their scope.
  void forget() { cache_.clear(); }

  // An operand that is this value.
  std::string value(const Value&);
  // The first element that a load without condition reads, as a pointer; its conversion to the
  // dtype of the load's value, given what lies there.
  std::string address(const Value& load);
  std::string converted(const Value& load, const std::string& element);
  // A sum as it stands; an operand.
  std::string position(const Dim&);
  std::string factor(const Dim&);
  // The name of a parameter's memory.
  std::string buffer(int param);

  void block(const Block&);
  // Names what the block reads and computes without the variable, before a loop over it that has at
  // least one turn.
  void hoist(VarId var, const Block&);
  // for (name from 0 to count) block, turns independent of each other. `var` is `first` + name.
  void independent(VarId var, const std::string& first, const std::string& count, const Block&,
                   const std::function<void(const std::string& name)>& before = {});

  // Parameters whose memory was read or written.
  const std::unordered_set<int>& used_params() const { return used_params_; }
  // The text mentions `zero`, which must be hone_zero.
  bool uses_zero() const { return uses_zero_; }

 private:
  // A lanes loop whose turns are divided: `base` + `turn`, turn < count.
  struct Strip {
    VarId var = -1;
    std::string base, turn, count;
    std::int64_t width = 1;  // count is at most this
  };
  // Expressions.
  std::string emit(const Value&);
  std::string name_value(const Value&, const std::string& expression);
  std::string emit_load(const Value&);
  std::string operation(const Value&, const std::vector<std::string>& operands);
  bool is_open_product(const Value&) const;  // floats, not computed yet
  std::string sum_with(const Value& product, const std::string& addend);
  std::string cast(const Value&, const std::string& x);
  std::string cast_number(DType from, DType to, const std::string& x);
  std::string bitcast(const Value&, const std::string& x);
  std::string to_memory(DType, const std::string& x);
  std::string from_memory(DType, const std::string& element);

  // Positions and memory.
  std::string sum_text(const DimExpr&);
  std::string symbol(const Dim&);
  std::string number_of(const Dim&, bool is_short);
  std::string element_at(int param, const Dim& offset);
  DType buffer_dtype(int param) const;

  // Statements.
  void statement(const Stmt&);
  void declare(const Stmt&);
  void assign(const Stmt&);
  void accumulate(const Stmt&);
  void store(const Stmt&);
  void branch(const Stmt&);
  void loop(const Stmt&);
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
  std::unordered_map<NodeId, std::string> cache_;
  ReadsOf reads_;
  std::unordered_set<int> used_params_;
  bool loads_conditionally_ = false, uses_zero_ = false;
  std::optional<Dim> lane_;           // of the strip that is being written
  std::unordered_set<RegId> arrays_;  // registers of a strip with an element for each turn
  int next_ = 0;
};

// reg op value, as accumulate means it.
std::string combined(Helpers&, const Op&, DType, const std::string& a, const std::string& b);
// What leaves every value as it is under `combine`.
std::string neutral(const Op&, DType);

}  // namespace hone::c
