#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

int some_axis(Builder& b, Value x) { return b.random.below(x.rank()); }

Shape index_shape(Builder& b) {
  Shape s = b.shape(b.random.of({0, 1, 1, 1, 2}));
  return s.count().high() > 64 ? Shape{2} : s;
}

std::string join_kind(Builder& b, DType t) {
  return t == DType::b1 ? "set"
                        : b.random.of<const char*>({"set", "add", "add", "mul", "max", "min"});
}

Value gathered(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  int axis = some_axis(b, x);
  Value at = b.indices(index_shape(b), x.shape()[axis]);
  return op(Values{x, at}, {{"axis", axis}});
}

Value scattered(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  int axis = some_axis(b, x);
  Shape places = index_shape(b);
  Value at = b.indices(places, x.shape()[axis]);
  Shape shape = x.shape();
  shape.dims.erase(shape.dims.begin() + axis);
  shape.dims.insert(shape.dims.begin() + axis, places.dims.begin(), places.dims.end());
  if (!b.fits(shape)) return {};
  Value updates = b.operand({x.dtype(), shape});
  return op(Values{x, at, updates}, {{"axis", axis}, {"kind", join_kind(b, x.dtype())}});
}

Value starts_for(Builder& b, Value x) {
  DType t = b.random.of({DType::i64, DType::i32, b.style.whole});
  return b.operand({t, Shape{x.rank()}});
}

Dims part_of(Builder& b, Value x) {
  Dims sizes = x.shape().dims;
  for (Dim& d : sizes)
    if (d.low() > 0 && b.random.chance(60)) d = b.random.chance(70) ? Dim(1) : d - Dim(1);
  return sizes;
}

Value cut_out(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  Value starts = starts_for(b, x);
  return op(Values{x, starts}, {{"sizes", part_of(b, x)}});
}

Value put_in(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  Value part = b.operand({x.dtype(), Shape(part_of(b, x))});
  Value starts = starts_for(b, x);
  return op(x, part, starts);
}

// Has the rank of x; the sizes of the other axes are those of x or smaller.
Value element_indices(Builder& b, Value x, int axis) {
  Shape s = x.shape();
  for (int i = 0; i < s.rank(); ++i)
    if (i == axis)
      s[i] = b.size();
    else if (s[i].is_number() && s[i].number() > 1 && b.random.chance(30))
      s[i] = s[i] - Dim(1);
  return b.fits(s) ? b.indices(s, x.shape()[axis]) : Value();
}

Value gathered_elements(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  int axis = some_axis(b, x);
  Value at = element_indices(b, x, axis);
  return at ? op(Values{x, at}, {{"axis", axis}}) : Value();
}

Value scattered_elements(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  int axis = some_axis(b, x);
  Value at = element_indices(b, x, axis);
  if (!at) return {};
  Value updates = b.operand({x.dtype(), at.shape()});
  return op(Values{x, at, updates}, {{"axis", axis}, {"kind", join_kind(b, x.dtype())}});
}

Value gathered_places(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  int batch = x.rank() > 1 && b.random.chance(30) ? 1 : 0;
  Shape s = index_shape(b);
  if (batch) s.dims.insert(s.dims.begin(), x.shape()[0]);
  s.dims.push_back(b.random.between(1, x.rank() - batch));
  if (!b.fits(s)) return {};
  Value at = b.indices(s, x.shape()[batch]);
  return op(Values{x, at}, {{"batch", batch}});
}

Value scattered_places(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  Shape s = index_shape(b);
  int depth = b.random.between(1, x.rank());
  Dims updates = s.dims;
  updates.insert(updates.end(), x.shape().dims.begin() + depth, x.shape().dims.end());
  s.dims.push_back(depth);
  if (!b.fits(Shape(updates)) || !b.fits(s)) return {};
  Value at = b.indices(s, x.shape()[0]);
  Value with = b.operand({x.dtype(), Shape(updates)});
  return op(Values{x, at, with}, {{"kind", join_kind(b, x.dtype())}});
}

Value hot(Builder& b, const Op& op) {
  Value at = b.whole();
  if (at.shape().count().high() > 256) at = b.indices(Shape{3}, 4);
  DType t = b.dtype();
  Value on = b.scalar_operand(t);
  Value off = b.scalar_operand(t);
  Dim count = b.random.of({1, 3, 5, 8});
  return op(Values{at, on, off},
            {{"axis", b.random.between(0, at.rank())}, {"count", Dims{count}}});
}

constexpr Maker index_table[] = {
    {&ops::gather, 12, gathered},
    {&ops::scatter, 6, scattered},
    {&ops::dynamic_slice, 5, cut_out},
    {&ops::dynamic_update, 5, put_in},
    {&ops::gather_elements, 4, gathered_elements},
    {&ops::scatter_elements, 4, scattered_elements},
    {&ops::gather_nd, 4, gathered_places},
    {&ops::scatter_nd, 4, scattered_places},
    {&ops::one_hot, 4, hot},
};

}  // namespace

std::span<const Maker> index_makers() { return index_table; }

}  // namespace hone::fuzz
