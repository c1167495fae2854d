// The part of Renderer that overlaps rows: while values for the last loop of a row are reduced over
// lanes, the first loop of the next row runs.
#include <algorithm>

#include "codegen/llvm/expression.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone::llvm {

namespace {

bool is_lanes(const Stmt& s) { return s.kind == Stmt::Kind::loop && s.loop == LoopKind::lanes; }

}  // namespace

// nullopt unless the first loop only reduces memory that this kernel does not write.
std::optional<Renderer::Stages> Renderer::stages_of(const Stmt& rows) {
  const Block& body = rows.body;
  const auto first = std::find_if(body.begin(), body.end(), is_lanes);
  const auto last = std::find_if(body.rbegin(), body.rend(), is_lanes).base();
  if (first == body.end() || last - first < 2) return std::nullopt;
  Stages out{{body.begin(), first + 1}, {first + 1, last - 1}, {last - 1, body.end()}, {}};
  bool may_run_early = true;
  for (const Stmt& s : out.first) {
    may_run_early &= s.kind == Stmt::Kind::declare || is_lanes(s);
    if (s.kind == Stmt::Kind::declare) out.handed_on.push_back(s.reg);
    for (const Stmt& inner : s.body)
      may_run_early &= inner.kind == Stmt::Kind::declare || inner.kind == Stmt::Kind::accumulate ||
                       inner.kind == Stmt::Kind::fetch;
  }
  for (const Stmt& s : body) may_run_early &= s.kind != Stmt::Kind::loop || is_lanes(s);
  for (const Expression& v : values_of(out.first)) may_run_early &= !reads_(v).written;
  return may_run_early ? std::optional(std::move(out)) : std::nullopt;
}

void Renderer::overlapped_rows(const Stmt& s, const Stages& stages) {
  const auto cache = cache_;
  auto run = [&](const Block& part, Value at) {
    cache_ = cache;
    set_variable(s.var, at);
    block(part);
  };
  m_.if_(less(in_.begin, in_.end), [&] {
    run(stages.first, in_.begin);
    Values ready = registers(stages.handed_on);
    m_.loop(in_.begin, in_.end, 1, ready, [&](Value at, const Values& carried) {
      set_registers(stages.handed_on, carried);
      run(stages.middle, at);
      const auto own = registers_;
      Value next = at + 1;
      auto run_ahead = [&] {
        run(stages.first, next);
        return registers(stages.handed_on);
      };
      Values ahead = m_.if_values(less(next, in_.end), run_ahead, [&] { return carried; });
      registers_ = own;
      run(stages.last, at);
      return ahead;
    });
  });
  cache_ = cache;
  forget_memory();
}

}  // namespace hone::llvm
