#include <algorithm>

#include "test/random/makers.h"

namespace hone::fuzz {

namespace {

Dims zeros(Value x) { return Dims(static_cast<std::size_t>(x.rank()), 0); }
Dims ones(Value x) { return Dims(static_cast<std::size_t>(x.rank()), 1); }

Dims merged(Builder& b, Dims dims) {
  auto at = b.random.below(static_cast<int>(dims.size()) - 1);
  auto i = dims.begin() + at;
  i[0] = i[0] * i[1];
  dims.erase(i + 1);
  return dims;
}

// Splits an axis of 6 into [2,3], one of 4n into [n,4]; no change if it has no divisor.
Dims divided(Builder& b, Dims dims) {
  auto at = dims.begin() + b.random.below(static_cast<int>(dims.size()));
  for (std::int64_t k : {2, 3, 4, 5, 7}) {
    if (prove_equal(mod(*at, k), 0) != true || at->high() == k) continue;
    Dim rest = floor_div(*at, k);
    bool first = b.random.chance(50);
    *at = first ? Dim(k) : rest;
    dims.insert(at + 1, first ? rest : Dim(k));
    return dims;
  }
  return dims;
}

Value reshaped(Builder& b, const Op& op) {
  Value x = b.recent();
  if (b.random.chance(25)) {
    Value like = b.find(
        [&](Value v) { return v.shape() != x.shape() && v.shape().count() == x.shape().count(); });
    if (like) return op(x, {{"shape", like.shape().dims}});
  }
  Dims dims = x.shape().dims;
  for (int i = b.random.between(1, 2); i > 0; --i) {
    switch (b.random.below(5)) {
      case 0:
        dims = {x.shape().count()};
        break;
      case 1:
        if (dims.size() > 1) dims = merged(b, std::move(dims));
        break;
      case 2:
        if (!dims.empty()) dims = divided(b, std::move(dims));
        break;
      case 3:
        dims.insert(dims.begin() + b.random.between(0, static_cast<int>(dims.size())), Dim(1));
        break;
      default:
        if (auto one = std::find(dims.begin(), dims.end(), Dim(1)); one != dims.end())
          dims.erase(one);
    }
  }
  return dims.size() > 6 ? Value() : op(x, {{"shape", dims}});
}

Value transposed(Builder& b, const Op& op) {
  Value x = b.ranked(2);
  Axes perm = all_axes(x.rank());
  int kind = b.random.below(4);
  if (kind == 0) {
    std::swap(perm.end()[-1], perm.end()[-2]);
  } else if (kind == 1) {  // channels first to last
    std::rotate(perm.begin() + 1, perm.begin() + std::min(2, x.rank() - 1), perm.end());
  } else if (kind == 2) {  // and back
    std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  } else {
    for (std::size_t i = perm.size() - 1; i > 0; --i)
      std::swap(perm[i], perm[static_cast<std::size_t>(b.random.between(0, static_cast<int>(i)))]);
  }
  return op(x, {{"perm", dims_of_axes(perm)}});
}

Value broadcasted(Builder& b, const Op& op) {
  Value x = b.recent();
  if (x.rank() > 0 && b.random.chance(40)) {
    Dims kept = x.shape().dims;
    kept.insert(kept.begin() + b.random.between(0, x.rank()), Dim(1));
    x = reshape_to(x, kept);
  }
  Dims to = x.shape().dims;
  for (Dim& d : to)
    if (d == Dim(1) && b.random.chance(80)) d = b.size();
  if (b.random.chance(40)) to.insert(to.begin(), b.size());
  return to.size() > 6 ? Value() : op(x, {{"shape", to}});
}

struct Cut {
  Dims starts, sizes, steps;
};

void cut_axis(Builder& b, const Dim& size, Cut& cut, std::size_t i) {
  Dim start = 0, n = size;
  std::int64_t step = 1;
  const std::int64_t least = size.low();
  switch (b.random.below(5)) {
    case 0:  // drop some of the front
      start = std::min<std::int64_t>(least, b.random.between(1, 3));
      n = size - start;
      break;
    case 1:  // of the back
      n = size - Dim(std::min<std::int64_t>(least, b.random.between(1, 3)));
      break;
    case 2:  // every second
      step = b.random.between(2, 3);
      n = floor_div(size + Dim(step - 1), step);
      break;
    case 3:  // one
      if (least > 0) start = b.random.chance(50) ? size - Dim(1) : Dim(0), n = 1;
      break;
    default:  // all, or nothing
      if (b.random.chance(5)) n = 0;
  }
  cut.starts[i] = start;
  cut.sizes[i] = n;
  cut.steps[i] = Dim(step);
}

Value sliced(Builder& b, const Op& op) {
  Value x = b.recent();
  Cut cut{zeros(x), x.shape().dims, ones(x)};
  for (std::size_t i = 0; i < cut.sizes.size(); ++i)
    if (b.random.chance(50)) cut_axis(b, x.shape().dims[i], cut, i);
  return op(x, {{"starts", cut.starts}, {"sizes", cut.sizes}, {"steps", cut.steps}});
}

Dims some_pads(Builder& b, Value x, int most) {
  Dims pads = zeros(x);
  for (Dim& d : pads)
    if (b.random.chance(40)) d = b.random.between(0, most);
  return pads;
}

Value padded(Builder& b, const Op& op) {
  Value x = b.recent();
  Dims low = some_pads(b, x, 3);
  Dims high = some_pads(b, x, 3);
  Value number =
      b.random.chance(50) ? scalar(b.graph(), 0, x.dtype()) : b.scalar_operand(x.dtype());
  return op(Values{x, number}, {{"low", low}, {"high", high}});
}

Value padded_inside(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  Dims low = some_pads(b, x, 2);
  Dims high = some_pads(b, x, 2);
  for (std::size_t i = 0; i < low.size(); ++i)
    if (x.shape().dims[i].low() < 3) low[i] = high[i] = 0;
  return op(x, {{"low", low}, {"high", high}});
}

Value joined(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  int axis = b.random.below(x.rank());
  Values parts = {x};
  for (int i = b.random.of({0, 1, 1, 1, 2, 3}); i > 0; --i) {
    Value y = b.find([&](Value v) {
      if (v.dtype() != x.dtype() || v.rank() != x.rank()) return false;
      for (int k = 0; k < x.rank(); ++k)
        if (k != axis && v.shape()[k] != x.shape()[k]) return false;
      return true;
    });
    if (!y || b.random.chance(30)) {
      Type t = x.type();
      if (b.random.chance(50)) t.shape[axis] = b.random.chance(5) ? Dim(0) : b.size();
      y = b.operand(t);
    }
    parts.insert(parts.begin() + b.random.between(0, static_cast<int>(parts.size())), y);
  }
  return op(parts, {{"axis", axis}});
}

Axes some_axes(Builder& b, int rank) {
  Axes axes;
  for (int i = 0; i < rank; ++i)
    if (b.random.chance(50)) axes.push_back(i);
  return axes;
}

Value reversed(Builder& b, const Op& op) {
  Value x = b.ranked(1);
  return op(x, {{"axes", dims_of_axes(some_axes(b, x.rank()))}});
}

Value tiled(Builder& b, const Op& op) {
  Value x = b.recent();
  Dims count = ones(x);
  for (Dim& d : count)
    if (b.random.chance(50)) d = b.random.of({1, 2, 2, 3, 0});
  if (b.random.chance(90)) std::replace(count.begin(), count.end(), Dim(0), Dim(2));
  return op(x, {{"count", count}});
}

constexpr Maker movement_table[] = {
    {&ops::reshape, 25, reshaped},
    {&ops::transpose, 25, transposed},
    {&ops::broadcast, 15, broadcasted},
    {&ops::slice, 20, sliced},
    {&ops::pad, 10, padded},
    {&ops::concat, 18, joined},
    {&ops::reverse, 5, reversed},
    {&ops::tile, 4, tiled},
    {&ops::pad_edge, 3, padded_inside},
    {&ops::pad_reflect, 3, padded_inside},
};

}  // namespace

std::span<const Maker> movement_makers() { return movement_table; }

}  // namespace hone::fuzz
