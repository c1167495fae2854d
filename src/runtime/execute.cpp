#include "runtime/execute.h"

namespace hone {

namespace {

using Clock = std::chrono::steady_clock;

const GroupRecord* group_of(const Variant& v, const Step& s) {
  return s.group == Step::no_group ? nullptr : &v.groups[s.group];
}

std::string step_name(const Variant& v, const Step& s) {
  const GroupRecord* g = group_of(v, s);
  if (!g) return s.name.empty() ? "a step" : "step '" + s.name + "'";
  return g->origins.empty() ? g->name : cat(g->name, " (", g->origins, ")");
}

std::int64_t& calls_of(Step::Kind kind, RunCounters& c) {
  if (kind == Step::Kind::library) return c.library_calls;
  return kind == Step::Kind::host ? c.host_calls : c.copies;
}

}  // namespace

void StepRunner::run(const BoundProgram& program, const Variant& variant,
                     std::span<void* const> addresses) {
  const bool may_stop = deadline.has_value() || stop.stop_possible();
  for (std::uint32_t at = 0; at < program.ops.size();) {
    const BoundOp& op = program.ops[at++];
    void* const* operands = addresses.data() + op.first;
    if (may_stop) check_stop(variant, *op.step);
    if (trace) {
      const Clock::time_point start = Clock::now();
      at = step(program, op, operands, at);
      stream_.wait();
      trace({*op.step, group_of(variant, *op.step), start, Clock::now()});
    } else {
      at = step(program, op, operands, at);
    }
  }
  stream_.wait();
}

std::uint32_t StepRunner::step(const BoundProgram& program, const BoundOp& op,
                               void* const* operands, std::uint32_t next) {
  switch (op.kind) {
    case BoundOp::Kind::launch:
      stream_.launch(
          {op.entry, operands, program.scalars.data() + op.scalars, op.chunks, op.is_small});
      ++counters.launches;
      break;
    case BoundOp::Kind::call:
      stream_.call(*program.calls[op.target], operands, op.is_small);
      ++calls_of(op.step->kind, counters);
      break;
    case BoundOp::Kind::jump:
      return op.target;
    case BoundOp::Kind::jump_unless:
      stream_.wait();
      if (!*static_cast<const bool*>(operands[0])) return op.target;
      break;
    case BoundOp::Kind::wait:
      stream_.wait();
      break;
    case BoundOp::Kind::refuse:
      throw UserError(program.refusals[op.target]);
    case BoundOp::Kind::require:
      stream_.wait();
      if (const std::int64_t n = *static_cast<const std::int64_t*>(operands[0]); n != 0)
        throw UserError(program.refusals[op.target], n, program.refusals[op.target + 1]);
      break;
  }
  return next;
}

void StepRunner::check_stop(const Variant& v, const Step& s) const {
  if (stop.stop_requested())
    throw Cancelled(Cancelled::Why::stopped,
                    cat("run: was stopped by its caller before ", step_name(v, s)));
  if (deadline && Clock::now() >= *deadline)
    throw Cancelled(Cancelled::Why::deadline,
                    cat("run: its deadline passed before ", step_name(v, s)));
}

}  // namespace hone
