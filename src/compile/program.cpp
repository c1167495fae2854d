#include "compile/program.h"

#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "base/error.h"
#include "compile/joined_tables.h"
#include "compile/store.h"
#include "plan/content_hash.h"
#include "plan/entry.h"
#include "verify/model/derivatives.h"

namespace hone {

namespace {

void renumber(std::vector<Step>& steps, const Plan& from, JoinedTables& tables) {
  for_each_step(steps, [&](Step& s) {
    if (s.kind == Step::Kind::launch) s.index = tables.kernel(from, s.index);
  });
}

PlanEntry with_tables(const Plan& from, JoinedTables& tables) {
  PlanEntry e = from.main();
  for (Variant& v : e.variants) {
    renumber(v.steps, from, tables);
    renumber(v.prepare, from, tables);
    for (PlanBuffer& b : v.buffers) {
      if (b.kind == PlanBuffer::Kind::weight) b.index = tables.weight(from, b.index);
      if (b.kind == PlanBuffer::Kind::prepared) b.index = tables.prepared(from, b.index);
    }
  }
  return e;
}

Source source_of(const ProgramGraph& program, const ProgramEntry& e) {
  const std::string name =
      program.entries.size() > 1 ? cat(program.name, ".", e.name) : program.name;
  return {name, {{{}, e.function}}, {}};
}

void refuse_several_devices(const ProgramGraph& program, std::string_view strategy) {
  if (strategy == "multi")
    throw UserError(program.name,
                    ": its states are in the memory of one device, so multi cannot compile it; "
                    "choose another strategy");
}

// Judges the derivatives of an entry at its smallest sizes that are tried.
void judge(const ProgramGraph& program, const ProgramEntry& e, Verification verification,
           const std::function<void(const std::string&)>& progress) {
  if (e.derivatives.empty() || verification == Verification::none) return;
  const Source source = source_of(program, e);
  std::vector<std::optional<Array>> starts;
  for (const std::int32_t s : e.states)
    starts.push_back(s < 0 ? std::nullopt : program.states[static_cast<std::size_t>(s)].start);
  const JudgedDerivatives judged = judge_derivatives(
      e.recorded, e.derivatives, sizes_to_check(source, source.variants[0]), starts);
  if (!progress) return;
  progress(cat(source.name, ": ", judged.agree, " derivatives agree with differences"));
  for (const std::string& u : judged.undecided)
    progress(cat(source.name, ": not judged: the derivative of ", u));
}

// Strategies of the backend that compile a program's entries: its own name, its libraries, auto.
std::vector<std::string> strategies_of(const Backend& backend) {
  std::vector<std::string> out = {std::string(backend.name)};
  for (std::string_view library : backend.libraries) out.emplace_back(library);
  out.emplace_back("auto");
  return out;
}

}  // namespace

Plan joined(const ProgramGraph& program, const std::vector<Plan>& plans) {
  HONE_ASSERT(plans.size() == program.entries.size() && !plans.empty(), "one plan for each entry");
  Plan out = plans[0];
  out.name = program.name;
  for (const StateVariable& s : program.states)
    add_state(out, {s.name, s.group, s.type, 0, s.start, s.open_axis});
  out.entries.clear();
  out.kernels.clear();
  out.binaries.clear();
  out.weights.clear();
  out.prepared.clear();
  JoinedTables tables(out);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    PlanEntry& e = out.entries.emplace_back(with_tables(plans[i], tables));
    e.name = program.entries[i].name;
    e.states = program.entries[i].states;
    out.measured = out.measured && plans[i].measured;
  }
  if (out.content) out.content = content_hash_when_read(out);
  return out;
}

Plan compile(const ProgramGraph& program, const CompileOptions& options) {
  check(program);
  refuse_several_devices(program, options.strategy);
  CompileOptions on_one = options;
  if (!on_one.backend) on_one.backend = &backend_of(options);
  std::vector<Plan> plans;
  for (const ProgramEntry& e : program.entries)
    judge(program, e, options.verification, options.progress);
  for (const ProgramEntry& e : program.entries)
    plans.push_back(compile(source_of(program, e), on_one));
  return joined(program, plans);
}

OptimizedProgram optimize(const ProgramGraph& program, const OptimizeRequest& request) {
  check(program);
  for (const std::string& s : request.strategies) refuse_several_devices(program, s);
  OptimizeRequest on_one = request;
  if (!on_one.compile.backend) on_one.compile.backend = &backend_of(request.compile);
  if (on_one.strategies.empty()) on_one.strategies = strategies_of(*on_one.compile.backend);
  for (const ProgramEntry& e : program.entries)
    judge(program, e, request.compile.verification, request.progress);
  OptimizedProgram out;
  std::vector<Plan> plans;
  for (const ProgramEntry& e : program.entries) {
    out.entries.push_back(optimize(source_of(program, e), on_one));
    plans.push_back(out.entries.back().plan);
  }
  out.plan = joined(program, plans);
  return out;
}

}  // namespace hone
