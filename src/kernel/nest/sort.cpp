#include "kernel/nest/sort.h"

#include <algorithm>
#include <bit>

#include "kernel/nest/blocking.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Kind = Stmt::Kind;

// One row of a result in memory; result 0 holds the keys, 1 their original positions.
struct SortLine {
  std::uint32_t index = 0;
  int param = 0;
  Dim offset = 0, stride = 1;
};
using SortLines = std::vector<SortLine>;

class SortWriter {
 public:
  SortWriter(Lowering& l, Kernel& kernel, Value v, std::span<const OrderedResult> to)
      : l_(l),
        kernel_(kernel),
        v_(v),
        axis_(static_cast<std::size_t>(v.attrs().integer("axis"))),
        size_(v.operand(0).shape().dims[axis_]),
        wanted_(v.shape().dims[axis_]),
        to_(to),
        keeps_places_(std::ranges::any_of(to, [](const OrderedResult& r) { return r.index == 1; })),
        position_(static_cast<std::size_t>(v.rank()), 0) {}

  void sort_rows() {
    add_scratch(size_);
    position_ = open_other_axes(l_, v_.shape(), static_cast<int>(axis_));
    sort_range(0, size_, 0);
    close_other_axes(l_, v_.shape(), static_cast<int>(axis_));
  }

  void sort_pieces(const SortPieces& p) {
    add_scratch(p.size);
    const Dim piece = open_piece(p), first = keep(min(piece * p.size, size_), size_);
    sort_range(first, keep(min(p.size, size_ - first), p.size),
               keep(piece * p.kept, p.kept * Dim(p.count)));
    l_.close_loop();
  }

  // Each iteration writes up to `kept` elements of the merged pair of runs.
  void merge_pieces(const SortPieces& p, std::int64_t width, std::span<const OrderedResult> from) {
    const Dim piece = open_piece(p), pair = l_.positions().quotient(piece, 2 * width),
              pair_size = p.size * Dim(2 * width), run_size = p.size * Dim(width);
    all_ = p.kept * Dim(p.count);
    // Both runs begin where their pieces do.
    const Dim left = keep(pair * p.kept * Dim(2 * width), all_),
              right = keep(left + p.kept * Dim(width), all_),
              rest = keep(max(size_ - pair * pair_size, 0), size_),
              left_end = keep(left + at_most_wanted(min(rest, run_size)), all_),
              right_end =
                  keep(right + at_most_wanted(min(max(rest - run_size, 0), run_size)), all_),
              first = keep(piece * p.kept, all_),
              end = keep(left + at_most_wanted(left_end - left + right_end - right), all_);
    const Dim count = keep(min(max(end - first, 0), p.kept), p.kept);
    const Runs runs = {left, left_end, right, right_end};
    const SortLines source = lines_of(from);
    const Dim begin = find_left(source, runs, keep(min(first, end), all_));
    merge(source, {begin, left_end, right + min(first, end) - begin, right_end}, lines_of(to_),
          first, count);
    l_.close_loop();
  }

 private:
  // ---- registers

  Dim declare(Value first, const Dim& extent) {
    Dim symbol = l_.positions().add_register(extent);
    l_.add({.kind = Kind::declare, .reg = *register_of(symbol), .value = first});
    return symbol;
  }
  void assign(const Dim& symbol, Value v) {
    l_.add({.kind = Kind::assign, .reg = *register_of(symbol), .value = v});
  }
  // A position from 0 to `most`, computed once and kept.
  Dim keep(const Dim& d, const Dim& most) {
    return d.is_number() || d.is_symbol() ? d : declare(l_.size(d), most + Dim(1));
  }
  // A position in the runs, in a mutable register.
  Dim keep_changing(const Dim& d) { return declare(l_.size(d), all_ + Dim(1)); }
  Value keep(Value v) {
    const RegId reg = l_.positions().new_register();
    l_.add({.kind = Kind::declare, .reg = reg, .value = v});
    return l_.reg(reg, v.dtype());
  }
  Value choose(Value condition, const Dim& a, const Dim& b) const {
    return l_.apply(ops::select, {condition, l_.size(a), l_.size(b)});
  }

  // ---- memory

  void add_scratch(const Dim& capacity) {
    capacity_ = all_ = capacity;
    scratch_ = static_cast<int>(kernel_.params.size() + kernel_.memory.size());
    kernel_.memory.push_back({v_.dtype(), capacity * Dim(2), 0});
    const bool is_short = size_.high() <= std::int64_t{1} << 31;
    if (keeps_places_)
      kernel_.memory.push_back({is_short ? DType::i32 : DType::i64, capacity * Dim(2), 0});
  }

  SortLines scratch_at(const Dim& offset) const {
    SortLines out = {{0, scratch_, offset, 1}};
    if (keeps_places_) out.push_back({1, scratch_ + 1, offset, 1});
    return out;
  }

  SortLines lines_of(std::span<const OrderedResult> results) const {
    SortLines out;
    for (const OrderedResult& r : results) {
      SortLine line{r.index, r.memory.param, 0, r.memory.strides[axis_]};
      for (std::size_t i = 0; i < position_.size(); ++i)
        if (i != axis_) line.offset = line.offset + position_[i] * r.memory.strides[i];
      out.push_back(std::move(line));
    }
    return out;
  }

  DType dtype_of(const SortLine& line) const {
    const auto i = static_cast<std::size_t>(line.param), params = kernel_.params.size();
    return i < params ? kernel_.params[i].dtype : kernel_.memory[i - params].dtype;
  }

  Value load(const SortLines& from, std::uint32_t index, const Dim& at) const {
    const SortLine& line = *std::ranges::find(from, index, &SortLine::index);
    return l_.load(line.param, dtype_of(line), joined(line.offset + at * line.stride));
  }
  Value key(const SortLines& from, const Dim& at) const { return load(from, 0, at); }

  void store(const SortLines& to, const Dim& at, Value key, Value place) {
    for (const SortLine& line : to)
      l_.add({.kind = Kind::store,
              .param = line.param,
              .offset = joined(line.offset + at * line.stride),
              .value = l_.convert(line.index == 0 ? key : place, dtype_of(line))});
  }
  void copy(const SortLines& from, const Dim& at, const SortLines& to, const Dim& where) {
    store(to, where, key(from, at), keeps_places_ ? load(from, 1, at) : Value());
  }

  // ---- steps

  // True if a comes before b in the requested order.
  Value before(Value a, Value b) const {
    const bool descending = v_.attrs().integer("descending") != 0;
    const Value larger = descending ? a : b, smaller = descending ? b : a;
    if (!is_float(v_.dtype())) return l_.apply(ops::lt, {smaller, larger});
    const Value is_less = l_.apply(ops::bit_not, {l_.apply(ops::le, {larger, smaller})});
    return l_.apply(ops::bit_and, {is_less, l_.apply(ops::eq, {smaller, smaller})});
  }

  // Opens the loop over all pieces of all rows. Returns the index of the piece in its row.
  Dim open_piece(const SortPieces& p) {
    Dims sizes = v_.shape().dims;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis_));
    sizes.push_back(p.count);
    const Dim chunk = l_.open_independent_loop(product(sizes));
    const Dims at = l_.positions().split(chunk, sizes);
    for (std::size_t i = 0, k = 0; i < position_.size(); ++i)
      if (i != axis_) {
        position_[i] = keep(at[k], sizes[k]);
        ++k;
      }
    return keep(at.back(), p.count);
  }

  // How many elements of a sorted run of `count` can be in the result.
  Dim at_most_wanted(const Dim& count) const {
    return wanted_ == size_ ? count : min(count, wanted_);
  }

  // Two runs to be merged, as ranges.
  struct Runs {
    Dim left, left_end, right, right_end;
  };

  // Merge sort of `count` elements starting at `first`, from runs of one element up. Stores the
  // wanted ones starting at `to`.
  void sort_range(const Dim& first, const Dim& count, const Dim& to) {
    Dim k = l_.open_loop(count);
    Dims position = position_;
    position[axis_] = first + k;
    store(scratch_at(0), k, l_.element(v_.operand(0), position), l_.size(first + k));
    l_.close_loop();
    const Dim half = declare(l_.size(0), capacity_ + Dim(1)),
              width = declare(l_.size(1), max(capacity_, 1) * Dim(2)),
              pairs = declare(l_.size(ceil_div(count, 2)), capacity_ + Dim(1));
    l_.open_loop(bits(capacity_));
    l_.open_branch(l_.below(width, count));
    const Dim pair = l_.open_loop(pairs);
    const Dim left = keep(pair * width * Dim(2), capacity_),
              right = keep(min(left + width, count), capacity_),
              left_end = keep(min(left + at_most_wanted(width), count), capacity_),
              right_end = keep(min(right + at_most_wanted(width), count), capacity_);
    merge(scratch_at(half), {left, left_end, right, right_end}, scratch_at(capacity_ - half), left,
          at_most_wanted(left_end - left + right_end - right));
    l_.close_loop();
    assign(half, l_.size(capacity_ - half));
    assign(width, l_.size(width * Dim(2)));
    assign(pairs, l_.size(ceil_div(pairs, 2)));
    l_.close_branch();
    l_.close_loop();
    k = l_.open_loop(at_most_wanted(count));
    copy(scratch_at(half), k, lines_of(to_), to + k);
    l_.close_loop();
  }

  // Merges the first `count` elements of two runs; equal elements of the left run come first.
  void merge(const SortLines& from, const Runs& runs, const SortLines& to, const Dim& first,
             const Dim& count) {
    const Dim right = keep_changing(runs.right), k = l_.open_loop(count);
    const Dim left = runs.left + runs.right + k - right;
    const Value has_left = keep(l_.below(left, runs.left_end)),
                has_right = keep(l_.below(right, runs.right_end));
    // An exhausted run is not read.
    const Dim x = declare(choose(has_left, left, right), all_),
              y = declare(choose(has_right, right, left), all_);
    const Value is_next = l_.apply(
        ops::bit_or, {l_.apply(ops::bit_not, {has_left}), before(key(from, y), key(from, x))});
    const Value is_right = keep(l_.apply(ops::bit_and, {has_right, is_next}));
    copy(from, declare(choose(is_right, right, left), all_), to, first + k);
    assign(right, choose(is_right, right + Dim(1), right));
    l_.close_loop();
  }

  // The position in the left run at which merging has produced the result up to `at`, which counts
  // from the start of the left run.
  Dim find_left(const SortLines& from, const Runs& runs, const Dim& at) {
    const Dim low = keep_changing(max(runs.left, at + runs.right - runs.right_end)),
              high = keep_changing(min(at, runs.left_end));
    l_.open_loop(bits(size_) + 1);
    l_.open_branch(l_.below(low, high));
    const Dim probe = keep_changing(floor_div(low + high, 2));
    const Value is_high =
        keep(before(key(from, runs.right + at - Dim(1) - probe), key(from, probe)));
    assign(low, choose(is_high, low, probe + Dim(1)));
    assign(high, choose(is_high, probe, high));
    l_.close_branch();
    l_.close_loop();
    return low;
  }

  static int bits(const Dim& size) {
    int n = 0;
    while (n < 62 && (std::int64_t{1} << n) < size.high()) ++n;
    return n;
  }

  Lowering& l_;
  Kernel& kernel_;
  const Value v_;
  const std::size_t axis_;
  const Dim size_, wanted_;  // elements of a row, and how many of them the result has
  const std::span<const OrderedResult> to_;
  const bool keeps_places_;
  Dims position_;               // of the row
  Dim capacity_ = 0, all_ = 0;  // of scratch, and of the memory that runs are read from
  int scratch_ = 0;
};

constexpr std::int64_t most_sort_pieces = 64;

}  // namespace

std::optional<SortPieces> sort_pieces(Value sort, const Tuning& tuning) {
  constexpr std::int64_t least_row = 1 << 15, least_piece = 1 << 12;
  const int axis = static_cast<int>(sort.attrs().integer("axis"));
  const Dim size = sort.operand(0).shape()[axis];
  std::int64_t rows = 1;
  for (int i = 0; i < sort.rank(); ++i)
    if (i != axis)
      rows = std::min(rows * std::min(certain_size(sort.shape()[i]), enough_chunks), enough_chunks);
  if (size.high() < least_row || rows >= enough_chunks) return std::nullopt;
  const std::int64_t most = std::min(most_sort_pieces / rows, size.high() / least_piece);
  const std::int64_t asked = std::max<std::int64_t>(2, value_or(tuning, "pieces", most));
  const auto count = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(asked)));
  const Dim piece = ceil_div(size, count), wanted = sort.shape()[axis];
  return SortPieces{count, piece, wanted == size ? piece : min(piece, wanted)};
}

std::vector<Tuning> sort_tunings(Value sort) {
  const std::optional<SortPieces> p = sort_pieces(sort, {});
  if (!p) return {};
  return {{{"pieces", p->count}}, {{"pieces", p->count * 2}}, {{"pieces", p->count / 2}}};
}

Shape shape_between_steps(Value sort, const SortPieces& pieces) {
  Shape shape = sort.shape();
  shape.dims[static_cast<std::size_t>(sort.attrs().integer("axis"))] =
      pieces.kept * Dim(pieces.count);
  return shape;
}

void lower_sort(Lowering& l, Kernel& kernel, Value sort, std::span<const OrderedResult> to) {
  SortWriter(l, kernel, sort, to).sort_rows();
}

void lower_sort_of_pieces(Lowering& l, Kernel& kernel, Value sort, const SortPieces& pieces,
                          std::span<const OrderedResult> to) {
  SortWriter(l, kernel, sort, to).sort_pieces(pieces);
}

void lower_merge_of_pieces(Lowering& l, Kernel& kernel, Value sort, const SortPieces& pieces,
                           std::int64_t width, std::span<const OrderedResult> from,
                           std::span<const OrderedResult> to) {
  SortWriter(l, kernel, sort, to).merge_pieces(pieces, width, from);
}

}  // namespace hone
