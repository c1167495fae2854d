#include "kernel/interpret/interpret.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "kernel/interpret/control.h"
#include "kernel/interpret/program.h"

namespace hone {

namespace interpreter {

std::string statement_text(const Program& p, std::int32_t statement) {
  const Stmt* s = p.statements.at(static_cast<std::size_t>(statement));
  return cat("statement ", statement, " '", print(p.kernel, *s), "'");
}

namespace control {

namespace {

std::int64_t& variable(Frame& f, const Instr& i) { return *f.at<std::int64_t>(i.to); }

// Iterations of the grid in this run.
std::int64_t first_of_grid(const Frame& f) { return f.program.grids > 1 ? 0 : f.begin; }
std::int64_t end_of_grid(const Frame& f, const Instr& i) {
  const std::int64_t extent = f.integer(i.a);
  if (f.program.grids > 1) return extent;
  if (f.end > extent) fail(f, i, 0, cat("the grid has ", extent, " iterations, not ", f.end));
  return f.end;
}

// Returns whether any lane is active.
bool mask_by(Frame& f, const bool* outer, bool* mask, auto&& holds) {
  bool any = false;
  for (std::int64_t l = 0; l < f.width; ++l) {
    mask[l] = (!outer || outer[l]) && holds(l);
    any = any || mask[l];
  }
  f.mask = mask;
  return any;
}

void pop_mask(Frame& f) {
  f.mask = f.masks.back();
  f.masks.pop_back();
}

void leave_lanes(Frame& f) {
  f.width = 1;
  f.in_vector = false;
}

}  // namespace

void loop_begin(Frame& f, const Instr& i) {
  variable(f, i) = 0;
  if (f.integer(i.a) <= 0) f.next += i.jump;
}
void loop_next(Frame& f, const Instr& i) {
  if (++variable(f, i) < f.integer(i.a)) f.next -= i.jump;
}

void grid_begin(Frame& f, const Instr& i) {
  f.iteration = variable(f, i) = first_of_grid(f);
  ++f.epoch;
  if (f.iteration >= end_of_grid(f, i)) f.next += i.jump;
}
void grid_next(Frame& f, const Instr& i) {
  f.iteration = ++variable(f, i);
  ++f.epoch;
  if (f.iteration < end_of_grid(f, i)) f.next -= i.jump;
}

namespace {

bool masked_iteration(Frame& f, const Instr& i) {
  const std::int64_t at = variable(f, i);
  const std::int64_t* limits = f.at<std::int64_t>(i.a);
  return mask_by(f, f.masks.back(), f.at<bool>(i.b),
                 [&](std::int64_t l) { return at < limits[l]; });
}

}  // namespace

void masked_begin(Frame& f, const Instr& i) {
  variable(f, i) = 0;
  f.masks.push_back(f.mask);
  if (masked_iteration(f, i)) return;
  pop_mask(f);
  f.next += i.jump;
}
void masked_next(Frame& f, const Instr& i) {
  ++variable(f, i);
  if (masked_iteration(f, i))
    f.next -= i.jump;
  else
    pop_mask(f);
}

void strip_begin(Frame& f, const Instr& i) {
  const std::int64_t extent = f.integer(i.a);
  variable(f, i) = 0;
  if (extent <= 0) {
    f.next += i.jump;
    return;
  }
  f.in_vector = true;
  f.width = std::min(f.program.width, extent);
}
void strip_next(Frame& f, const Instr& i) {
  const std::int64_t extent = f.integer(i.a);
  std::int64_t& at = variable(f, i);
  at += f.width;
  if (at >= extent) return leave_lanes(f);
  f.width = std::min(f.program.width, extent - at);
  f.next -= i.jump;
}

void grid_strip_begin(Frame& f, const Instr& i) {
  f.iteration = variable(f, i) = f.begin;
  const std::int64_t end = end_of_grid(f, i);
  if (f.begin >= end) {
    f.next += i.jump;
    return;
  }
  f.in_vector = true;
  f.width = std::min(f.program.width, end - f.begin);
}
void grid_strip_next(Frame& f, const Instr& i) {
  f.iteration = variable(f, i) += f.width;
  if (f.iteration >= f.end) return leave_lanes(f);
  f.width = std::min(f.program.width, f.end - f.iteration);
  f.next -= i.jump;
}

void group_begin(Frame& f, const Instr& i) {
  variable(f, i) = 0;
  f.in_vector = true;
  f.width = f.program.width;
  ++f.epoch;
  f.copies.assign(static_cast<std::size_t>(f.width), {});
  f.batches.assign(f.copies.size(), 0);
}
void group_end(Frame& f, const Instr& i) {
  for (std::size_t t = 0; t < f.copies.size(); ++t)
    if (!f.copies[t].empty())
      fail(f, i, static_cast<std::int64_t>(t), "an asynchronous copy is never waited for");
  leave_lanes(f);
}

void skip_unless(Frame& f, const Instr& i) {
  if (!*f.at<bool>(i.a)) f.next += i.jump;
}
void skip(Frame& f, const Instr& i) { f.next += i.jump; }

void mask_if(Frame& f, const Instr& i) {
  const bool* condition = f.at<bool>(i.a);
  std::copy_n(condition, f.width, f.at<bool>(i.b));
  f.masks.push_back(f.mask);
  if (!mask_by(f, f.mask, f.at<bool>(i.to), [&](std::int64_t l) { return condition[l]; }))
    f.next += i.jump;
}
void mask_else(Frame& f, const Instr& i) {
  const bool* condition = f.at<bool>(i.b);
  if (!mask_by(f, f.masks.back(), f.at<bool>(i.to), [&](std::int64_t l) { return !condition[l]; }))
    f.next += i.jump;
}
void mask_end(Frame& f, const Instr&) { pop_mask(f); }

void meet(Frame& f, const Instr& i) {
  if (!f.mask) return;
  const std::int64_t here = std::count(f.mask, f.mask + f.width, true);
  if (here == f.width) return;
  const std::int64_t missing = std::find(f.mask, f.mask + f.width, false) - f.mask;
  fail(f, i, missing, cat("only ", here, " of ", f.width, " threads of the group reach it"));
}
void barrier(Frame& f, const Instr&) { ++f.epoch; }
void near_barrier(Frame& f, const Instr& i) {
  ++f.near_epoch;
  for (std::int64_t first = 0; f.mask && first < f.width; first += f.program.neighbours)
    for (std::int64_t l = first; l < first + f.program.neighbours; ++l)
      if (f.mask[l] != f.mask[first])
        fail(f, i, l, cat("only some of ", f.program.neighbours, " neighbouring threads reach it"));
}
void end(Frame& f, const Instr&) { f.next = nullptr; }

}  // namespace control

}  // namespace interpreter

struct Interpreter::Prepared {
  interpreter::Program program;
};

Interpreter::Interpreter(const Kernel& k) {
  auto prepared = std::make_unique<Prepared>();
  prepared->program.kernel = k;
  interpreter::compile(prepared->program);
  prepared_ = std::move(prepared);
}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;

namespace interpreter {

namespace {

// Bytes aligned to 64.
class Bytes {
 public:
  explicit Bytes(std::size_t size) : storage_(size / sizeof(Line) + 1) {}
  std::byte* data() { return storage_.front().bytes; }
  void fill(int byte) { std::memset(data(), byte, storage_.size() * sizeof(Line)); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> storage_;
};

// One run: memory, slots and marks.
class Machine {
 public:
  Machine(const Program& p, std::span<const std::span<std::byte>> params,
          std::span<const std::int64_t> sizes, const InterpretChecks& checks)
      : p_(p), f_{.program = p, .checks = checks}, slots_(p.frame_bytes) {
    const Kernel& k = p.kernel;
    if (params.size() != k.params.size() || sizes.size() != k.sizes.size())
      throw UserError("kernel '", k.name, "': takes ", k.params.size(), " parameters and ",
                      k.sizes.size(), " sizes, got ", params.size(), " and ", sizes.size());
    f_.slots = slots_.data();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes_[k.sizes[i].name()] = sizes[i];
      *f_.at<std::int64_t>(p.sizes[i]) = sizes[i];
      if (sizes[i] < k.sizes[i].low() || sizes[i] > k.sizes[i].high())
        throw UserError("kernel '", k.name, "': size ", k.sizes[i], " is ", sizes[i], ", not from ",
                        k.sizes[i].low(), " to ", k.sizes[i].high());
    }
    for (const Program::Constant& c : p.constants) set(c);
    for (std::size_t i = 0; i < params.size(); ++i) add_param(k.params[i], params[i]);
    add_memory();
  }

  std::int64_t size(const Dim& d) const {
    return d.eval([&](std::string_view name) {
      auto it = sizes_.find(std::string(name));
      if (it == sizes_.end()) throw UserError("size ", name, " is not handed to the kernel");
      return it->second;
    });
  }

  void run(std::int64_t begin, std::int64_t end) {
    f_.begin = begin, f_.end = end;
    f_.next = p_.code.data();
    while (f_.next) {
      const Instr& i = *f_.next++;
      i.run(f_, i);
    }
  }

 private:
  void set(const Program::Constant& c) {
    auto put = [&](auto x) { std::memcpy(f_.slots + c.slot, &x, sizeof x); };
    switch (byte_size(c.cell)) {
      case 1:
        return put(static_cast<std::uint8_t>(c.integer));
      case 2:
        return put(static_cast<std::uint16_t>(c.integer));
      case 4:
        if (c.cell == Cell::f32) return put(static_cast<float>(c.real));
        return put(static_cast<std::uint32_t>(c.integer));
      default:
        if (c.cell == Cell::f64) return put(c.real);
        return put(c.integer);
    }
  }

  void add_param(const KernelParam& param, std::span<std::byte> bytes) {
    Buffer b{.data = bytes.data(), .dtype = param.dtype, .written = param.written};
    b.elements = static_cast<std::int64_t>(bytes.size()) / hone::byte_size(param.dtype);
    if (f_.checks.param_races && param.written) {
      marks_.push_back(std::make_unique<std::vector<Mark>>(b.elements));
      b.marks = marks_.back().get();
    }
    f_.buffers.push_back(b);
  }

  // Pieces of memory in one scope may overlap, so they share marks, one per few bytes. Spread
  // memory comes after the thread's other memory.
  void add_memory() {
    const Kernel& k = p_.kernel;
    std::int64_t bytes[2] = {}, unit = 8, spread = 0;
    for (const KernelMemory& m : k.memory) {
      const std::int64_t end = size(m.offset) + size(m.elements) * hone::byte_size(m.dtype);
      std::int64_t& all =
          m.scope == MemoryScope::spread ? spread : bytes[m.scope == MemoryScope::group];
      all = std::max(all, end);
      unit = std::min<std::int64_t>(unit, hone::byte_size(m.dtype));
    }
    const std::int64_t first_spread = (bytes[0] + 63) / 64 * 64;
    if (spread > 0) bytes[0] = first_spread + spread;
    for (std::int64_t& b : bytes) {
      b = (b + 63) / 64 * 64;
      if (b > (std::int64_t{1} << 32))
        throw UserError("kernel '", k.name, "': its memory of ", b, " bytes is not interpreted");
    }
    const std::int64_t threads = p_.threads > 0 ? p_.threads : 1;
    memory_.emplace_back(static_cast<std::size_t>(bytes[0] * threads));
    memory_.emplace_back(static_cast<std::size_t>(bytes[1]));
    for (Bytes& m : memory_) m.fill(0xff);
    std::vector<Mark>* marks[2] = {};
    auto want = [&](int i, std::int64_t count) {
      marks_.push_back(std::make_unique<std::vector<Mark>>(count / unit));
      marks[i] = marks_.back().get();
    };
    if (f_.checks.unwritten && bytes[0] > 0) want(0, bytes[0] * threads);
    if ((f_.checks.unwritten || f_.checks.group_races || has_copies()) && bytes[1] > 0)
      want(1, bytes[1]);
    for (const KernelMemory& m : k.memory) {
      const bool is_group = m.scope == MemoryScope::group;
      Buffer b{.elements = size(m.elements),
               .dtype = m.dtype,
               .is_group = is_group,
               .is_thread = !is_group,
               .marks = marks[is_group]};
      const std::int64_t offset =
          size(m.offset) + (m.scope == MemoryScope::spread ? first_spread : 0);
      b.data = memory_[is_group].data() + offset;
      b.lane_bytes = is_group || p_.threads == 0 ? 0 : bytes[0];
      b.marks_of_lane = b.lane_bytes / unit;
      b.marks_per_element = hone::byte_size(m.dtype) / unit;
      b.first_mark = offset / unit;
      f_.buffers.push_back(b);
    }
  }

  bool has_copies() const {
    return std::ranges::any_of(p_.code, [](const Instr& i) { return i.run == copy_async; });
  }

  const Program& p_;
  Frame f_;
  Bytes slots_;
  std::vector<Bytes> memory_;  // of threads; of the group
  std::vector<std::unique_ptr<std::vector<Mark>>> marks_;
  std::unordered_map<std::string, std::int64_t> sizes_;
};

}  // namespace

}  // namespace interpreter

void Interpreter::run(std::span<const std::span<std::byte>> params,
                      std::span<const std::int64_t> sizes, std::int64_t begin, std::int64_t end,
                      const InterpretChecks& checks) const {
  const interpreter::Program& p = prepared_->program;
  interpreter::Machine machine(p, params, sizes, checks);
  const std::int64_t chunks = machine.size(p.kernel.chunks);
  if (p.grids != 1 && (begin != 0 || end != chunks))
    throw UserError("kernel '", p.kernel.name, "': runs as a whole, from 0 to ", chunks, ", not ",
                    begin, " to ", end);
  if (begin < end) machine.run(begin, end);
}

void interpret(const Kernel& k, std::span<const std::span<std::byte>> params,
               std::span<const std::int64_t> sizes, const InterpretChecks& checks) {
  const std::int64_t chunks = k.chunks.eval([&](std::string_view name) {
    for (std::size_t i = 0; i < k.sizes.size() && i < sizes.size(); ++i)
      if (k.sizes[i].name() == name) return sizes[i];
    throw UserError("size ", name, " is not handed to the kernel");
  });
  Interpreter(k).run(params, sizes, 0, chunks, checks);
}

}  // namespace hone
