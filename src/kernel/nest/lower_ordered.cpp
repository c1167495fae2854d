#include "kernel/nest/lower_ordered.h"

#include "ops/ops.h"

namespace hone {

Dims open_other_axes(Lowering& l, const Shape& shape, int axis) {
  Dims position(static_cast<std::size_t>(shape.rank()), 0);
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] != Dim(1))
      position[static_cast<std::size_t>(i)] = l.open_loop(shape[i]);
  return position;
}

void close_other_axes(Lowering& l, const Shape& shape, int axis) {
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] != Dim(1)) l.close_loop();
}

namespace {

using Kind = Stmt::Kind;

void lower_cumulative(Lowering& l, Value v, const Memory& to) {
  const int axis = static_cast<int>(v.attrs().integer("axis"));
  const Op& join = *joiner_of(v.attrs().get<std::string>("kind"));
  const Dim size = v.shape()[axis];
  const bool reverse = v.attrs().integer("reverse") != 0,
             exclusive = v.attrs().integer("exclusive") != 0;
  Dims position = open_other_axes(l, v.shape(), axis);
  RegId total = l.positions().new_register();
  l.add({.kind = Kind::declare,
         .reg = total,
         .value = constant(l.graph(), start_of(join, v.dtype()))});
  Dim k = l.open_loop(size);
  position[static_cast<std::size_t>(axis)] = reverse ? size - Dim(1) - k : k;
  Value x = l.element(v.operand(0), position), sum = l.reg(total, v.dtype());
  if (exclusive) l.store(sum, position, to, {});
  l.add({.kind = Kind::accumulate, .reg = total, .combine = &join, .value = x});
  if (!exclusive) l.store(sum, position, to, {});
  l.close_loop();
  close_other_axes(l, v.shape(), axis);
}

// Copies x unless it is already there, then applies one update after another. Rows of the scattered
// axis are divided between chunks, each of which reads all indices and applies those of its rows;
// otherwise it is parallel over the other axes.
class Scattering {
 public:
  Scattering(Lowering& l, Value v, const OrderedResult& result)
      : l_(l),
        v_(v),
        result_(result),
        axis_(static_cast<std::size_t>(v.attrs().integer("axis"))),
        size_(v.shape().dims[axis_]),
        position_(static_cast<std::size_t>(v.rank()), 0) {}

  void lower() {
    const std::int64_t parts = count_parts();
    if (parts == 1) {
      position_ = open_other_axes(l_, v_.shape(), static_cast<int>(axis_));
      copy_rows(0, size_);
      open_updates();
      update(is_between(0, size_));
      close_updates();
      close_other_axes(l_, v_.shape(), static_cast<int>(axis_));
      return;
    }
    const Dim rows = ceil_div(size_, parts), part = l_.open_independent_loop(parts);
    const Dim first = part * rows, count = min(rows, size_ - first);
    position_ = open_other_axes(l_, v_.shape(), static_cast<int>(axis_));
    copy_rows(first, count);
    close_other_axes(l_, v_.shape(), static_cast<int>(axis_));
    open_updates();
    const Value is_here = is_between(first, first + count);
    l_.open_branch(is_here);
    position_ = open_other_axes(l_, v_.shape(), static_cast<int>(axis_));
    update(is_here);
    close_other_axes(l_, v_.shape(), static_cast<int>(axis_));
    l_.close_branch();
    close_updates();
    l_.close_loop();
  }

 private:
  // Depends on sizes only. Reading an index must be cheap compared with its update.
  std::int64_t count_parts() const {
    constexpr std::int64_t most = 16, least_work = 1 << 16, least_row = 16;
    if (!v_.shape().is_static() || !v_.operand(2).shape().is_static()) return 1;
    const std::int64_t all = v_.shape().count().number(), size = size_.number();
    const std::int64_t work = v_.operand(2).shape().count().number();
    if (size == 0 || all / size < least_row) return 1;
    return std::clamp<std::int64_t>(std::min(work / least_work, size / 2), 1, most);
  }

  void copy_rows(const Dim& first, const Dim& count) {
    if (result_.updates) return;
    position_[axis_] = first + l_.open_loop(count);
    l_.store(v_.operand(0), position_, result_.memory);
    l_.close_loop();
  }

  void open_updates() {
    indices_.clear();
    for (const Dim& extent : v_.operand(1).shape().dims) indices_.push_back(l_.open_loop(extent));
    number_ = l_.convert(l_.element(v_.operand(1), indices_), DType::i64);
    const Value zero = l_.integer(0, DType::i64);
    if (is_signed(v_.operand(1).dtype()))
      number_ = l_.apply(ops::select, {l_.apply(ops::lt, {number_, zero}),
                                       l_.apply(ops::add, {number_, l_.size(size_)}), number_});
  }
  void close_updates() {
    for (std::size_t i = 0; i < indices_.size(); ++i) l_.close_loop();
  }

  Value is_between(const Dim& first, const Dim& end) const {
    return l_.apply(ops::bit_and, {l_.apply(ops::le, {l_.size(first), number_}),
                                   l_.apply(ops::lt, {number_, l_.size(end)})});
  }

  // Computes the element of x at the index from the update's element.
  void update(Value is_inside) {
    Dims from(position_.begin(), position_.begin() + static_cast<std::ptrdiff_t>(axis_));
    from.insert(from.end(), indices_.begin(), indices_.end());
    from.insert(from.end(), position_.begin() + static_cast<std::ptrdiff_t>(axis_) + 1,
                position_.end());
    Dim place = l_.positions().add_register(size_);
    l_.add({.kind = Kind::declare,
            .reg = *register_of(place),
            .value = l_.apply(ops::select, {is_inside, number_, l_.integer(0, DType::i64)})});
    position_[axis_] = place;
    Value x = l_.element(v_.operand(2), from);
    const Memory& to = result_.memory;
    if (const Op* join = joiner_of(v_.attrs().get<std::string>("kind"))) {
      Dim offset = 0;
      for (std::size_t i = 0; i < position_.size(); ++i)
        offset = offset + position_[i] * to.strides[i];
      x = l_.apply(*join, {l_.load(to.param, v_.dtype(), offset, is_inside), x});
    }
    l_.store(x, position_, to, is_inside);
  }

  Lowering& l_;
  Value v_;
  const OrderedResult& result_;
  const std::size_t axis_;
  const Dim size_;
  Dims position_, indices_;
  Value number_;  // the index of one update, counted from the front
};

}  // namespace

bool is_ordered_op(const Op& op) {
  return &op == &ops::cumulative || &op == &ops::scatter || &op == &ops::sort;
}

void lower_ordered(Lowering& l, Value v, std::span<const OrderedResult> results) {
  if (v.is(ops::cumulative)) lower_cumulative(l, v, results[0].memory);
  if (v.is(ops::scatter)) Scattering(l, v, results[0]).lower();
}

}  // namespace hone
