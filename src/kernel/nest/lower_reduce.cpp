// The part of Lowering that creates loops: reductions, windows, contraction and convolution in
// plain form.
#include <algorithm>

#include "kernel/nest/lower.h"
#include "ops/common.h"
#include "ops/contraction.h"
#include "ops/eval.h"
#include "ops/ops.h"

namespace hone {

const Op* joiner_of(const Op& reduction) {
  static const std::unordered_map<const Op*, const Op*> joiners = {
      {&ops::reduce_sum, &ops::add},     {&ops::reduce_prod, &ops::mul},
      {&ops::reduce_max, &ops::maximum}, {&ops::reduce_min, &ops::minimum},
      {&ops::reduce_and, &ops::bit_and}, {&ops::reduce_or, &ops::bit_or}};
  auto it = joiners.find(&reduction);
  return it == joiners.end() ? nullptr : it->second;
}

const Op* joiner_of(std::string_view kind) {
  static const std::unordered_map<std::string_view, const Op*> joiners = {
      {"sum", &ops::add}, {"add", &ops::add},     {"prod", &ops::mul},
      {"mul", &ops::mul}, {"max", &ops::maximum}, {"min", &ops::minimum}};
  auto it = joiners.find(kind);
  return it == joiners.end() ? nullptr : it->second;
}

Array start_of(const Op& joiner, DType t) {
  if (&joiner == &ops::bit_and) return Array::scalar_int(t == DType::b1 ? 1 : -1, t);
  if (&joiner == &ops::bit_or) return Array::scalar_int(0, t);
  Join how = &joiner == &ops::add       ? Join::sum
             : &joiner == &ops::mul     ? Join::product
             : &joiner == &ops::maximum ? Join::maximum
                                        : Join::minimum;
  return is_float(t) ? Array::scalar(real_start(how), t)
                     : Array::scalar_int(integer_start(how, t), t);
}

void Lowering::note_computed(Value v, const Place& where, std::size_t depth) {
  if (!v) return;
  Computed* entry = nullptr;
  for (Computed& c : computed_)
    if (c.value == v) entry = &c;
  if (!entry) entry = &computed_.emplace_back(Computed{v, 0, {}});
  double times = 1;
  for (std::size_t i = 1; i <= depth; ++i) times *= typical(scopes_[i].loop.extent);
  entry->elements += times;
  for (const Dim& d : where.position)
    for (const Dim& s : d.is_number() ? Dims() : d.symbols())
      if (loop_of(s) &&
          std::find(entry->variables.begin(), entry->variables.end(), s) == entry->variables.end())
        entry->variables.push_back(s);
}

Value Lowering::accumulate(Value of, PlaceId where, const Op& join, Value start,
                           const Dims& extents, const std::function<Value(const Dims&)>& make) {
  std::size_t depth = depth_of(places_[where]);
  note_computed(of, places_[where], depth);
  RegId r = positions_.new_register();
  at_depth(depth, [&] {
    add({.kind = Stmt::Kind::declare, .reg = r, .value = start});
    Dims at(extents.size(), 0);
    int open = 0;
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != Dim(1)) at[i] = open_loop(extents[i]), ++open;
    add({.kind = Stmt::Kind::accumulate, .reg = r, .combine = &join, .value = make(at)});
    for (; open > 0; --open) close_loop();
  });
  return reg(r, start.dtype());
}

namespace {

// The position in an operand of rank `rank` with `axes` at `inner` and the others at `outer`.
Dims merged_position(std::size_t rank, std::span<const int> axes, const Dims& inner,
                     const Dims& outer) {
  Dims full(rank, 0);
  std::vector<bool> is_inner(rank, false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    full[static_cast<std::size_t>(axes[i])] = inner[i];
    is_inner[static_cast<std::size_t>(axes[i])] = true;
  }
  for (std::size_t i = 0, next = 0; i < rank; ++i)
    if (!is_inner[i]) full[i] = outer[next++];
  return full;
}

Dims sizes_of(const Shape& shape, std::span<const int> axes) {
  Dims out;
  for (int a : axes) out.push_back(shape[a]);
  return out;
}

}  // namespace

Value Lowering::reduce(Value v, PlaceId at) {
  Value x = v.operand(0);
  Axes axes = axes_of(v.attrs(), "axes");
  const Op& join = *joiner_of(v.op());
  const Place here = places_[at];
  return accumulate(v, at, join, constant(*graph_, start_of(join, v.dtype())),
                    sizes_of(x.shape(), axes), [&](const Dims& k) {
                      Dims full = merged_position(static_cast<std::size_t>(x.rank()), axes, k,
                                                  here.position);
                      return element_at(x, place(std::move(full), here.guard));
                    });
}

// Finds the extreme first, then the lowest position that holds it: both can be joined in any order.
// Both must see the same numbers, but values may be held wider in one place than in another, so
// narrow floats are rounded first.
Value Lowering::arg_reduce(Value v, PlaceId at) {
  Value x = v.operand(0);
  const int axes[] = {static_cast<int>(v.attrs().integer("axis"))};
  const Place here = places_[at];
  const Dims extents = sizes_of(x.shape(), axes);
  const DType held = sum_dtype(x.dtype());
  auto element = [&](const Dims& k) {
    Dims full = merged_position(static_cast<std::size_t>(x.rank()), axes, k, here.position);
    return convert(element_at(x, place(std::move(full), here.guard)), held);
  };
  const Op& join = v.is(ops::argmax) ? ops::maximum : ops::minimum;
  Value best = accumulate(v, at, join, constant(*graph_, start_of(join, held)), extents, element);
  DType counter = extents[0].high() <= (std::int64_t{1} << 31) ? DType::i32 : v.dtype();
  Value none = constant(*graph_, start_of(ops::minimum, counter));
  Value first = accumulate({}, at, ops::minimum, none, extents, [&](const Dims& k) {
    Value e = element(k), is_best = apply(ops::eq, {e, best});
    if (is_float(x.dtype())) {
      Value both_nan = apply(ops::bit_and, {apply(ops::ne, {e, e}), apply(ops::ne, {best, best})});
      is_best = apply(ops::bit_or, {is_best, both_nan});
    }
    return apply(ops::select, {is_best, convert(size(k[0]), counter), none});
  });
  return convert(first, v.dtype());
}

Value Lowering::reduce_window(Value v, PlaceId at) {
  Value x = v.operand(0);
  const Dims &window = v.attrs().dims("window"), &strides = v.attrs().dims("strides"),
             &dilations = v.attrs().dims("dilations"), &low = v.attrs().dims("pads_low");
  const Op& join = *joiner_of(v.attrs().get<std::string>("kind"));
  const Place here = places_[at];
  Value start = constant(*graph_, start_of(join, v.dtype()));
  return accumulate(v, at, join, start, window, [&](const Dims& k) {
    Dims from;
    Guard bounds;
    for (std::size_t i = 0; i < k.size(); ++i) {
      from.push_back(here.position[i] * strides[i] + k[i] * dilations[i] - low[i]);
      bounds.push_back({from[i], x.shape().dims[i]});
    }
    bounds = unproved(std::move(bounds));
    Value e = element_at(x, place(std::move(from), with_bounds(here.guard, bounds)));
    return bounds.empty() ? e : apply(ops::select, {condition(bounds), e, start});
  });
}

Value Lowering::dot(Value v, PlaceId at) {
  Value a = v.operand(0), b = v.operand(1);
  DotAxes axes = dot_axes(v.attrs(), a.rank(), b.rank());
  const Place here = places_[at];
  auto part = [&](std::size_t begin, std::size_t count) {
    auto from = here.position.begin() + static_cast<std::ptrdiff_t>(begin);
    return Dims(from, from + static_cast<std::ptrdiff_t>(count));
  };
  const std::size_t batches = axes.batch_a.size(), rows = axes.free_a.size();
  const Dims batch = part(0, batches), row = part(batches, rows),
             column = part(batches + rows, axes.free_b.size());
  auto position = [](int rank, const Axes& batch_axes, const Dims& batch_at, const Axes& free_axes,
                     const Dims& free_at, const Axes& contract_axes, const Dims& k) {
    Dims full(static_cast<std::size_t>(rank), 0);
    for (std::size_t i = 0; i < batch_at.size(); ++i)
      full[static_cast<std::size_t>(batch_axes[i])] = batch_at[i];
    for (std::size_t i = 0; i < free_at.size(); ++i)
      full[static_cast<std::size_t>(free_axes[i])] = free_at[i];
    for (std::size_t i = 0; i < k.size(); ++i)
      full[static_cast<std::size_t>(contract_axes[i])] = k[i];
    return full;
  };
  Value zero = constant(*graph_, start_of(ops::add, v.dtype()));
  return accumulate(
      v, at, ops::add, zero, sizes_of(a.shape(), axes.contract_a), [&](const Dims& k) {
        Dims left = position(a.rank(), axes.batch_a, batch, axes.free_a, row, axes.contract_a, k);
        Dims right =
            position(b.rank(), axes.batch_b, batch, axes.free_b, column, axes.contract_b, k);
        Value x = element_at(a, place(std::move(left), here.guard));
        Value y = element_at(b, place(std::move(right), here.guard));
        return apply(ops::mul, {convert(x, v.dtype()), convert(y, v.dtype())});
      });
}

Value Lowering::conv(Value v, PlaceId at) {
  Value x = v.operand(0), w = v.operand(1);
  ConvAxes axes = conv_axes(v.attrs(), x.rank());
  const Dims &strides = v.attrs().dims("strides"), &dilations = v.attrs().dims("dilations"),
             &low = v.attrs().dims("pads_low");
  const Place here = places_[at];
  const Dim out = here.position[static_cast<std::size_t>(axes.channel)];
  const Dim inner = w.shape()[axes.in];
  const Dim group_size = floor_div(w.shape()[axes.out], v.attrs().integer("groups"));
  Dims extents = {inner};
  for (int a : axes.weight_space) extents.push_back(w.shape()[a]);
  Value zero = constant(*graph_, start_of(ops::add, v.dtype()));
  return accumulate(v, at, ops::add, zero, extents, [&](const Dims& k) {
    Dims from(static_cast<std::size_t>(x.rank()), 0), tap(from.size(), 0);
    auto set = [](Dims& to, int axis, Dim d) { to[static_cast<std::size_t>(axis)] = std::move(d); };
    set(from, axes.batch, here.position[static_cast<std::size_t>(axes.batch)]);
    set(from, axes.channel, positions_.quotient(out, group_size) * inner + k[0]);
    set(tap, axes.out, out);
    set(tap, axes.in, k[0]);
    Guard bounds;
    for (std::size_t i = 0; i < axes.space.size(); ++i) {
      const Dim& place_out = here.position[static_cast<std::size_t>(axes.space[i])];
      Dim place_in = place_out * strides[i] + k[i + 1] * dilations[i] - low[i];
      bounds.push_back({place_in, x.shape()[axes.space[i]]});
      set(from, axes.space[i], place_in);
      set(tap, axes.weight_space[i], k[i + 1]);
    }
    bounds = unproved(std::move(bounds));
    Value a = element_at(x, place(std::move(from), with_bounds(here.guard, bounds)));
    Value b = element_at(w, place(std::move(tap), here.guard));
    Value product = apply(ops::mul, {convert(a, v.dtype()), convert(b, v.dtype())});
    return bounds.empty() ? product : apply(ops::select, {condition(bounds), product, zero});
  });
}

}  // namespace hone
