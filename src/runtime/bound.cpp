#include "runtime/bound.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "plan/footprint.h"
#include "runtime/sizes.h"

namespace hone {

namespace {

class StepBinder {
 public:
  StepBinder(const Executable& executable, const Variant& variant,
             std::span<const std::int64_t> values)
      : executable_(executable),
        entry_(executable.entry_of(variant)),
        variant_(variant),
        value_of_(entry_.symbols, values) {
    sizes_.resize(variant.buffers.size(), -1);
    out_.values.assign(values.begin(), values.end());
  }

  BoundProgram run() { return run(executable_.steps(variant_), 0, false); }

  BoundProgram run(const std::vector<Step>& steps, std::size_t first, bool in_body) {
    out_.needs.resize(executable_.devices().size());
    for (std::size_t i = 0; i < variant_.devices.size(); ++i) {
      const PlanDevice& d = variant_.devices[i];
      DeviceNeeds& needs = out_.needs[executable_.device_of(variant_, i)];
      const bool prepares = executable_.purpose() == Executable::Purpose::prepare;
      needs.arena_bytes = static_cast<std::size_t>(
          prepares ? end_of_used(steps, i) : at_least_zero(d.arena_bytes, "arena"));
      needs.arena_lower_bound =
          prepares ? needs.arena_bytes : static_cast<std::size_t>(value(d.arena_lower_bound));
    }
    const std::size_t before = calls_library() ? taken_memory() : 0;
    add_steps(steps, in_body, first);
    if (!variant_.measured.empty()) note_scratch_of_tails();
    out_.places.resize(out_.addresses.size());
    out_.table_bytes =
        heap_bytes(out_.ops) + heap_bytes(out_.addresses) + heap_bytes(out_.reaches) +
        heap_bytes(out_.scalars) + heap_bytes(out_.calls) + heap_bytes(out_.transfers) +
        heap_bytes(out_.hosts) + heap_bytes(out_.refusals) + heap_bytes(out_.values) +
        heap_bytes(out_.needs) + heap_bytes(out_.tails) + heap_bytes(out_.places);
    for (const std::string& r : out_.refusals) out_.table_bytes += heap_bytes(r);
    if (before > 0) {
      const std::size_t now = taken_memory(), ours = before + out_.table_bytes;
      out_.library_bytes = now > ours ? now - ours : 0;
    }
    return std::move(out_);
  }

 private:
  bool calls_library() const {
    bool found = false;
    for_each_step(executable_.steps(variant_),
                  [&](const Step& s) { found |= s.kind == Step::Kind::library; });
    return found;
  }
  std::int64_t value(const Dim& d) const { return value_of_(d); }
  // End of the arena bytes that these steps use on a device of the variant. Offsets of prepare
  // steps' buffers do not depend on a run's sizes, while the size of the whole arena may have no
  // valid value.
  std::int64_t end_of_used(const std::vector<Step>& steps, std::size_t device) const {
    std::int64_t end = 0;
    for_each_step(steps, [&](const Step& s) {
      for (const View& v : s.operands) {
        const PlanBuffer& b = variant_.buffers[v.buffer];
        if (b.kind == PlanBuffer::Kind::arena && b.device == device)
          end = std::max(end, checked_add(value(b.offset), at_least_zero(b.bytes, "a buffer")));
      }
    });
    return end;
  }
  std::int64_t at_least_zero(const Dim& d, std::string_view what) const {
    const std::int64_t n = value(d);
    if (n < 0)
      throw UserError("plan: ", what, " has size ", n, " (", d,
                      "), expected 0 or more; compile the plan again");
    return n;
  }
  std::uint32_t device_of(const Step& s) const { return executable_.device_of(variant_, s.device); }
  const std::shared_ptr<Device>& device(const Step& s) const {
    return executable_.device(device_of(s));
  }
  DeviceNeeds& needs_of(const Step& s) { return out_.needs[device_of(s)]; }

  BoundOp op_of(BoundOp::Kind kind, const Step& s) const {
    BoundOp op{.kind = kind, .step = &s};
    op.stream = static_cast<std::uint16_t>(executable_.first_stream(device_of(s)) + s.stream);
    return op;
  }
  std::uint32_t here() const { return static_cast<std::uint32_t>(out_.ops.size()); }

  void add_steps(const std::vector<Step>& steps, bool in_body, std::size_t first = 0) {
    for (std::size_t i = first; i < steps.size(); ++i) {
      const bool is_last = steps[i].kind == Step::Kind::measure;
      const auto add_one = [&] { is_last ? add_measure(steps, i, in_body) : add(steps[i]); };
      in_body ? guarded(steps[i], add_one) : add_one();
      if (is_last) return;
    }
  }

  // Includes the measure steps that follow it on its stream, if the places that they read are known
  // now: the host then waits only once.
  void add_measure(const std::vector<Step>& steps, std::size_t at, bool in_body) {
    BoundOp op = op_of(BoundOp::Kind::measure, steps[at]);
    add_operands(steps[at], op);
    op.target = static_cast<std::uint32_t>(out_.tails.size());
    BoundTail tail;
    tail.sizes.push_back(size_of(steps[at]));
    for (++at; at < steps.size() && is_measured_with(steps[at], *op.step); ++at) {
      BoundOp same_op;
      add_operands(steps[at], same_op);
      tail.sizes.push_back(size_of(steps[at]));
    }
    tail.steps = &steps;
    tail.first = at;
    tail.in_body = in_body;
    out_.tails.push_back(std::move(tail));
    push(op);
  }

  bool is_measured_with(const Step& s, const Step& first) {
    if (s.kind != Step::Kind::measure || s.device != first.device || s.stream != first.stream)
      return false;
    try {
      check_window(s.operands[0], value(s.operands[0].offset));
      return true;
    } catch (const UserError&) {
      return false;  // bound, and refused, after the first size is known
    }
  }

  BoundTail::Size size_of(const Step& s) const {
    return {.step = &s,
            .symbol = s.scalars[0].is_symbol() ? symbol_index(s.scalars[0]) : BoundTail::none,
            .size = s.scalars[0],
            .most = s.scalars[1]};
  }

  std::size_t symbol_index(const Dim& symbol) const {
    const auto it = std::ranges::find(entry_.symbols, symbol.name(), &Dim::name);
    return static_cast<std::size_t>(it - entry_.symbols.begin());
  }

  // Kernels' scratch uses the upper bounds of measured sizes, so it is known now.
  void note_scratch_of_tails() {
    for_each_step(executable_.steps(variant_), [&](const Step& s) {
      if (s.kind != Step::Kind::launch || s.scratch_bytes == Dim(0)) return;
      try {
        std::size_t& most = needs_of(s).kernel_scratch;
        most = std::max(most, static_cast<std::size_t>(value(s.scratch_bytes)));
      } catch (const UserError&) {
        // The step is in a body that is impossible at these sizes.
      }
    });
  }

  // A body that is impossible at these sizes is refused only when it is reached.
  template <class F>
  void guarded(const Step& s, const F& add_one) {
    const std::size_t ops = out_.ops.size();
    try {
      add_one();
    } catch (const UserError& e) {
      out_.ops.resize(ops);
      add_refusal(s, e.what());
    }
  }

  void add(const Step& s) {
    switch (s.kind) {
      case Step::Kind::launch:
        return add_launch(s);
      case Step::Kind::library:
        return add_call(s);
      case Step::Kind::host:
        return add_host(s);
      case Step::Kind::copy:
        return add_copy(s);
      case Step::Kind::branch:
        return add_branch(s);
      case Step::Kind::loop:
        return add_loop(s);
      case Step::Kind::call:
        return add_steps(s.body, true);
      case Step::Kind::record:
        return add_event(s, BoundOp::Kind::record);
      case Step::Kind::wait:
        return add_event(s, BoundOp::Kind::wait);
      case Step::Kind::measure:
        throw InternalError("a measure step is not bound by itself");
      case Step::Kind::refuse:
        if (s.scalars.empty() || value(s.scalars[0]) != value(s.scalars[1])) add_refusal(s, s.name);
        return;
      case Step::Kind::require:
        return add_require(s);
      case Step::Kind::collective:
        throw UserError("plan: collective '", s.name,
                        "' is unknown to this version; compile the plan again");
    }
  }

  void push(BoundOp op) {
    using Kind = BoundOp::Kind;
    out_.waits_for_host |= op.kind == Kind::jump_unless || op.kind == Kind::require ||
                           op.kind == Kind::measure || op.kind == Kind::host;
    out_.ops.push_back(op);
  }

  void add_event(const Step& s, BoundOp::Kind kind) {
    BoundOp op = op_of(kind, s);
    op.target = s.index;
    push(op);
  }

  void add_refusal(const Step& s, std::string message) {
    BoundOp op = op_of(BoundOp::Kind::refuse, s);
    op.target = static_cast<std::uint32_t>(out_.refusals.size());
    push(op);
    out_.refusals.push_back(std::move(message));
  }

  // The message has the number between two strings.
  void add_require(const Step& s) {
    BoundOp op = op_of(BoundOp::Kind::require, s);
    op.target = static_cast<std::uint32_t>(out_.refusals.size());
    add_operands(s, op);
    out_.refusals.push_back(s.name + " is ");
    out_.refusals.push_back(cat(", expected ", value(s.scalars[0]), " to ", value(s.scalars[1]),
                                "; check the values of the inputs"));
    push(op);
  }

  void add_launch(const Step& s) {
    BoundOp op = op_of(BoundOp::Kind::launch, s);
    op.entry = executable_.entry(device_of(s), s.index);
    op.chunks = at_least_zero(s.chunks, "a launch");
    op.scalars = static_cast<std::uint32_t>(out_.scalars.size());
    for (const Dim& d : s.scalars) out_.scalars.push_back(value(d));
    add_operands(s, op);
    const auto scratch = static_cast<std::size_t>(at_least_zero(s.scratch_bytes, "scratch"));
    needs_of(s).kernel_scratch = std::max(needs_of(s).kernel_scratch, scratch);
    const std::size_t pieces =
        scratch / BoundOp::scratch_unit + (scratch % BoundOp::scratch_unit > 0);
    if (pieces > std::numeric_limits<std::uint32_t>::max())
      throw UserError("plan: step '", s.name, "' needs ", scratch, " bytes of scratch memory");
    op.target = static_cast<std::uint32_t>(pieces);
    if (op.chunks > 0 && writes_elements(s)) push(op);
  }

  // A kernel without results may read operands that have no elements either: what does not change
  // in a loop is loaded before it.
  bool writes_elements(const Step& s) const {
    const auto is_zero = [&](const Dim& d) { return value(d) == 0; };
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (s.written[i] && std::ranges::none_of(s.operands[i].dims, is_zero)) return true;
    return false;
  }

  void add_call(const Step& s) {
    BoundOp op = op_of(BoundOp::Kind::call, s);
    add_operands(s, op);
    push_call(op, device(s)->bind(CallRequest{s.name, call_operands(s), s.settings}));
  }

  std::vector<CallOperand> call_operands(const Step& s) const {
    std::vector<CallOperand> out;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      out.push_back({s.operands[i].dtype, numbers(s.operands[i].dims),
                     numbers(s.operands[i].strides), s.written[i]});
    return out;
  }

  void push_call(BoundOp op, std::unique_ptr<BoundCall> call) {
    op.target = static_cast<std::uint32_t>(out_.calls.size());
    std::size_t& scratch = needs_of(*op.step).library_scratch;
    scratch = std::max(scratch, call->scratch_bytes());
    out_.calls.push_back(std::move(call));
    push(op);
  }

  void add_host(const Step& s) {
    BoundOp op = op_of(BoundOp::Kind::host, s);
    add_operands(s, op);
    op.target = static_cast<std::uint32_t>(out_.hosts.size());
    out_.hosts.emplace_back(s.name, call_operands(s), s.settings);
    push(op);
  }

  void add_copy(const Step& s) {
    const View &from = s.operands[0], &to = s.operands[1];
    if (is_one_place(from, to)) {
      for (const View* v : {&from, &to}) check_window(*v, value(v->offset));
      return;
    }
    StridedCopy copy;
    copy.element_bytes = static_cast<std::size_t>(byte_size(from.dtype));
    copy.dims = numbers(from.dims);
    if (numbers(to.dims) != copy.dims)
      throw UserError("plan: copies ", Shape(from.dims), " to ", Shape(to.dims));
    if (variant_.buffers[from.buffer].device != variant_.buffers[to.buffer].device)
      return add_transfer(s, copy);
    BoundOp op = op_of(BoundOp::Kind::call, s);
    add_operands(s, op);
    copy.from_strides = byte_strides(from);
    copy.to_strides = byte_strides(to);
    push_call(op, device(s)->bind(copy));
  }

  // The plan's check ensures that both are dense.
  void add_transfer(const Step& s, const StridedCopy& copy) {
    const std::uint16_t from = variant_.buffers[s.operands[0].buffer].device,
                        to = variant_.buffers[s.operands[1].buffer].device;
    BoundTransfer transfer;
    transfer.is_upload = s.device == to;
    transfer.host =
        static_cast<std::uint16_t>(executable_.device_of(variant_, transfer.is_upload ? from : to));
    if (!executable_.device(transfer.host)->shares_host_memory())
      throw UserError("plan: copies from ", variant_.devices[from].name, " to ",
                      variant_.devices[to].name,
                      ", neither of which uses host memory; copy through host memory");
    std::int64_t bytes = static_cast<std::int64_t>(copy.element_bytes);
    for (std::int64_t d : copy.dims) bytes = checked_mul(bytes, d);
    transfer.bytes = static_cast<std::size_t>(bytes);
    BoundOp op = op_of(BoundOp::Kind::transfer, s);
    add_operands(s, op);
    op.target = static_cast<std::uint32_t>(out_.transfers.size());
    out_.transfers.push_back(transfer);
    push(op);
  }

  // Both views are of the same memory, so there is nothing to copy.
  bool is_one_place(const View& a, const View& b) {
    const BoundAddress x = address_of(a), y = address_of(b);
    return x.kind == y.kind && x.device == y.device && x.index == y.index && x.offset == y.offset &&
           numbers(a.dims) == numbers(b.dims) && byte_strides(a) == byte_strides(b);
  }

  // A result that overwrites a parameter has the parameter's address.
  BoundAddress address_of(const View& v) {
    const PlanBuffer& b = variant_.buffers[v.buffer];
    const std::int64_t offset = value(v.offset);
    const auto at = static_cast<std::uint16_t>(executable_.device_of(variant_, b.device));
    if (b.kind == PlanBuffer::Kind::arena)
      return {b.kind, at, 0, checked_add(value(b.offset), offset)};
    const std::int32_t param =
        b.kind == PlanBuffer::Kind::result ? entry_.plan->result_alias.at(b.index) : -1;
    if (param < 0) return {b.kind, at, b.index, offset};
    return {PlanBuffer::Kind::param, at, static_cast<std::uint32_t>(param), offset};
  }

  void add_branch(const Step& s) {
    const std::uint32_t test = add_jump_unless(s);
    add_steps(s.body, true);
    const std::uint32_t end = here();
    push(op_of(BoundOp::Kind::jump, s));
    out_.ops[test].target = here();
    add_steps(s.otherwise, true);
    out_.ops[end].target = here();
  }

  void add_loop(const Step& s) {
    const std::uint32_t start = here();
    add_steps(s.otherwise, true);
    const std::uint32_t test = add_jump_unless(s);
    add_steps(s.body, true);
    BoundOp back = op_of(BoundOp::Kind::jump, s);
    back.target = start;
    push(back);
    out_.ops[test].target = here();
  }

  std::uint32_t add_jump_unless(const Step& s) {
    BoundOp op = op_of(BoundOp::Kind::jump_unless, s);
    add_operands(s, op);
    push(op);
    return here() - 1;
  }

  void add_operands(const Step& s, BoundOp& op) {
    op.first = static_cast<std::uint32_t>(out_.addresses.size());
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const View& v = s.operands[i];
      const PlanBuffer& b = variant_.buffers[v.buffer];
      const std::int64_t offset = value(v.offset);
      OperandReach& reach = out_.reaches.emplace_back();
      reach.is_written = i < s.written.size() && s.written[i];
      bytes += check_window(v, offset, &reach);
      if (reach.is_written && b.kind == PlanBuffer::Kind::result && changes_state(b.index, offset))
        op.updates_state = out_.updates_states = true;
      const std::int64_t base = b.kind == PlanBuffer::Kind::arena ? value(b.offset) : 0;
      out_.addresses.push_back(
          {b.kind, static_cast<std::uint16_t>(executable_.device_of(variant_, b.device)), b.index,
           checked_add(base, offset)});
    }
    const GroupRecord* group = s.group == Step::no_group ? nullptr : &variant_.groups[s.group];
    // A step that updates a large buffer in place moves less than its views hold.
    if (const std::int64_t moved = group ? value(group->bytes) : 0; moved > 0)
      bytes = std::min(bytes, moved);
    const DeviceLimits& limits = device(s)->limits();
    op.is_small =
        bytes < limits.small_bytes && (!group || value(group->flops) < limits.small_flops);
  }

  // Whether a write there changes the value of a state. What lies behind a value that grows is no
  // part of it until the run has ended.
  bool changes_state(std::uint32_t result, std::int64_t offset) const {
    if (entry_.plan->updated_by(result) == PlanEntry::no_state) return false;
    const PlanParam& p = *entry_.plan->stored_to(result);
    if (!p.capacity) return true;
    const std::size_t axis = p.capacity->axis;
    const Dims strides = dense_strides(whole_type(p.type, p.capacity).shape);
    const std::int64_t row = value(strides[axis]) * byte_size(p.type.dtype);
    if (row == 0 || p.capacity->size == 0) return false;
    return offset / row % p.capacity->size < value(p.type.shape.dims[axis]);
  }

  // Size of the window in bytes; throws when it exceeds its buffer.
  std::int64_t check_window(const View& v, std::int64_t offset, OperandReach* reach = nullptr) {
    const std::int64_t size = buffer_size(v.buffer);
    std::int64_t low = 0, high = 0, count = 1;
    for (std::size_t i = 0; i < v.dims.size(); ++i) {
      const std::int64_t n = at_least_zero(v.dims[i], "an operand");
      count = checked_mul(count, n);
      const std::int64_t span = n > 1 ? checked_mul(n - 1, value(v.strides[i])) : 0;
      (span < 0 ? low : high) = checked_add(span < 0 ? low : high, span);
    }
    if (count == 0) return 0;
    const std::int64_t element = byte_size(v.dtype);
    const std::int64_t first = checked_add(offset, checked_mul(low, element));
    const std::int64_t end = checked_add(offset, checked_mul(checked_add(high, 1), element));
    if (first < 0 || end > size)
      throw UserError("plan: a view of ", v.dtype, Shape(v.dims), " reaches bytes ", first, " to ",
                      end, " of a buffer of ", size, "; compile the plan again");
    if (reach) reach->begin = first - offset, reach->end = end - offset;
    return checked_mul(count, element);
  }

  // Evaluated at first use: a body that is never reached may have buffers of invalid size.
  std::int64_t buffer_size(std::uint32_t index) {
    if (sizes_[index] >= 0) return sizes_[index];
    const PlanBuffer& b = variant_.buffers[index];
    const std::int64_t bytes = at_least_zero(b.bytes, "a buffer");
    const auto refuse = [&](std::int64_t have) {
      throw UserError("plan: a buffer needs ", bytes, " bytes, but has ", have,
                      "; compile the plan again");
    };
    const auto require = [&](std::size_t have) {
      if (bytes > static_cast<std::int64_t>(have)) refuse(static_cast<std::int64_t>(have));
    };
    const std::uint32_t device = executable_.device_of(variant_, b.device);
    switch (b.kind) {
      case PlanBuffer::Kind::param:
        require(type_bytes(
            whole_type(entry_.plan->params[b.index].type, entry_.plan->params[b.index].capacity)));
        break;
      case PlanBuffer::Kind::result:
        require(result_size(b.index));
        break;
      case PlanBuffer::Kind::weight:
        require(executable_.weight(device, b.index).size);
        break;
      case PlanBuffer::Kind::prepared:
        require(executable_.prepared(device, b.index).size);
        break;
      case PlanBuffer::Kind::arena: {
        const std::int64_t offset = value(b.offset);
        const std::size_t arena = out_.needs[device].arena_bytes;
        const std::size_t alignment = executable_.device(device)->limits().alignment;
        if (offset < 0 || offset % static_cast<std::int64_t>(alignment) != 0 ||
            checked_add(offset, bytes) > static_cast<std::int64_t>(arena))
          throw UserError("plan: a buffer of ", bytes, " bytes at ", offset,
                          " does not fit an arena of ", arena, "; compile the plan again");
      }
    }
    return sizes_[index] = bytes;
  }

  std::size_t result_size(std::uint32_t result) const {
    if (const PlanParam* p = entry_.plan->stored_to(result); p && p->capacity)
      return type_bytes(whole_type(p->type, p->capacity));
    return static_cast<std::size_t>(at_least_zero(result_bytes(variant_, result), "a result"));
  }

  std::size_t type_bytes(const Type& t) const {
    return static_cast<std::size_t>(at_least_zero(byte_count(t), "a parameter"));
  }
  std::vector<std::int64_t> numbers(const Dims& dims) const {
    std::vector<std::int64_t> out;
    for (const Dim& d : dims) out.push_back(value(d));
    return out;
  }
  std::vector<std::int64_t> byte_strides(const View& v) const {
    std::vector<std::int64_t> out;
    for (const Dim& d : v.strides) out.push_back(checked_mul(value(d), byte_size(v.dtype)));
    return out;
  }

  const Executable& executable_;
  const LoadedEntry& entry_;
  const Variant& variant_;
  mutable SizeValues value_of_;
  BoundProgram out_;
  std::vector<std::int64_t> sizes_;  // of buffers; -1: not evaluated yet
};

}  // namespace

BoundProgram bind_steps(const Executable& executable, const Variant& variant,
                        std::span<const std::int64_t> values) {
  return StepBinder(executable, variant, values).run();
}

void bind_tail(const Executable& executable, const Variant& variant, const BoundProgram& from,
               BoundTail& tail, std::span<const std::int64_t> found) {
  std::vector<std::int64_t> values = from.values;
  for (std::size_t i = 0; i < found.size(); ++i) {
    BoundTail::Size& size = tail.sizes[i];
    const std::int64_t n = found[i],
                       most = evaluate(size.most, executable.entry_of(variant).symbols, values);
    size.value = -1;
    if (n < 0 || n > most || (size.size.is_number() && size.size.number() != n))
      throw UserError(size.step->name, ": size ", size.size, " is ", n,
                      " for these inputs, expected 0 to ", most,
                      size.size.is_symbol() ? cat("; compile the model with --dim ", size.size,
                                                  "=0..", std::max(n, most))
                                            : std::string());
    if (size.symbol != BoundTail::none) values[size.symbol] = n;
  }
  tail.program = std::make_unique<BoundProgram>(
      StepBinder(executable, variant, values).run(*tail.steps, tail.first, tail.in_body));
  for (std::size_t i = 0; i < found.size(); ++i) tail.sizes[i].value = found[i];
}

std::size_t bound_bytes(const BoundProgram& p) {
  std::size_t bytes = p.table_bytes;
  for (const BoundTail& t : p.tails)
    if (t.program) bytes += sizeof(BoundProgram) + bound_bytes(*t.program);
  return bytes;
}

}  // namespace hone
