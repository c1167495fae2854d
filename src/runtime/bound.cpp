#include "runtime/bound.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "base/process_memory.h"
#include "plan/footprint.h"

namespace hone {

namespace {

// Below both, a step takes a few microseconds, about what waking another thread costs.
constexpr std::int64_t small_bytes = 32 << 10, small_flops = 200'000;

class StepBinder {
 public:
  StepBinder(const Executable& executable, const Variant& variant,
             std::span<const std::int64_t> values)
      : executable_(executable), variant_(variant), values_(values) {
    sizes_.resize(variant.buffers.size(), -1);
    out_.values.assign(values.begin(), values.end());
  }

  BoundProgram run() { return run(executable_.steps(variant_), 0, false); }

  BoundProgram run(const std::vector<Step>& steps, std::size_t first, bool in_body) {
    out_.arena_bytes = static_cast<std::size_t>(at_least_zero(variant_.arena_bytes, "arena"));
    out_.arena_lower_bound = static_cast<std::size_t>(value(variant_.arena_lower_bound));
    const std::size_t before = calls_library() ? taken_memory() : 0;
    add_steps(steps, in_body, first);
    if (!variant_.measured.empty()) note_scratch_of_tails();
    out_.pointers.resize(out_.addresses.size());
    out_.table_bytes = heap_bytes(out_.ops) + heap_bytes(out_.addresses) +
                       heap_bytes(out_.scalars) + heap_bytes(out_.calls) +
                       heap_bytes(out_.refusals) + heap_bytes(out_.values) +
                       heap_bytes(out_.tails) + heap_bytes(out_.pointers);
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
  std::int64_t value(const Dim& d) const { return evaluate(d, executable_.symbols(), values_); }
  std::int64_t at_least_zero(const Dim& d, std::string_view what) const {
    const std::int64_t n = value(d);
    if (n < 0) throw UserError("plan: ", what, " has size ", n, " (", d, ")");
    return n;
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

  void add_measure(const std::vector<Step>& steps, std::size_t at, bool in_body) {
    const Step& s = steps[at];
    BoundOp op{.kind = BoundOp::Kind::measure, .step = &s};
    add_operands(s, op);
    op.target = static_cast<std::uint32_t>(out_.tails.size());
    BoundTail& tail = out_.tails.emplace_back();
    tail.steps = &steps;
    tail.first = at + 1;
    tail.in_body = in_body;
    tail.size = s.scalars[0];
    tail.symbol = tail.size.is_symbol() ? symbol_index(tail.size) : BoundTail::none;
    tail.most = value(s.scalars[1]);
    push(op);
  }

  std::size_t symbol_index(const Dim& symbol) const {
    const auto it = std::ranges::find(executable_.symbols(), symbol.name(), &Dim::name);
    return static_cast<std::size_t>(it - executable_.symbols().begin());
  }

  // Kernels' scratch is planned for sizes as large as they can be, so that it is known now.
  void note_scratch_of_tails() {
    for_each_step(executable_.steps(variant_), [&](const Step& s) {
      if (s.kind != Step::Kind::launch || s.scratch_bytes == Dim(0)) return;
      try {
        out_.kernel_scratch =
            std::max(out_.kernel_scratch, static_cast<std::size_t>(value(s.scratch_bytes)));
      } catch (const UserError&) {
        // Of a body that these sizes make impossible.
      }
    });
  }

  // A body that these sizes make impossible is refused when it is reached, not before.
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
    if (s.device != 0 || s.stream != 0)
      throw UserError("plan: a step is for device ", s.device, ", stream ", s.stream,
                      ", and this runtime drives one device in order; make the plan for one");
    switch (s.kind) {
      case Step::Kind::launch:
        return add_launch(s);
      case Step::Kind::library:
      case Step::Kind::host:
        return add_call(s);
      case Step::Kind::copy:
        return add_copy(s);
      case Step::Kind::branch:
        return add_branch(s);
      case Step::Kind::loop:
        return add_loop(s);
      case Step::Kind::call:
        return add_steps(s.body, true);
      case Step::Kind::wait:
        return push({.kind = BoundOp::Kind::wait, .step = &s});
      case Step::Kind::measure:
        throw InternalError("a measure step is not bound by itself");
      case Step::Kind::refuse:
        if (s.scalars.empty() || value(s.scalars[0]) != value(s.scalars[1])) add_refusal(s, s.name);
        return;
      case Step::Kind::require:
        return add_require(s);
      case Step::Kind::collective:
        throw UserError(
            "plan: collective '", s.name,
            "' needs several devices, and this runtime drives one; make the plan for one");
    }
  }

  void push(BoundOp op) { out_.ops.push_back(op); }

  void add_refusal(const Step& s, std::string message) {
    push({.kind = BoundOp::Kind::refuse,
          .target = static_cast<std::uint32_t>(out_.refusals.size()),
          .step = &s});
    out_.refusals.push_back(std::move(message));
  }

  // Its number is put between two texts.
  void add_require(const Step& s) {
    BoundOp op{.kind = BoundOp::Kind::require,
               .target = static_cast<std::uint32_t>(out_.refusals.size()),
               .step = &s};
    add_operands(s, op);
    out_.refusals.push_back(s.name + " ");
    out_.refusals.push_back(cat(" is out of range, which is ", value(s.scalars[0]), " to ",
                                value(s.scalars[1]), "; check the values of the inputs"));
    push(op);
  }

  void add_launch(const Step& s) {
    BoundOp op{.kind = BoundOp::Kind::launch, .step = &s};
    op.entry = executable_.entry(s.index);
    op.chunks = at_least_zero(s.chunks, "a launch");
    op.scalars = static_cast<std::uint32_t>(out_.scalars.size());
    for (const Dim& d : s.scalars) out_.scalars.push_back(value(d));
    add_operands(s, op);
    const auto scratch = static_cast<std::size_t>(at_least_zero(s.scratch_bytes, "scratch"));
    out_.kernel_scratch = std::max(out_.kernel_scratch, scratch);
    const std::size_t pieces = scratch / buffer_alignment + (scratch % buffer_alignment > 0);
    if (pieces > std::numeric_limits<std::uint32_t>::max())
      throw UserError("plan: step '", s.name, "' needs ", scratch, " bytes of scratch memory");
    op.target = static_cast<std::uint32_t>(pieces);
    if (op.chunks > 0) push(op);
  }

  void add_call(const Step& s) {
    BoundOp op{.kind = BoundOp::Kind::call, .step = &s};
    add_operands(s, op);
    std::vector<CallOperand> operands;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      operands.push_back({s.operands[i].dtype, numbers(s.operands[i].dims),
                          numbers(s.operands[i].strides), s.written[i]});
    push_call(op, executable_.device()->bind(CallRequest{s.name, operands, s.settings}));
  }

  void push_call(BoundOp op, std::unique_ptr<BoundCall> call) {
    op.target = static_cast<std::uint32_t>(out_.calls.size());
    out_.library_scratch = std::max(out_.library_scratch, call->scratch_bytes());
    out_.calls.push_back(std::move(call));
    push(op);
  }

  void add_copy(const Step& s) {
    BoundOp op{.kind = BoundOp::Kind::call, .step = &s};
    add_operands(s, op);
    const View &from = s.operands[0], &to = s.operands[1];
    StridedCopy copy;
    copy.element_bytes = static_cast<std::size_t>(byte_size(from.dtype));
    copy.dims = numbers(from.dims);
    if (numbers(to.dims) != copy.dims)
      throw UserError("plan: copies ", Shape(from.dims), " to ", Shape(to.dims));
    copy.from_strides = byte_strides(from);
    copy.to_strides = byte_strides(to);
    push_call(op, executable_.device()->bind(copy));
  }

  void add_branch(const Step& s) {
    const std::uint32_t test = add_jump_unless(s);
    add_steps(s.body, true);
    const std::uint32_t end = here();
    push({.kind = BoundOp::Kind::jump, .step = &s});
    out_.ops[test].target = here();
    add_steps(s.otherwise, true);
    out_.ops[end].target = here();
  }

  void add_loop(const Step& s) {
    const std::uint32_t start = here();
    add_steps(s.otherwise, true);
    const std::uint32_t test = add_jump_unless(s);
    add_steps(s.body, true);
    push({.kind = BoundOp::Kind::jump, .target = start, .step = &s});
    out_.ops[test].target = here();
  }

  std::uint32_t add_jump_unless(const Step& s) {
    BoundOp op{.kind = BoundOp::Kind::jump_unless, .step = &s};
    add_operands(s, op);
    push(op);
    return here() - 1;
  }

  void add_operands(const Step& s, BoundOp& op) {
    op.first = static_cast<std::uint32_t>(out_.addresses.size());
    std::int64_t bytes = 0;
    for (const View& v : s.operands) {
      const PlanBuffer& b = variant_.buffers[v.buffer];
      const std::int64_t offset = value(v.offset);
      bytes += check_window(v, offset);
      const std::int64_t base = b.kind == PlanBuffer::Kind::arena ? value(b.offset) : 0;
      out_.addresses.push_back({b.kind, b.index, checked_add(base, offset)});
    }
    const bool has_flops = s.group != Step::no_group;
    op.is_small =
        bytes < small_bytes && (!has_flops || value(variant_.groups[s.group].flops) < small_flops);
  }

  // Bytes that the window holds; throws when it leaves its buffer.
  std::int64_t check_window(const View& v, std::int64_t offset) {
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
    return checked_mul(count, element);
  }

  // Evaluated at first use: a body that is never reached may have buffers without meaning.
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
    switch (b.kind) {
      case PlanBuffer::Kind::param:
        require(type_bytes(executable_.plan().params[b.index].type));
        break;
      case PlanBuffer::Kind::result:
        require(
            static_cast<std::size_t>(at_least_zero(result_bytes(variant_, b.index), "a result")));
        break;
      case PlanBuffer::Kind::weight:
        require(executable_.weight(b.index).size());
        break;
      case PlanBuffer::Kind::prepared:
        require(executable_.prepared(b.index).size());
        break;
      case PlanBuffer::Kind::arena: {
        const std::int64_t offset = value(b.offset);
        if (offset < 0 || offset % static_cast<std::int64_t>(buffer_alignment) != 0 ||
            checked_add(offset, bytes) > static_cast<std::int64_t>(out_.arena_bytes))
          throw UserError("plan: a buffer of ", bytes, " bytes at ", offset,
                          " does not fit an arena of ", out_.arena_bytes,
                          "; compile the plan again");
      }
    }
    return sizes_[index] = bytes;
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
  const Variant& variant_;
  std::span<const std::int64_t> values_;
  BoundProgram out_;
  std::vector<std::int64_t> sizes_;  // of buffers; -1: not evaluated yet
};

}  // namespace

bool holds(const Guard& g, std::int64_t a, std::int64_t b) {
  switch (g.kind) {
    case Guard::Kind::equal:
      return a == b;
    case Guard::Kind::not_equal:
      return a != b;
    case Guard::Kind::less_equal:
      return a <= b;
    case Guard::Kind::greater:
      return a > b;
  }
  return false;
}

namespace {

Dims sorted(Dims out) {
  std::sort(out.begin(), out.end(), [](const Dim& a, const Dim& b) { return a.name() < b.name(); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

Dims input_symbols(const Plan& plan) {
  Dims out;
  for (const PlanParam& p : plan.params)
    for (const Dim& d : p.type.shape.dims)
      if (d.is_symbol()) out.push_back(d);
  return sorted(std::move(out));
}

Dims all_symbols(const Plan& plan) {
  Dims out = input_symbols(plan);
  for (const Variant& v : plan.variants)
    for (const DimBound& b : v.measured) out.push_back(b.symbol);
  return sorted(std::move(out));
}

std::int64_t evaluate(const Dim& d, std::span<const Dim> symbols,
                      std::span<const std::int64_t> values) {
  if (d.is_number()) return d.number();
  return d.eval([&](std::string_view name) {
    auto it = std::lower_bound(symbols.begin(), symbols.end(), name,
                               [](const Dim& s, std::string_view n) { return s.name() < n; });
    if (it == symbols.end() || it->name() != name)
      throw UserError("plan: size '", name, "' is given by no input; compile the plan again");
    const std::int64_t n = values[static_cast<std::size_t>(it - symbols.begin())];
    if (n == not_known)
      throw UserError("plan: size '", name,
                      "' is used before data decides it; compile the plan again");
    return n;
  });
}

BoundProgram bind_steps(const Executable& executable, const Variant& variant,
                        std::span<const std::int64_t> values) {
  return StepBinder(executable, variant, values).run();
}

void bind_tail(const Executable& executable, const Variant& variant, const BoundProgram& from,
               BoundTail& tail, std::int64_t n) {
  std::vector<std::int64_t> values = from.values;
  if (tail.symbol != BoundTail::none) values[tail.symbol] = n;
  tail.program = std::make_unique<BoundProgram>(
      StepBinder(executable, variant, values).run(*tail.steps, tail.first, tail.in_body));
  tail.value = n;
}

std::size_t bound_bytes(const BoundProgram& p) {
  std::size_t bytes = p.table_bytes;
  for (const BoundTail& t : p.tails)
    if (t.program) bytes += sizeof(BoundProgram) + bound_bytes(*t.program);
  return bytes;
}

}  // namespace hone
