#include "runtime/execute.h"

#include <algorithm>

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

void StepRunner::run(const Executable& executable, const Variant& variant, BoundProgram& program,
                     const Memory& memory) {
  const bool may_stop = deadline.has_value() || stop.stop_possible();
  frames_.clear();
  frames_.push_back({&program, 0});
  last_ = &program;
  place(program, memory);
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.at == frame.program->ops.size()) {
      frames_.pop_back();
      continue;
    }
    const BoundProgram& now = *frame.program;
    const BoundOp& op = now.ops[frame.at++];
    void* const* operands = now.pointers.data() + op.first;
    if (may_stop) check_stop(variant, *op.step);
    if (op.kind == BoundOp::Kind::measure) {
      BoundProgram& tail = measured(executable, variant, *frame.program, op);
      place(tail, memory);
      frames_.push_back({&tail, 0});
      continue;
    }
    if (trace) {
      const Clock::time_point start = Clock::now();
      frame.at = step(now, op, operands, frame.at);
      stream_.wait();
      trace({*op.step, group_of(variant, *op.step), start, Clock::now()});
    } else {
      frame.at = step(now, op, operands, frame.at);
    }
  }
  stream_.wait();
}

void StepRunner::place(BoundProgram& p, const Memory& memory) const {
  if (p.placement == memory.placement) return;
  for (std::size_t i = 0; i < p.addresses.size(); ++i)
    p.pointers[i] = memory.address(p.addresses[i]);
  p.placement = memory.placement;
}

// Reads the size, and gives the program of the steps that follow.
BoundProgram& StepRunner::measured(const Executable& executable, const Variant& variant,
                                   BoundProgram& program, const BoundOp& op) {
  stream_.wait();
  std::int64_t n = 0;
  executable.device()->download(std::as_writable_bytes(std::span(&n, 1)),
                                static_cast<const std::byte*>(program.pointers[op.first]));
  BoundTail& tail = program.tails[op.target];
  const bool fits = n >= 0 && n <= tail.most && (!tail.size.is_number() || tail.size.number() == n);
  if (!fits)
    throw UserError(op.step->name, ": the data makes size ", tail.size, " ", n,
                    ", the plan is made for 0 to ", tail.most);
  if (!tail.program || tail.value != n) {
    tail.value = -1;
    bind_tail(executable, variant, program, tail, n);
    stream_.reserve_scratch(std::max(tail.program->kernel_scratch, tail.program->library_scratch));
    ++counters.binds;
  }
  if (!tail.in_body) last_ = tail.program.get();
  return *tail.program;
}

std::uint32_t StepRunner::step(const BoundProgram& program, const BoundOp& op,
                               void* const* operands, std::uint32_t next) {
  switch (op.kind) {
    case BoundOp::Kind::launch:
      stream_.launch({op.entry, operands, program.scalars.data() + op.scalars, op.chunks,
                      op.target * buffer_alignment, op.is_small});
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
    case BoundOp::Kind::measure:
      break;  // run() opens another program
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
