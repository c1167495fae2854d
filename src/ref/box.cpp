#include "ref/box.h"

#include <algorithm>

#include "ops/common.h"
#include "ops/ops.h"

namespace hone {

namespace {

constexpr std::int64_t most_kept = 1 << 22;  // elements, of all known boxes together

// Whether the box is one stretch in memory: after its first axis of several elements, every axis is
// complete.
bool is_stretch(const Sizes& sizes, const Sizes& dims) {
  std::size_t first = 0;
  while (first < dims.size() && sizes[first] == 1) ++first;
  for (std::size_t i = first + 1; i < dims.size(); ++i)
    if (sizes[i] != dims[i]) return false;
  return true;
}

}  // namespace

bool reduces_axes(const Op& op) {
  return &op == &ops::reduce_sum || &op == &ops::reduce_prod || &op == &ops::reduce_max ||
         &op == &ops::reduce_min || &op == &ops::reduce_and || &op == &ops::reduce_or;
}

std::optional<Element> Boxes::reduced(Value v, std::int64_t flat, std::int64_t most) {
  most_ = computed_ + most;
  const Sizes& dims = frame_.dims(v);
  const std::optional<Wide> w = of(v, {index_of(flat, dims), Sizes(dims.size(), 1)});
  if (!w) return std::nullopt;
  return w->is_real() ? Element{w->reals[0], 0} : Element{0, w->integers[0]};
}

std::optional<Wide> Boxes::of(Value v, const Window& w) {
  const std::int64_t n = count_of(w.sizes);
  if (n == 0 || (computed_ += n) > most_) return std::nullopt;
  if (const Array* leaf = frame_.leaves[v.node()]) return of_array(*leaf, v.dtype(), w);
  Sizes key = w.low;
  key.insert(key.end(), w.sizes.begin(), w.sizes.end());
  const std::pair<std::size_t, Sizes> place = {frame_.slot(v), std::move(key)};
  if (const auto found = known_.find(place); found != known_.end()) return found->second;
  std::optional<Wide> made = of_op(v, w);
  if (!made) return made;
  if ((kept_ += n) > most_kept) {
    known_.clear();
    kept_ = n;
  }
  if (n <= most_kept) known_.emplace(place, *made);
  return made;
}

std::optional<Wide> Boxes::of_op(Value v, const Window& w) {
  if (v.index() > 0 || !v.op().eval) return std::nullopt;
  if (v.is(ops::replay)) return of(v.operand(0), w);
  if (v.is(ops::broadcast)) return broadcast(v, w);
  if (v.is(ops::transpose)) return transposed(v, w);
  if (v.is(ops::reshape)) return reshaped(v, w);
  if (reduces_axes(v.op())) return of_reduction(v, w);
  if (v.op().kind != OpKind::elementwise || element_rule(v.op())) return std::nullopt;
  return of_operands(v, w, w.sizes);
}

Wide Boxes::of_array(const Array& a, DType t, const Window& w) const {
  Wide out(t, w.sizes);
  const Sizes strides = row_major(a.dims());
  std::int64_t first = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) first += w.low[i] * strides[i];
  const Rows<2> rows(w.sizes, {row_major(w.sizes), strides});
  rows.each({0, first}, [&](const auto& from, const auto& step, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const Element e = element_of(a, from[1] + i * step[1]);
      const auto to = static_cast<std::size_t>(from[0] + i * step[0]);
      if (out.is_real())
        out.reals[to] = e.real;
      else
        out.integers[to] = e.integer;
    }
  });
  return out;
}

std::optional<Wide> Boxes::of_operands(Value v, const Window& of_each, const Sizes& result) {
  std::vector<Wide> made;
  made.reserve(v.operand_count());
  std::vector<const Wide*> operands;
  for (std::size_t i = 0; i < v.operand_count(); ++i) {
    if (i > 0 && v.operand(i) == v.operand(0)) {
      operands.push_back(operands[0]);
      continue;
    }
    std::optional<Wide> x = of(v.operand(i), of_each);
    if (!x) return std::nullopt;
    operands.push_back(&made.emplace_back(std::move(*x)));
  }
  const std::vector<Type> types = {{v.dtype(), Shape(dims_of(result))}};
  const std::function<std::int64_t(const Dim&)> size = [&](const Dim& d) {
    return size_of(d, frame_.sizing);
  };
  const std::function<std::vector<Wide>(const Function&, std::vector<Wide>)> no_bodies;
  Wide y = std::move(
      v.op().eval({v.attrs(), operands, types, size, no_bodies, mode_ == Mode::stepwise}).at(0));
  if (mode_ != Mode::wide && y.is_real()) round_to_dtype(y);
  return y;
}

std::optional<Wide> Boxes::broadcast(Value v, const Window& w) {
  const Value x = v.operand(0);
  const Sizes& from = frame_.dims(x);
  const std::size_t added = w.sizes.size() - from.size();
  Window source{Sizes(from.size(), 0), Sizes(from.size(), 1)};
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) source.low[i] = w.low[added + i], source.sizes[i] = w.sizes[added + i];
  const std::optional<Wide> few = of(x, source);
  if (!few) return std::nullopt;
  const Sizes of_few = row_major(source.sizes);
  Sizes strides(w.sizes.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) strides[added + i] = of_few[i];
  return take_box(*few, {0, strides}, w.sizes);
}

std::optional<Wide> Boxes::transposed(Value v, const Window& w) {
  const std::vector<std::int64_t> perm = v.attrs().integers("perm");
  Window source = w;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    source.low[static_cast<std::size_t>(perm[i])] = w.low[i];
    source.sizes[static_cast<std::size_t>(perm[i])] = w.sizes[i];
  }
  const std::optional<Wide> x = of(v.operand(0), source);
  if (!x) return std::nullopt;
  const Sizes of_x = row_major(source.sizes);
  Sizes strides(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    strides[i] = of_x[static_cast<std::size_t>(perm[i])];
  return take_box(*x, {0, strides}, w.sizes);
}

// If the elements are one stretch that is a box of the operand, too.
std::optional<Wide> Boxes::reshaped(Value v, const Window& w) {
  const Sizes &dims = frame_.dims(v), &from = frame_.dims(v.operand(0));
  if (!is_stretch(w.sizes, dims)) return std::nullopt;
  const std::int64_t first = flat_of(w.low, dims);
  std::int64_t left = count_of(w.sizes);
  Window source{index_of(first, from), Sizes(from.size(), 1)};
  for (std::size_t i = from.size(); i-- > 0 && left > 1;) {
    if (from[i] == 1) continue;
    if (left >= from[i] && source.low[i] == 0 && left % from[i] == 0) {
      source.sizes[i] = from[i];
      left /= from[i];
    } else if (source.low[i] + left <= from[i]) {
      source.sizes[i] = left;
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  if (left > 1) return std::nullopt;
  std::optional<Wide> x = of(v.operand(0), source);
  if (x) x->dims = w.sizes;
  return x;
}

std::optional<Wide> Boxes::of_reduction(Value v, const Window& w) {
  const Sizes& from = frame_.dims(v.operand(0));
  Window source{Sizes(from.size(), 0), from};
  const Axes axes = axes_of(v.attrs(), "axes");
  for (std::size_t i = 0, next = 0; i < from.size(); ++i)
    if (std::ranges::find(axes, static_cast<int>(i)) == axes.end()) {
      source.low[i] = w.low[next];
      source.sizes[i] = w.sizes[next++];
    }
  return of_operands(v, source, w.sizes);
}

}  // namespace hone
