// Ordering ops: sort, and the position of the largest element.
#include <algorithm>
#include <tuple>

#include "ops/ops.h"
#include "ref/enclosure_rule.h"

namespace hone {

namespace {

// An interval in the order of sort and argmax: any dtype, NaN above all numbers.
struct Key {
  double low, high;
  bool certain;  // low and high are one element, which may equal others
};

Key key_at(const Enclosure& e, std::size_t i, bool negative) {
  Key k;
  if (e.low.is_real()) {
    const Interval x = at(e, i);
    if (x.is_unknown()) return {-INFINITY, INFINITY, false};
    k = {x.low, x.high, x.low == x.high || x.is_nan()};
  } else {
    k = {integer_to_real(e.dtype(), e.low.integers[i]),
         integer_to_real(e.dtype(), e.high.integers[i]), e.low.integers[i] == e.high.integers[i]};
  }
  return negative ? Key{-k.high, -k.low, k.certain} : k;
}

// The elements of one line along an axis.
struct Line {
  AxisSplit split;
  std::int64_t outer, inner;
  std::size_t place(std::int64_t k) const {
    return static_cast<std::size_t>((outer * split.size + k) * split.inner + inner);
  }
};

template <class F>
void each_line(const AxisSplit& s, F f) {
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) f(Line{s, o, i});
}

// The first and last possible positions of the largest element; of equal ones the first counts.
std::pair<std::int64_t, std::int64_t> positions(const std::vector<Key>& line) {
  const auto n = static_cast<std::int64_t>(line.size());
  for (const Key& k : line)
    if (!k.certain && !(k.low > -INFINITY || k.high < INFINITY)) return {0, n - 1};
  double best = -INFINITY;
  for (std::int64_t i = 0; i < n; ++i) {
    const Key& k = line[static_cast<std::size_t>(i)];
    if (std::isnan(k.low)) return {i, i};
    best = std::max(best, k.low);
  }
  std::int64_t first = n, last = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    const Key& k = line[static_cast<std::size_t>(i)];
    if (k.high < best) continue;
    first = std::min(first, i);
    // After a certain best element, only a better one is possible.
    if (last < 0 || k.high > best || !line[static_cast<std::size_t>(last)].certain) last = i;
  }
  return {first, last};
}

}  // namespace

std::vector<Enclosure> enclosing::position(const Enclosing& c) {
  const Enclosure& x = *c.in[0];
  Enclosure y = c.unknown();
  std::size_t at = 0;
  each_line(split_at(x.dims(), static_cast<int>(c.attrs.integer("axis"))), [&](const Line& l) {
    std::vector<Key> keys;
    for (std::int64_t k = 0; k < l.split.size; ++k)
      keys.push_back(key_at(x, l.place(k), &c.op == &ops::argmin));
    std::tie(y.low.integers[at], y.high.integers[at]) = positions(keys);
    ++at;
  });
  return {std::move(y)};
}

// The k-th lowest bound and the k-th highest bound enclose the k-th element. A position is known if
// its element is separate from its neighbours, or in a run of certain equals that is. Elements
// after the last requested one are not visible, so the run at the end is never separate.
std::vector<Enclosure> enclosing::sorted(const Enclosing& c) {
  const Enclosure& x = *c.in[0];
  const bool down = c.attrs.integer("descending") != 0;
  std::vector<Wide> low = c.eval({&x.low}), high = c.eval({&x.high});
  std::vector<Enclosure> out = {{low[0], high[0]}, {low[1], low[1]}};
  const int axis = static_cast<int>(c.attrs.integer("axis"));
  const AxisSplit all = split_at(x.dims(), axis);
  each_line(split_at(out[0].dims(), axis), [&](const Line& l) {
    const std::int64_t n = l.split.size;
    bool open = false;
    for (std::int64_t k = 0; x.low.is_real() && k < all.size; ++k)
      open = open || at(x, Line{all, l.outer, l.inner}.place(k)).is_unknown();
    auto key = [&](std::int64_t k) { return key_at(out[0], l.place(k), down); };
    auto apart = [&](std::int64_t k) {
      if (k + 1 >= n) return n == all.size;
      const Key a = key(k), b = key(k + 1);
      return a.high < b.low || std::isnan(a.high) != std::isnan(b.low);
    };
    for (std::int64_t from = 0, to = 0; from < n; from = to) {
      for (to = from + 1; to < n && !apart(to - 1);) ++to;
      bool known = !open && apart(to - 1);
      for (std::int64_t k = from; k < to; ++k) {
        known = known && (to - from == 1 || key(k).certain);
      }
      for (std::int64_t k = from; k < to; ++k) {
        if (open && x.low.is_real()) put(out[0], l.place(k), unknown_interval);
        if (known) continue;
        out[1].low.integers[l.place(k)] = 0;
        out[1].high.integers[l.place(k)] = all.size - 1;
      }
    }
  });
  return out;
}

}  // namespace hone
