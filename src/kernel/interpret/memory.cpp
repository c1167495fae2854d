// The interpreter's loads and stores, and its record of which thread accessed which element.
#include <cstring>

#include "kernel/interpret/program.h"

namespace hone::interpreter {

namespace {

std::string who(const Frame& f, std::int64_t iteration, std::int32_t thread) {
  return cat("iteration ", iteration, " of the grid",
             f.program.threads > 0 ? cat(", thread ", thread) : "");
}

}  // namespace

void fail(const Frame& f, const Instr& i, std::int64_t lane, const std::string& what) {
  throw UserError("kernel '", f.program.kernel.name, "': ", what, ", in ",
                  who(f, f.iteration_of(lane), f.thread_of(lane)),
                  ", at: ", statement_text(f.program, i.statement));
}

void check_range(const Frame& f, const Instr& i, int buffer, std::int64_t lane,
                 std::int64_t element) {
  const Buffer& b = f.buffers[static_cast<std::size_t>(buffer)];
  if (element >= 0 && element < b.elements) [[likely]]
    return;
  fail(f, i, lane,
       cat("element ", element, " is outside of p", buffer, ", which has ", b.elements));
}

namespace {

// Elements at the same place in the same memory share marks.
std::span<Mark> marks_of(const Buffer& b, std::int64_t lane, std::int64_t element) {
  return {b.marks->data() + b.first_mark + lane * b.marks_of_lane + element * b.marks_per_element,
          static_cast<std::size_t>(b.marks_per_element)};
}

[[noreturn]] void race(const Frame& f, const Instr& i, int buffer, std::int64_t lane,
                       std::int64_t element, const Mark& m, bool other_wrote,
                       std::string_view does) {
  std::string other = other_wrote ? who(f, m.write_iteration, m.writer) + " has written"
                      : m.read_by_several || m.read_by_iterations
                          ? "others have read"
                          : who(f, m.read_iteration, m.reader) + " has read";
  fail(f, i, lane,
       cat("a race: element ", element, " of p", buffer, " is ", does, " while ", other,
           " it with no barrier between, at ",
           statement_text(f.program, other_wrote ? m.write_statement : m.read_statement)));
}

bool finds_races(const Frame& f, const Buffer& b) {
  return b.is_group ? f.checks.group_races : !b.is_thread && f.checks.param_races;
}

// When another thread accessed an element.
struct Time {
  std::int64_t iteration;  // of the grid
  std::uint32_t epoch, near_epoch;
};

// True if a barrier or the start of the group separates this access of `iteration` from the other;
// a barrier of neighbours only if they are.
bool is_ordered(const Frame& f, const Buffer& b, const Time& other, bool are_neighbours,
                std::int64_t iteration) {
  if (other.iteration != iteration) return other.iteration < 0 || b.is_group;
  return other.epoch != f.epoch || (are_neighbours && other.near_epoch != f.near_epoch);
}

bool are_neighbours(const Frame& f, std::int32_t a, std::int32_t b) {
  return a / f.program.neighbours == b / f.program.neighbours;
}

void check_writer(const Frame& f, const Instr& i, int buffer, std::int64_t lane,
                  std::int64_t element, const Mark& m, std::string_view does) {
  const std::int64_t iteration = f.iteration_of(lane);
  if (m.write_iteration == iteration && m.writer == f.thread_of(lane)) return;
  if (!is_ordered(f, f.buffers[static_cast<std::size_t>(buffer)],
                  {m.write_iteration, m.write_epoch, m.write_near},
                  are_neighbours(f, m.writer, f.thread_of(lane)), iteration))
    race(f, i, buffer, lane, element, m, true, does);
}

}  // namespace

void note_read(Frame& f, const Instr& i, int buffer, std::int64_t lane, std::int64_t element) {
  const Buffer& b = f.buffers[static_cast<std::size_t>(buffer)];
  const std::int64_t iteration = f.iteration_of(lane);
  const std::int32_t thread = f.thread_of(lane);
  for (Mark& m : marks_of(b, lane, element)) {
    if (m.pending)
      fail(f, i, lane,
           cat("element ", element, " of p", buffer,
               " is read before its asynchronous copy is waited for"));
    const bool has_value = m.written && (!b.is_group || m.write_iteration == iteration);
    if (f.checks.unwritten && !has_value && (b.is_group || b.is_thread))
      fail(f, i, lane, cat("element ", element, " of p", buffer, " is read and was never written"));
    if (!finds_races(f, b)) continue;
    check_writer(f, i, buffer, lane, element, m, "read");
    const bool is_near = are_neighbours(f, m.reader, thread) && !m.read_by_far,
               is_alone = (m.read_iteration == iteration && m.reader == thread) ||
                          is_ordered(f, b, {m.read_iteration, m.read_epoch, m.read_near}, is_near,
                                     iteration);
    if (m.read_epoch != f.epoch || m.read_iteration != iteration)
      m.read_by_several = m.read_by_far = false;
    else if (is_near && m.read_near != f.near_epoch)
      m.read_by_several = false;
    else if (!is_near)
      m.read_by_far = true;
    if (!is_alone)
      (m.read_iteration == iteration ? m.read_by_several : m.read_by_iterations) = true;
    m.read_iteration = iteration, m.reader = thread;
    m.read_epoch = f.epoch, m.read_near = f.near_epoch, m.read_statement = i.statement;
  }
}

void note_write(Frame& f, const Instr& i, int buffer, std::int64_t lane, std::int64_t element) {
  const Buffer& b = f.buffers[static_cast<std::size_t>(buffer)];
  const std::int64_t iteration = f.iteration_of(lane);
  const std::int32_t thread = f.thread_of(lane);
  for (Mark& m : marks_of(b, lane, element)) {
    if (m.pending)
      fail(f, i, lane,
           cat("element ", element, " of p", buffer,
               " is written before its asynchronous copy is waited for"));
    if (finds_races(f, b)) {
      check_writer(f, i, buffer, lane, element, m, "written");
      const bool is_own = m.read_iteration == iteration && m.reader == thread && !m.read_by_several,
                 is_near = are_neighbours(f, m.reader, thread) && !m.read_by_far;
      if (m.read_by_iterations ||
          (!is_own &&
           !is_ordered(f, b, {m.read_iteration, m.read_epoch, m.read_near}, is_near, iteration)))
        race(f, i, buffer, lane, element, m, false, "written");
    }
    m.write_iteration = iteration, m.writer = thread;
    m.write_epoch = f.epoch, m.write_near = f.near_epoch, m.write_statement = i.statement;
    m.written = true;
  }
}

namespace {

// Converts between an element in memory and its form in registers.
template <class T>
struct Plain {
  using Memory = T;
  using Cell = T;
  static T read(T x) { return x; }
  static T write(T x) { return x; }
};
struct Flag {
  using Memory = std::uint8_t;
  using Cell = bool;
  static bool read(std::uint8_t x) { return x != 0; }
  static std::uint8_t write(bool x) { return x; }
};
struct Half {
  using Memory = std::uint16_t;
  using Cell = float;
  static float read(std::uint16_t x) { return f16_to_f32(x); }
  static std::uint16_t write(float x) { return f32_to_f16(x); }
};
struct Brain {
  using Memory = std::uint16_t;
  using Cell = float;
  static float read(std::uint16_t x) { return bf16_to_f32(x); }
  static std::uint16_t write(float x) { return f32_to_bf16(x); }
};

template <class M>
typename M::Memory* part_of(const Buffer& b, std::int64_t lane) {
  return reinterpret_cast<typename M::Memory*>(b.data + lane * b.lane_bytes);
}

bool holds(const Frame& f, const Access& a, std::int64_t lane) {
  if (a.condition == no_slot) return true;
  return f.at<bool>(a.condition)[a.wide_condition ? lane : 0];
}

template <class M>
void load(Frame& f, const Instr& i) {
  const Access& access = f.program.accesses[i.detail];
  const Buffer& b = f.buffers[static_cast<std::size_t>(access.buffer)];
  const Positions at(f, access.place);
  auto* to = f.at<typename M::Cell>(i.to);
  const std::int64_t n = f.lanes(i);
  const bool for_all = n == 1 || !f.mask;
  if (for_all && access.condition == no_slot && !at.list && b.lane_bytes == 0) {
    check_range(f, i, access.buffer, 0, at[0]);
    check_range(f, i, access.buffer, n - 1, at[n - 1]);
    const auto* from = part_of<M>(b, 0) + at.base;
    if (at.step == 1)
      for (std::int64_t l = 0; l < n; ++l) to[l] = M::read(from[l]);
    else
      for (std::int64_t l = 0; l < n; ++l) to[l] = M::read(from[l * at.step]);
  } else {
    for (std::int64_t l = 0; l < n; ++l) {
      to[l] = {};
      if ((!for_all && !f.mask[l]) || !holds(f, access, l)) continue;
      check_range(f, i, access.buffer, l, at[l]);
      to[l] = M::read(part_of<M>(b, l)[at[l]]);
    }
  }
  if (!b.marks) return;
  for (std::int64_t l = 0; l < n; ++l)
    if ((for_all || f.mask[l]) && holds(f, access, l)) note_read(f, i, access.buffer, l, at[l]);
}

template <class M>
void store(Frame& f, const Instr& i) {
  const Access& access = f.program.accesses[i.detail];
  const Buffer& b = f.buffers[static_cast<std::size_t>(access.buffer)];
  const Positions at(f, access.place);
  const auto* from = f.at<typename M::Cell>(i.a);
  const std::int64_t n = f.lanes(i);
  const bool for_all = n == 1 || !f.mask;
  if (b.marks)
    for (std::int64_t l = 0; l < n; ++l)
      if ((for_all || f.mask[l]) && holds(f, access, l)) {
        check_range(f, i, access.buffer, l, at[l]);
        note_write(f, i, access.buffer, l, at[l]);
      }
  if (for_all && access.condition == no_slot && !at.list && b.lane_bytes == 0) {
    check_range(f, i, access.buffer, 0, at[0]);
    check_range(f, i, access.buffer, n - 1, at[n - 1]);
    auto* to = part_of<M>(b, 0) + at.base;
    if (at.step == 1)
      for (std::int64_t l = 0; l < n; ++l) to[l] = M::write(from[l]);
    else
      for (std::int64_t l = 0; l < n; ++l) to[l * at.step] = M::write(from[l]);
    return;
  }
  for (std::int64_t l = 0; l < n; ++l) {
    if ((!for_all && !f.mask[l]) || !holds(f, access, l)) continue;
    check_range(f, i, access.buffer, l, at[l]);
    part_of<M>(b, l)[at[l]] = M::write(from[l]);
  }
}

template <template <class> class Each>
Run by_memory(DType t) {
  if (t == DType::f16) return Each<Half>::run;
  if (t == DType::bf16) return Each<Brain>::run;
  Run run = nullptr;
  by_cell(cell_of(t), [&](auto x) {
    using T = decltype(x);
    if constexpr (std::is_same_v<T, bool>)
      run = Each<Flag>::run;
    else
      run = Each<Plain<T>>::run;
  });
  return run;
}

template <class M>
struct Load {
  static constexpr Run run = load<M>;
};
template <class M>
struct Store {
  static constexpr Run run = store<M>;
};

}  // namespace

Run load_run(DType memory) { return by_memory<Load>(memory); }
Run store_run(DType memory) { return by_memory<Store>(memory); }

}  // namespace hone::interpreter
