#include "runtime/execute.h"

#include <algorithm>
#include <utility>

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
  return kind == Step::Kind::library ? c.library_calls : c.copies;
}

}  // namespace

StreamSet::StreamSet(const Executable& executable, const std::shared_ptr<ThreadPool>& pool,
                     const Allocators& allocators, std::shared_ptr<Stream> callers)
    : executable_(executable) {
  if (callers) streams_.push_back(std::move(callers));
  for (std::size_t i = streams_.size(); i < executable.streams(); ++i) {
    const std::uint32_t d = executable.stream_device(i);
    streams_.push_back(
        executable.device(d)->open_stream(pool, d < allocators.size() ? allocators[d] : nullptr));
  }
}

void StreamSet::reserve_scratch(const BoundProgram& p) {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (const std::size_t bytes = p.needs[executable_.stream_device(i)].scratch(); bytes > 0)
      streams_[i]->reserve_scratch(bytes);
}

Event& StreamSet::event_of(std::size_t i) {
  events_.resize(streams_.size());
  if (!events_[i]) events_[i] = executable_.device(executable_.stream_device(i))->make_event();
  return *events_[i];
}

void StreamSet::fork() {
  if (streams_.size() == 1) return;
  streams_[0]->record(event_of(0));
  for (std::size_t i = 1; i < streams_.size(); ++i) streams_[i]->wait(*events_[0]);
}

void StreamSet::join() {
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    streams_[i]->record(event_of(i));
    streams_[0]->wait(*events_[i]);
  }
}

void StreamSet::synchronize() {
  if (streams_.size() == 1) return streams_[0]->synchronize();
  std::exception_ptr error;
  for (const std::shared_ptr<Stream>& s : streams_) try {
      s->synchronize();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  if (error) std::rethrow_exception(error);
}

void StepRunner::run(const Variant& variant, BoundProgram& program, const Memory& memory) {
  submit(variant, program, memory);
  streams_.synchronize();
}

void StepRunner::submit(const Variant& variant, BoundProgram& program, const Memory& memory) {
  const Clock::time_point start = Clock::now();
  try {
    run_steps(variant, program, memory);
  } catch (...) {
    // No work may use the caller's memory after this returns.
    try {
      streams_.synchronize();
    } catch (...) {
      has_lost_error_ = true;  // only the first error is reported
    }
    throw;
  }
  counters.submitting += Clock::now() - start;
}

void StepRunner::run_steps(const Variant& variant, BoundProgram& program, const Memory& memory) {
  const bool may_stop = deadline.has_value() || stop.stop_possible();
  frames_.clear();
  frames_.push_back({&program, 0});
  last_ = &program;
  has_updated_ = has_lost_error_ = false;
  fetched_of_ = nullptr;
  if (std::exchange(events_of_, &variant) != &variant) events_.clear();
  if (!trace && !may_stop && replayed(program, memory)) return;
  place(program, memory);
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.at == frame.program->ops.size()) {
      frames_.pop_back();
      continue;
    }
    const BoundProgram& now = *frame.program;
    const std::uint32_t at = frame.at++;
    const BoundOp& op = now.ops[at];
    if (may_stop && !has_updated_) check_stop(variant, *op.step);
    has_updated_ = has_updated_ || op.updates_state;
    if (op.kind == BoundOp::Kind::measure) {
      BoundProgram& tail = measured(variant, *frame.program, at);
      place(tail, memory);
      frames_.push_back({&tail, 0});
      continue;
    }
    frame.at = trace ? traced(variant, now, at) : step(now, at);
  }
}

std::uint32_t StepRunner::traced(const Variant& variant, const BoundProgram& program,
                                 std::uint32_t at) {
  const BoundOp& op = program.ops[at];
  Stream& stream = streams_[op.stream];
  around_.resize(streams_.size());
  auto& [before, after] = around_[op.stream];
  if (!before) {
    Device& device = *executable_.device(executable_.stream_device(op.stream));
    before = device.make_event(true);
    after = device.make_event(true);
  }
  const Clock::time_point start = Clock::now();
  stream.record(*before);
  const std::uint32_t next = step(program, at);
  stream.record(*after);
  stream.synchronize();
  const Clock::time_point end = Clock::now();
  trace({*op.step, group_of(variant, *op.step), start, end, after->ms_since(*before)});
  return next;
}

// The first runs at a placement do one-time allocations, so they are not recorded. Even one launch
// is replayed faster than it is launched.
bool StepRunner::replayed(BoundProgram& p, const Memory& memory) {
  constexpr int first_runs = 2;
  if (p.ops.empty()) return false;
  Recorded* at = std::ranges::find(p.recorded, memory.placement, &Recorded::placement);
  if (at == p.recorded.end()) {
    at = std::ranges::min_element(p.recorded, {}, &Recorded::last_use);
    *at = {.placement = memory.placement};
  }
  at->last_use = ++p.uses;
  if (!at->recording) {
    if (at->runs++ != first_runs) return false;
    place(p, memory);
    at->recording = recorded(p);
    if (!at->recording) return false;
  }
  has_updated_ = p.updates_states;
  streams_[p.ops[0].stream].replay(*at->recording);
  for (const BoundOp& op : p.ops)
    ++(op.kind == BoundOp::Kind::launch ? counters.launches : calls_of(op.step->kind, counters));
  ++counters.replays;
  return true;
}

// Null if it cannot be recorded.
std::unique_ptr<Recording> StepRunner::recorded(BoundProgram& p) {
  using Kind = BoundOp::Kind;
  for (const BoundOp& op : p.ops)
    if ((op.kind != Kind::launch && op.kind != Kind::call) || op.stream != p.ops[0].stream)
      return nullptr;
  Stream& stream = streams_[p.ops[0].stream];
  if (!stream.start_recording()) return nullptr;
  const RunCounters before = counters;
  try {
    for (std::uint32_t at = 0; at < p.ops.size(); ++at) step(p, at);
  } catch (...) {
    stream.finish_recording();
    throw;
  }
  counters = before;
  return stream.finish_recording();
}

void StepRunner::place(BoundProgram& p, const Memory& memory) const {
  if (p.placement == memory.placement) return;
  for (std::size_t i = 0; i < p.addresses.size(); ++i) p.places[i] = memory.address(p.addresses[i]);
  p.placement = memory.placement;
}

// Reads measured sizes; returns the program of the steps that follow.
BoundProgram& StepRunner::measured(const Variant& variant, BoundProgram& program,
                                   std::uint32_t at) {
  BoundTail& tail = program.tails[program.ops[at].target];
  found_.resize(tail.sizes.size());
  bool is_same = tail.program != nullptr;
  for (std::uint32_t i = 0; i < found_.size(); ++i) {
    found_[i] = read(program, at, i);
    is_same = is_same && found_[i] == tail.sizes[i].value;
  }
  if (!is_same) {
    bind_tail(executable_, variant, program, tail, found_);
    streams_.reserve_scratch(*tail.program);
    ++counters.binds;
  }
  if (!tail.in_body) last_ = tail.program.get();
  return *tail.program;
}

namespace {

std::uint32_t operands_of(const BoundProgram& p, const BoundOp& op) {
  return op.kind == BoundOp::Kind::measure
             ? static_cast<std::uint32_t>(p.tails[op.target].sizes.size())
             : 1;
}

bool is_read_by_host(BoundOp::Kind kind) {
  using Kind = BoundOp::Kind;
  return kind == Kind::jump_unless || kind == Kind::require || kind == Kind::measure;
}

}  // namespace

// Reads an operand that the host needs for a decision: a bool or an i64.
std::int64_t StepRunner::read(const BoundProgram& program, std::uint32_t at,
                              std::uint32_t operand) {
  const BoundOp& op = program.ops[at];
  const std::uint32_t i = op.first + operand;
  if (const Device& device = device_of(op); device.shares_host_memory()) {
    if (operand == 0) streams_[op.stream].synchronize();
    const std::byte* from = device.host_address(program.places[i]);
    if (op.kind == BoundOp::Kind::jump_unless) return *reinterpret_cast<const bool*>(from);
    return *reinterpret_cast<const std::int64_t*>(from);
  }
  if (fetched_of_ != &program || i < fetched_from_ || i >= fetched_to_) fetch(program, at);
  // Each value is used once: it may have changed the next time.
  fetched_from_ = i + 1;
  return fetched_[fetched_.size() - (fetched_to_ - i)];
}

// Downloads the operands of this op and of those directly after it on the same stream, up to the
// first that is not a `require`.
void StepRunner::fetch(const BoundProgram& program, std::uint32_t at) {
  const BoundOp& first = program.ops[at];
  fetched_of_ = &program;
  fetched_from_ = fetched_to_ = first.first;
  std::uint32_t end = at;
  for (; end < program.ops.size(); ++end) {
    const BoundOp& op = program.ops[end];
    if (!is_read_by_host(op.kind) || op.stream != first.stream) break;
    fetched_to_ += operands_of(program, op);
    if (op.kind != BoundOp::Kind::require && ++end) break;
  }
  fetched_.assign(fetched_to_ - fetched_from_, 0);
  std::size_t next = 0;
  for (std::uint32_t k = at; k < end; ++k) {
    const BoundOp& op = program.ops[k];
    const std::size_t bytes = op.kind == BoundOp::Kind::jump_unless ? 1 : sizeof(std::int64_t);
    for (std::uint32_t i = 0; i < operands_of(program, op); ++i, ++next) {
      streams_[op.stream].download(
          std::as_writable_bytes(std::span(&fetched_[next], 1)).first(bytes),
          program.places[op.first + i]);
      counters.downloaded_bytes += static_cast<std::int64_t>(bytes);
    }
  }
  streams_[first.stream].synchronize();
}

// Created at first use by the device that records it.
Event& StepRunner::event(const BoundOp& op) {
  if (events_.size() <= op.target) events_.resize(op.target + 1);
  std::unique_ptr<Event>& e = events_[op.target];
  if (!e) e = executable_.device(executable_.stream_device(op.stream))->make_event();
  return *e;
}

void StepRunner::transfer(const BoundProgram& program, const BoundOp& op) {
  const BoundTransfer& t = program.transfers[op.target];
  const DeviceMemory from = program.places[op.first], to = program.places[op.first + 1];
  const Device& host = *executable_.device(t.host);
  Stream& stream = streams_[op.stream];
  (t.is_upload ? counters.uploaded_bytes : counters.downloaded_bytes) +=
      static_cast<std::int64_t>(t.bytes);
  if (t.is_upload)
    stream.upload(to, {host.host_address(from), t.bytes});
  else
    stream.download({host.host_address(to), t.bytes}, from);
}

std::uint32_t StepRunner::step(const BoundProgram& program, std::uint32_t at) {
  const BoundOp& op = program.ops[at];
  Stream& stream = streams_[op.stream];
  const auto operands = [&] {
    return std::span<const DeviceMemory>(program.places.data() + op.first,
                                         op.step->operands.size());
  };
  switch (op.kind) {
    case BoundOp::Kind::launch: {
      const PlanKernel& kernel = executable_.plan().kernels[op.step->index];
      stream.launch({op.entry,
                     operands(),
                     program.scalars.data() + op.scalars,
                     op.chunks,
                     kernel.group_threads,
                     kernel.group_bytes,
                     op.target * BoundOp::scratch_unit,
                     op.is_small,
                     {program.reaches.data() + op.first, op.step->operands.size()}});
      ++counters.launches;
      break;
    }
    case BoundOp::Kind::call:
      stream.call(*program.calls[op.target], operands(), op.is_small);
      ++calls_of(op.step->kind, counters);
      break;
    case BoundOp::Kind::transfer:
      transfer(program, op);
      ++counters.copies;
      break;
    case BoundOp::Kind::host:
      program.hosts[op.target].run(device_of(op), stream, operands());
      ++counters.host_calls;
      break;
    case BoundOp::Kind::jump:
      return op.target;
    case BoundOp::Kind::jump_unless:
      if (read(program, at, 0) == 0) return op.target;
      break;
    case BoundOp::Kind::record:
      stream.record(event(op));
      break;
    case BoundOp::Kind::wait:
      if (op.target < events_.size() && events_[op.target]) stream.wait(*events_[op.target]);
      break;
    case BoundOp::Kind::measure:
      break;  // run_steps() opens another program
    case BoundOp::Kind::refuse:
      throw UserError(program.refusals[op.target]);
    case BoundOp::Kind::require:
      if (const std::int64_t n = read(program, at, 0); n != 0)
        throw UserError(program.refusals[op.target], n, program.refusals[op.target + 1]);
      break;
  }
  return at + 1;
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
