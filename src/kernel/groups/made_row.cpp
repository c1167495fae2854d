#include "kernel/groups/made_row.h"

#include <algorithm>
#include <utility>

#include "kernel/groups/few_row_product.h"
#include "kernel/nest/loops.h"
#include "kernel/problem/parts.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;
using Operand = Candidate::Operand;

// The loop over the threads of a kernel with one grid loop; null if it is not that simple.
const Stmt* group_loop(const Kernel& k) {
  if (k.body.size() != 1 || !has_grid(k) || k.body[0].body.size() != 1) return nullptr;
  const Stmt& group = k.body[0].body[0];
  return is_loop(group) && group.loop == LoopKind::group ? &group : nullptr;
}

// Whether its positions depend on loops alone, and it does not read what it makes.
bool is_plain(const Kernel& k, int made) {
  bool out = k.sizes.empty() && k.tiles.empty();
  for_each_dim(k.body, [&](const Dim& d) {
    Dependences found;
    add_dependences(d, found);
    return out = out && found.registers.empty();
  });
  std::vector<Value> values = values_of(k.body);
  for (NodeId n : nodes_below(values)) {
    const Value v(&values[0].graph(), n);
    out = out && !(v.is(ops::load) && v.attrs().integer("param") == made);
  }
  for_each_statement(k.body, [&](const Stmt& s) { out = out && s.kind != Kind::copy_async; });
  return out && std::ranges::all_of(
                    k.memory, [](const KernelMemory& m) { return m.scope == MemoryScope::thread; });
}

}  // namespace

std::optional<Kernel> joined_in_groups(const Kernel& first, int made, const Kernel& second,
                                       int read) {
  const Stmt *before = group_loop(first), *after = group_loop(second);
  if (!before || !after || !(first.chunks == Dim(1)) || !(before->extent == after->extent) ||
      !is_plain(first, made) || !second.sizes.empty() || !second.tiles.empty())
    return std::nullopt;
  // New numbers: the parameters of both, the memory of both, and the row.
  std::vector<int> of_first, of_second;
  int next = 0;
  const auto number = [&](std::vector<int>& of, std::size_t count, int row) {
    for (int i = 0; i < static_cast<int>(count); ++i) of.push_back(i == row ? -1 : next++);
  };
  number(of_second, second.params.size(), read), number(of_first, first.params.size(), made);
  number(of_second, second.memory.size(), -1), number(of_first, first.memory.size(), -1);
  of_second[static_cast<std::size_t>(read)] = of_first[static_cast<std::size_t>(made)] = next;
  Kernel out = second;
  out.graph = std::make_shared<Graph>();
  out.params.erase(out.params.begin() + read);
  for (std::size_t i = 0; i < first.params.size(); ++i)
    if (static_cast<int>(i) != made) out.params.push_back(first.params[i]);
  out.memory.insert(out.memory.end(), first.memory.begin(), first.memory.end());
  const KernelParam& row = first.params[static_cast<std::size_t>(made)];
  out.memory.push_back({row.dtype, product(row.dims), 0, MemoryScope::group});
  place_memory(out);
  const FreeNumbers before_first = free_numbers(second);
  std::vector<Replacement> symbols;
  for_each_statement(first.body, [&](const Stmt& s) {
    if (is_loop(s))
      symbols.push_back({symbol_of(s), loop_symbol(s.var + before_first.loop, s.extent)});
  });
  symbols[0].by = 0;                  // its only group
  symbols[1].by = symbol_of(*after);  // its threads
  out.body = second.body;
  Rewriter(*out.graph, {}, {of_second})(out.body);
  Block making = before->body;
  Rewriter(*out.graph, symbols, {of_first, before_first.reg})(making);
  Block& group = out.body[0].body[0].body;
  making.push_back({.kind = Kind::barrier});
  group.insert(std::ranges::find_if_not(group, only_fetches), std::move_iterator(making.begin()),
               std::move_iterator(making.end()));
  return out;
}

namespace {

// A kernel that makes the row, and the product, of groups of as many threads: as many as the
// product wants, or fewer if the row is short.
std::optional<Candidate> with_equal_threads(
    const GroupSpec& spec, const TargetInfo& target, Tuning tuning,
    const std::function<Candidate(const GroupSpec&, const Tuning&)>& make_nest) {
  std::int64_t of_product = 0, of_row = 0;
  const auto best = [&](const GroupSpec& part) {
    if (auto product = few_row_product_candidate(part, target, tuning)) {
      of_product = group_threads(std::get<Kernel>(product->steps.at(0).what));
      return std::move(*product);
    }
    Tuning of_nest = {{"rows", 1}};
    if (of_product > 0) of_nest.emplace_back("threads", of_product);
    Candidate nest = make_nest(part, of_nest);
    of_row = group_threads(std::get<Kernel>(nest.steps.at(0).what));
    return nest;
  };
  constexpr int most_attempts = 3;
  for (int i = 0; i < most_attempts; ++i) {
    std::optional<Candidate> out = row_in_parts(spec, best);
    if (!out || of_product == 0) return std::nullopt;
    if (of_row == of_product) return out;
    if (of_row < of_product) {
      std::erase_if(tuning, [](const auto& each) { return each.first == "threads"; });
      tuning.emplace_back("threads", of_row);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Candidate> made_row_candidate(
    const GroupSpec& spec, const TargetInfo& target, const Tuning& tuning,
    const std::function<Candidate(const GroupSpec&, const Tuning&)>& make_nest) {
  if (target.group_threads == 0) return std::nullopt;
  std::optional<Candidate> parts = with_equal_threads(spec, target, tuning, make_nest);
  if (!parts) return std::nullopt;
  Candidate out = std::move(*parts);
  if (out.steps.size() != 2 || out.temporaries.size() != 1) return std::nullopt;
  Candidate::Step &first = out.steps[0], &second = out.steps[1];
  if (std::ranges::count(second.operands, Operand::Kind::temporary, &Operand::kind) != 1)
    return std::nullopt;
  const auto place_of = [](const Candidate::Step& s) {
    return std::ranges::find(s.operands, Operand::Kind::temporary, &Operand::kind) -
           s.operands.begin();
  };
  const auto made = place_of(first), read = place_of(second);
  std::optional<Kernel> kernel =
      joined_in_groups(std::get<Kernel>(first.what), static_cast<int>(made),
                       std::get<Kernel>(second.what), static_cast<int>(read));
  if (!kernel) return std::nullopt;
  Dim bytes = 0;
  for (const KernelMemory& m : kernel->memory)
    if (m.scope == MemoryScope::group) bytes = bytes + m.elements * Dim(byte_size(m.dtype));
  constexpr std::int64_t of_reductions = 4096;
  if (bytes.high() + of_reductions > target.group_bytes) return std::nullopt;
  second.what = std::move(*kernel);
  second.operands.erase(second.operands.begin() + read);
  first.operands.erase(first.operands.begin() + made);
  second.operands.insert(second.operands.end(), first.operands.begin(), first.operands.end());
  out.steps.erase(out.steps.begin());
  out.temporaries.clear();
  out.name = "rows-made";
  return out;
}

}  // namespace hone
