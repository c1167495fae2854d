// Derivatives of ops that write elements to data-dependent positions: scatter and sort.
#include "ops/common.h"
#include "ops/gradients.h"

namespace hone {

namespace {

Value one_where(Value condition, Value like) { return cast_to(condition, like.dtype()); }

// One scatter: its positions, and how values move between x and the updates.
struct Scattering {
  Value x, index, updates, inside;  // `inside` has the shape of the index
  int axis;

  explicit Scattering(const Call& c)
      : x(c.operands[0]),
        index(cast_to(c.operands[1], DType::i64)),
        updates(c.operands[2]),
        axis(static_cast<int>(c.attrs.integer("axis"))) {
    const Value size =
                    broadcast_to(size_value(c.graph, x.shape()[axis], DType::i64), index.shape()),
                zero = integer_like(index, 0);
    const Value front = ops::select(ops::lt(index, zero), index + size, index);
    inside = ops::bit_and(ops::le(zero, front), ops::lt(front, size));
  }

  // Repeats a per-index value for each element of its slice.
  Value of_slices(Value v) const {
    Dims dims = v.shape().dims;
    dims.insert(dims.end(), static_cast<std::size_t>(x.rank() - axis - 1), Dim(1));
    return broadcast_to(reshape_to(v, dims), updates.shape());
  }
  // The elements of v, of x's shape, at the updates' positions; 0 for updates out of range.
  Value taken(Value v) const {
    const Value part = ops::gather(Values{v, index}, {{"axis", axis}});
    return ops::select(of_slices(inside), part, constant_like(part, 0));
  }
  Value joined(Value into, Value with, const char* kind) const {
    return ops::scatter(Values{into, index, with}, {{"axis", axis}, {"kind", std::string(kind)}});
  }
  // Whether an update is the last of those with the same position along the axis.
  Value is_last() const {
    const Value order = reshape_to(
        iota_value(index.graph(), DType::i64, Shape{index.shape().count()}, 0), index.shape().dims);
    const Value nobody = broadcast_to(constant(index.graph(), Array::scalar_int(-1, DType::i64)),
                                      Shape{x.shape()[axis]});
    const Value last =
        ops::scatter(Values{nobody, index, order}, {{"axis", 0}, {"kind", std::string("set")}});
    return ops::bit_and(inside, ops::eq(ops::gather(Values{last, index}, {{"axis", 0}}), order));
  }
};

}  // namespace

Values grads::scatter(const Call& c, std::span<const Value> y, std::span<const Value> dy) {
  const Scattering p(c);
  const Value d = dy[0];
  const std::string& kind = c.attrs.get<std::string>("kind");
  if (kind == "add") return {d, {}, p.taken(d)};
  if (kind == "set")
    return {p.joined(d, constant_like(p.updates, 0), "set"),
            {},
            ops::select(p.of_slices(p.is_last()), p.taken(d), constant_like(p.updates, 0))};
  if (kind == "mul") {
    const Product x(p.x), u(p.updates);
    const Value of_rest = p.joined(x.rest, u.rest, "mul"),
                zeros = p.joined(x.zeros, u.zeros, "add");
    return {d * x.of_others(of_rest, zeros),
            {},
            p.taken(d) * u.of_others(p.taken(of_rest), p.taken(zeros))};
  }
  // Distributes d equally to all elements that are the maximum, or minimum.
  const Value by_x = one_where(ops::eq(p.x, y[0]), d),
              by_updates = one_where(ops::eq(p.updates, p.taken(y[0])), d);
  const Value part = d / p.joined(by_x, by_updates, "add");
  return {by_x * part, {}, by_updates * p.taken(part)};
}

Values grads::sort(const Call& c, std::span<const Value> y, std::span<const Value> dy) {
  if (!dy[0]) return Values(1);
  return {ops::scatter_elements(Values{constant_like(c.operands[0], 0), y[1], dy[0]},
                                {{"axis", c.attrs.integer("axis")}, {"kind", std::string("set")}})};
}

}  // namespace hone
