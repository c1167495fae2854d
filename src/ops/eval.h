// Shared parts of the reference implementations of operations: loops over Wide tensors, integer
// wrapping, chunks over threads. Deliberately slow and simple; not used by kernels.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <span>

#include "ir/op.h"

namespace hone {

using Sizes = std::vector<std::int64_t>;

// Wraps into the dtype's range (two's complement); bool becomes 0 or 1.
std::int64_t wrap(DType, std::int64_t);
// Float to integer: truncates, saturates, NaN gives 0.
std::int64_t saturate(DType, double);
// An integer element as a double; for u64, n holds the bits.
inline double integer_to_real(DType t, std::int64_t n) {
  return t == DType::u64 ? static_cast<double>(static_cast<std::uint64_t>(n))
                         : static_cast<double>(n);
}
inline bool integer_less(DType t, std::int64_t a, std::int64_t b) {
  return t == DType::u64 ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
}
// Converts as `cast` does.
Wide convert(const Wide&, DType);

std::int64_t count_of(std::span<const std::int64_t> dims);
Sizes row_major(std::span<const std::int64_t> dims);
// outer x dims[axis] x inner.
struct AxisSplit {
  std::int64_t outer = 1, size = 1, inner = 1;
};
AxisSplit split_at(std::span<const std::int64_t> dims, int axis);

// An index space over N tensors with their own strides, walked in row-major order one innermost row
// at a time. Axes that are contiguous in all tensors are merged.
template <std::size_t N>
class Rows {
 public:
  using Offsets = std::array<std::int64_t, N>;

  Rows(std::span<const std::int64_t> dims, const std::array<Sizes, N>& strides) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) continue;
      Offsets step;
      for (std::size_t t = 0; t < N; ++t) step[t] = strides[t][i];
      if (!axes_.empty() && continues(axes_.back(), step, dims[i]))
        axes_.back() = {axes_.back().size * dims[i], step};
      else
        axes_.push_back({dims[i], step});
    }
    if (axes_.empty()) axes_.push_back({1, {}});
  }

  // Calls row(offsets, steps, n), offsets starting at `at`.
  template <class F>
  void each(Offsets at, F&& row) const {
    for (const Axis& a : axes_)
      if (a.size == 0) return;
    const Axis& inner = axes_.back();
    if (axes_.size() == 1) return row(at, inner.step, inner.size);
    Sizes index(axes_.size() - 1, 0);
    for (;;) {
      row(at, inner.step, inner.size);
      std::size_t k = index.size();
      for (; k > 0; --k) {
        const Axis& a = axes_[k - 1];
        for (std::size_t t = 0; t < N; ++t) at[t] += a.step[t];
        if (++index[k - 1] < a.size) break;
        for (std::size_t t = 0; t < N; ++t) at[t] -= a.step[t] * a.size;
        index[k - 1] = 0;
      }
      if (k == 0) return;
    }
  }

 private:
  struct Axis {
    std::int64_t size;
    Offsets step;
  };
  static bool continues(const Axis& outer, const Offsets& step, std::int64_t size) {
    bool dense = true;
    for (std::size_t t = 0; t < N; ++t) dense = dense && outer.step[t] == step[t] * size;
    return dense;
  }
  std::vector<Axis> axes_;
};

// A box of one tensor: its start and the strides between its elements.
struct Box {
  std::int64_t base = 0;
  Sizes strides;
};
// to[to_box] = from[from_box] for every index below dims. Both have the same dtype.
void copy_box(Wide& to, const Box& to_box, const Wide& from, const Box& from_box,
              std::span<const std::int64_t> dims);
// A new dense tensor with the elements of a box.
Wide take_box(const Wide& from, const Box&, Sizes dims);
void fill(Wide&, const Wide& number);

// The result list of a single-result operation. A braced list would copy it.
inline std::vector<Wide> one_result(Wide w) {
  std::vector<Wide> out;
  out.push_back(std::move(w));
  return out;
}

// Splits [0, n) over threads if `work` (for example, multiplications) is large enough. The chunks
// write disjoint results, so their number does not affect the result.
void parallel_chunks(std::int64_t n, std::int64_t work,
                     const std::function<void(std::int64_t begin, std::int64_t end)>&);

// Elementwise results: real(x...) for floats, integer(x...) for all other dtypes, wrapped.
template <class R, class I>
std::vector<Wide> map_one(const Evaluation& e, R real, I integer) {
  const Wide& x = *e.inputs[0];
  Wide y(x.dtype, x.dims);
  for (std::size_t i = 0; i < y.reals.size(); ++i) y.reals[i] = real(x.reals[i]);
  for (std::size_t i = 0; i < y.integers.size(); ++i)
    y.integers[i] = wrap(x.dtype, integer(x.integers[i]));
  return one_result(std::move(y));
}
template <class R>
std::vector<Wide> map_reals(const Evaluation& e, R real) {
  return map_one(e, real, [](std::int64_t n) { return n; });
}
// For an op with a function of real numbers.
template <const Op& op>
std::vector<Wide> eval_real(const Evaluation& e) {
  return map_reals(e, op.real);
}
template <class R, class I>
std::vector<Wide> map_two(const Evaluation& e, R real, I integer) {
  const Wide &a = *e.inputs[0], &b = *e.inputs[1];
  Wide y(a.dtype, a.dims);
  for (std::size_t i = 0; i < y.reals.size(); ++i) y.reals[i] = real(a.reals[i], b.reals[i]);
  for (std::size_t i = 0; i < y.integers.size(); ++i)
    y.integers[i] = wrap(a.dtype, integer(a.integers[i], b.integers[i]));
  return one_result(std::move(y));
}

// How a reduction joins two elements; shared by reduce, window, cumulative and scatter.
enum class Join : std::uint8_t { sum, product, maximum, minimum, set };
// "sum" and "add", "prod" and "mul", "max", "min", "set".
Join join_of(std::string_view word);
inline double join(Join how, double a, double b) {
  switch (how) {
    case Join::sum:
      return a + b;
    case Join::product:
      return a * b;
    case Join::maximum:
      return std::isnan(a) || a > b ? a : b;
    case Join::minimum:
      return std::isnan(a) || a < b ? a : b;
    case Join::set:
      return b;
  }
  return b;
}
std::int64_t join(Join, DType, std::int64_t a, std::int64_t b);
// The result of an empty reduction.
double real_start(Join);
std::int64_t integer_start(Join, DType);
// A tensor of initial values.
Wide starts(Join, DType, Sizes dims);
// to[i] = join(to[i], from[k]).
inline void join_element(Join how, Wide& to, std::int64_t i, const Wide& from, std::int64_t k) {
  auto p = static_cast<std::size_t>(i), q = static_cast<std::size_t>(k);
  if (to.is_real())
    to.reals[p] = join(how, to.reals[p], from.reals[q]);
  else
    to.integers[p] = join(how, to.dtype, to.integers[p], from.integers[q]);
}

}  // namespace hone
