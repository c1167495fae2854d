// The interpreter's register tiles and asynchronous copies. Element (row, column) of a tile is at
// (row * columns + column) * lanes + lane, so that one loop multiplies for all threads.
#include <algorithm>
#include <cstring>

#include "kernel/interpret/program.h"

namespace hone::interpreter {

namespace {

// The lanes of a statement: threads of the group, or one outside of a group.
struct LaneRange {
  std::int64_t count;
  const bool* mask;
  bool operator[](std::int64_t l) const { return !mask || mask[l]; }
};
LaneRange lanes_of(const Frame& f, const Instr& i) {
  return {f.lanes(i), i.wide ? f.mask : nullptr};
}

const Tile& tile_of(const Frame& f, const TileWork& w) {
  return f.program.tiles[static_cast<std::size_t>(w.tile)];
}

// An element in memory as a number of type T.
template <class T>
T element(const Buffer& b, std::int64_t lane, std::int64_t at) {
  const std::byte* p = b.data + lane * b.lane_bytes + at * hone::byte_size(b.dtype);
  auto read = [&]<class M>(M x) {
    std::memcpy(&x, p, sizeof x);
    return x;
  };
  switch (b.dtype) {
    case DType::f32:
      return static_cast<T>(read(float()));
    case DType::f64:
      return static_cast<T>(read(double()));
    case DType::f16:
      return static_cast<T>(f16_to_f32(read(std::uint16_t())));
    case DType::bf16:
      return static_cast<T>(bf16_to_f32(read(std::uint16_t())));
    case DType::b1:
      return static_cast<T>(read(std::uint8_t()) != 0);
    default:
      T out{};
      by_cell(cell_of(b.dtype), [&](auto x) { out = static_cast<T>(read(x)); });
      return out;
  }
}

template <class T>
void set_element(const Buffer& b, std::int64_t lane, std::int64_t at, T x) {
  std::byte* p = b.data + lane * b.lane_bytes + at * hone::byte_size(b.dtype);
  auto write = [&](auto n) { std::memcpy(p, &n, sizeof n); };
  if (b.dtype == DType::f16) return write(f32_to_f16(static_cast<float>(x)));
  if (b.dtype == DType::bf16) return write(f32_to_bf16(static_cast<float>(x)));
  by_cell(cell_of(b.dtype), [&](auto n) {
    n = static_cast<decltype(n)>(x);
    write(n);
  });
}

// One element of a window, checked and recorded.
template <class T>
T read(Frame& f, const Instr& i, int buffer, std::int64_t lane, std::int64_t at) {
  const Buffer& b = f.buffers[static_cast<std::size_t>(buffer)];
  check_range(f, i, buffer, lane, at);
  if (b.marks) note_read(f, i, buffer, lane, at);
  return element<T>(b, lane, at);
}

void check_columns(const Frame& f, const Instr& i, const Tile& t, std::int64_t lane,
                   std::int64_t columns) {
  if (columns < 0 || columns > t.columns)
    fail(f, i, lane, cat("a tile of ", t.columns, " columns has no ", columns));
}

template <class T>
void fill(Frame& f, const Instr& i, const TileWork& w, const Tile& t) {
  const LaneRange lanes = lanes_of(f, i);
  const Positions columns(f, w.columns);
  const T* from = f.at<T>(i.a);
  for (std::int64_t l = 0; l < lanes.count; ++l) {
    if (!lanes[l]) continue;
    check_columns(f, i, t, l, columns[l]);
    T* to = f.at<T>(t.slot) + l;
    for (int r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < columns[l]; ++c)
        to[(r * t.columns + c) * f.program.lanes_of_tiles] = from[l];
  }
}

template <class T>
void load(Frame& f, const Instr& i, const TileWork& w, const Tile& t) {
  const LaneRange lanes = lanes_of(f, i);
  const Positions columns(f, w.columns), offset(f, w.a.offset), stride(f, w.a.stride);
  for (std::int64_t l = 0; l < lanes.count; ++l) {
    if (!lanes[l]) continue;
    check_columns(f, i, t, l, columns[l]);
    T* to = f.at<T>(t.slot) + l;
    for (int r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < t.columns; ++c) {
        const std::int64_t at = offset[l] + w.a.rows[static_cast<std::size_t>(r)] + c * stride[l];
        to[(r * t.columns + c) * f.program.lanes_of_tiles] =
            c < columns[l] ? read<T>(f, i, w.a.buffer, l, at) : T();
      }
  }
}

template <class T>
void store(Frame& f, const Instr& i, const TileWork& w, const Tile& t) {
  const LaneRange lanes = lanes_of(f, i);
  const Positions columns(f, w.columns), offset(f, w.a.offset), stride(f, w.a.stride);
  const Buffer& b = f.buffers[static_cast<std::size_t>(w.a.buffer)];
  for (std::int64_t l = 0; l < lanes.count; ++l) {
    if (!lanes[l]) continue;
    check_columns(f, i, t, l, columns[l]);
    const T* from = f.at<T>(t.slot) + l;
    for (int r = 0; r < t.rows; ++r)
      for (std::int64_t c = 0; c < columns[l]; ++c) {
        const std::int64_t at = offset[l] + w.a.rows[static_cast<std::size_t>(r)] + c * stride[l];
        check_range(f, i, w.a.buffer, l, at);
        if (b.marks) note_write(f, i, w.a.buffer, l, at);
        set_element(b, l, at, from[(r * t.columns + c) * f.program.lanes_of_tiles]);
      }
  }
}

template <class T>
class Multiplication {
 public:
  Multiplication(Frame& f, const Instr& i, const TileWork& w, const Tile& t)
      : f_(f),
        i_(i),
        w_(w),
        t_(t),
        lanes_(lanes_of(f, i)),
        n_(lanes_.count),
        columns_(f, w.columns),
        extent_(f, w.extent),
        a_offset_(f, w.a.offset),
        a_stride_(f, w.a.stride),
        b_offset_(f, w.b.offset),
        b_stride_(f, w.b.stride),
        a_(static_cast<std::size_t>(n_ * t.rows * (w.a_has_columns ? t.columns : 1))),
        b_(static_cast<std::size_t>(n_ * t.columns)) {}

  void run() {
    std::int64_t steps = 0;
    for (std::int64_t l = 0; l < n_; ++l) {
      if (!lanes_[l]) continue;
      check_columns(f_, i_, t_, l, columns_[l]);
      steps = std::max(steps, extent_[l]);
      most_columns_ = std::max(most_columns_, columns_[l]);
    }
    for (std::int64_t k = 0; k < steps; ++k) {
      read_a(k);
      read_b(k);
      multiply();
    }
  }

 private:
  bool takes_part(std::int64_t l, std::int64_t k) const { return lanes_[l] && k < extent_[l]; }

  // Like read(), but faster if the element already has type T.
  T operand(int buffer, bool is_direct, std::int64_t l, std::int64_t at) {
    const Buffer& b = f_.buffers[static_cast<std::size_t>(buffer)];
    if (!is_direct) return read<T>(f_, i_, buffer, l, at);
    if (at < 0 || at >= b.elements) check_range(f_, i_, buffer, l, at);
    if (b.marks) note_read(f_, i_, buffer, l, at);
    return reinterpret_cast<const T*>(b.data + l * b.lane_bytes)[at];
  }
  bool is_direct(int buffer) const {
    const DType t = f_.buffers[static_cast<std::size_t>(buffer)].dtype;
    return (std::is_same_v<T, float> && t == DType::f32) ||
           (std::is_same_v<T, double> && t == DType::f64);
  }

  void read_a(std::int64_t k) {
    const bool direct = is_direct(w_.a.buffer);
    const std::int64_t columns = w_.a_has_columns ? most_columns_ : 1;
    T* to = a_.data();
    for (int r = 0; r < t_.rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t l = 0; l < n_; ++l) {
          const std::int64_t at =
              a_offset_[l] + w_.a.rows[static_cast<std::size_t>(r)] + k * a_stride_[l] + c;
          *to++ = takes_part(l, k) && c < columns_[l] ? operand(w_.a.buffer, direct, l, at) : T();
        }
  }

  void read_b(std::int64_t k) {
    const bool direct = is_direct(w_.b.buffer);
    T* to = b_.data();
    for (std::int64_t c = 0; c < most_columns_; ++c)
      for (std::int64_t l = 0; l < n_; ++l) {
        const std::int64_t at =
            b_offset_[l] + k / w_.k_group * b_stride_[l] + c * w_.k_group + k % w_.k_group;
        *to++ = takes_part(l, k) && c < columns_[l] ? operand(w_.b.buffer, direct, l, at) : T();
      }
  }

  void multiply() {
    T* tile = f_.at<T>(t_.slot);
    if (n_ == 1 && !w_.a_has_columns) {
      for (int r = 0; r < t_.rows; ++r) {
        const T a = a_[static_cast<std::size_t>(r)];
        T* to = tile + r * t_.columns;
        for (std::int64_t c = 0; c < most_columns_; ++c)
          to[c] += a * b_[static_cast<std::size_t>(c)];
      }
      return;
    }
    const T* a = a_.data();
    for (int r = 0; r < t_.rows; ++r) {
      for (std::int64_t c = 0; c < most_columns_; ++c) {
        T* to = tile + (r * t_.columns + c) * n_;
        const T* b = b_.data() + c * n_;
        for (std::int64_t l = 0; l < n_; ++l) to[l] += a[l] * b[l];
        if (w_.a_has_columns) a += n_;
      }
      if (!w_.a_has_columns) a += n_;
    }
  }

  Frame& f_;
  const Instr& i_;
  const TileWork& w_;
  const Tile& t_;
  LaneRange lanes_;
  std::int64_t n_, most_columns_ = 0;
  Positions columns_, extent_, a_offset_, a_stride_, b_offset_, b_stride_;
  std::vector<T> a_, b_;
};

}  // namespace

void tile_fill(Frame& f, const Instr& i) {
  const TileWork& w = f.program.tile_works[i.detail];
  const Tile& t = tile_of(f, w);
  by_cell(t.cell, [&](auto x) { fill<decltype(x)>(f, i, w, t); });
}
void tile_load(Frame& f, const Instr& i) {
  const TileWork& w = f.program.tile_works[i.detail];
  const Tile& t = tile_of(f, w);
  by_cell(t.cell, [&](auto x) { load<decltype(x)>(f, i, w, t); });
}
void tile_store(Frame& f, const Instr& i) {
  const TileWork& w = f.program.tile_works[i.detail];
  const Tile& t = tile_of(f, w);
  by_cell(t.cell, [&](auto x) { store<decltype(x)>(f, i, w, t); });
}
void tile_multiply(Frame& f, const Instr& i) {
  const TileWork& w = f.program.tile_works[i.detail];
  const Tile& t = tile_of(f, w);
  if (t.cell == Cell::f32) return Multiplication<float>(f, i, w, t).run();
  if (t.cell == Cell::f64) return Multiplication<double>(f, i, w, t).run();
  // Unsigned, so that it wraps.
  if (t.cell == Cell::i32 || t.cell == Cell::u32)
    return Multiplication<std::uint32_t>(f, i, w, t).run();
  if (t.cell == Cell::i64 || t.cell == Cell::u64)
    return Multiplication<std::uint64_t>(f, i, w, t).run();
  fail(f, i, 0, "tiles of this dtype are not multiplied");
}

void tile_element(Frame& f, const Instr& i) {
  const Access& a = f.program.accesses[i.detail];
  const Tile& t = f.program.tiles[static_cast<std::size_t>(a.buffer)];
  const Positions at(f, a.place);
  const std::int64_t per_element = f.program.lanes_of_tiles, count = t.rows * t.columns;
  by_cell(t.cell, [&](auto x) {
    using T = decltype(x);
    const T* tile = f.at<T>(t.slot);
    for (std::int64_t l = 0; l < f.lanes(i); ++l) {
      T& to = f.at<T>(i.to)[l];
      to = T();
      if (i.wide && !f.is_active(l)) continue;
      if (at[l] < 0 || at[l] >= count)
        fail(f, i, l, cat("element ", at[l], " is outside of t", a.buffer, ", which has ", count));
      to = tile[at[l] * per_element + (per_element > 1 ? l : 0)];
    }
  });
}

// ---- asynchronous copies

namespace {

void mark_pending(Frame& f, const PendingCopy& c, bool pending) {
  const Buffer& b = f.buffers[static_cast<std::size_t>(c.to_buffer)];
  if (!b.marks) return;
  for (std::int64_t e = 0; e < c.elements * b.marks_per_element; ++e)
    (*b.marks)[static_cast<std::size_t>(b.first_mark + c.lane * b.marks_of_lane +
                                        c.to * b.marks_per_element + e)]
        .pending = pending;
}

// The bytes arrive when they are waited for, the latest time that a machine allows.
void finish(Frame& f, const Instr& i, const PendingCopy& c) {
  const Buffer &from = f.buffers[static_cast<std::size_t>(c.from_buffer)],
               &to = f.buffers[static_cast<std::size_t>(c.to_buffer)];
  mark_pending(f, c, false);
  const std::int64_t size = hone::byte_size(to.dtype);
  for (std::int64_t e = 0; e < c.elements; ++e) {
    if (to.marks) note_write(f, i, c.to_buffer, c.lane, c.to + e);
    if (!c.reads) {
      std::memset(to.data + c.lane * to.lane_bytes + (c.to + e) * size, 0,
                  static_cast<std::size_t>(size));
      continue;
    }
    if (from.marks) note_read(f, i, c.from_buffer, c.lane, c.from + e * c.step);
    std::memcpy(to.data + c.lane * to.lane_bytes + (c.to + e) * size,
                from.data + c.lane * from.lane_bytes + (c.from + e * c.step) * size,
                static_cast<std::size_t>(size));
  }
}

}  // namespace

void copy_async(Frame& f, const Instr& i) {
  const TileWork& w = f.program.tile_works[i.detail];
  const Positions extent(f, w.extent), from(f, w.a.offset), step(f, w.a.stride), to(f, w.b.offset);
  const std::int64_t row = w.a.rows.empty() ? 0 : w.a.rows[0];
  for (std::int64_t l = 0; l < f.width; ++l) {
    if (!f.is_active(l)) continue;
    const bool reads = i.a == no_slot || f.at<bool>(i.a)[i.wide ? l : 0];
    const auto thread = static_cast<std::size_t>(l);
    const PendingCopy c{l,          from[l] + row, to[l],       step[l], extent[l],
                        w.a.buffer, w.b.buffer,    i.statement, reads,   f.batches[thread]};
    if (c.elements > 0) {
      if (reads) {
        check_range(f, i, c.from_buffer, l, c.from);
        check_range(f, i, c.from_buffer, l, c.from + (c.elements - 1) * c.step);
      }
      check_range(f, i, c.to_buffer, l, c.to);
      check_range(f, i, c.to_buffer, l, c.to + c.elements - 1);
      // The copy may write at any time from now on, so it is checked as a write now, too.
      const Buffer& b = f.buffers[static_cast<std::size_t>(c.to_buffer)];
      for (std::int64_t e = 0; e < c.elements && b.marks; ++e)
        note_write(f, i, c.to_buffer, l, c.to + e);
      mark_pending(f, c, true);
    }
    f.copies[thread].push_back(c);
  }
}

void end_batch(Frame& f, const Instr&) {
  for (std::int64_t l = 0; l < f.width; ++l)
    if (f.is_active(l)) ++f.batches[static_cast<std::size_t>(l)];
}

void wait_copies(Frame& f, const Instr& i) {
  const Positions left(f, f.program.tile_works[i.detail].extent);
  for (std::int64_t l = 0; l < f.width; ++l) {
    if (!f.is_active(l)) continue;
    const auto thread = static_cast<std::size_t>(l);
    const std::int64_t end = f.batches[thread] - std::max<std::int64_t>(left[l], 0);
    std::vector<PendingCopy>& copies = f.copies[thread];
    const auto first_left =
        std::ranges::find_if(copies, [&](const PendingCopy& c) { return c.batch >= end; });
    for (auto c = copies.begin(); c != first_left; ++c) finish(f, i, *c);
    copies.erase(copies.begin(), first_left);
  }
}

}  // namespace hone::interpreter
