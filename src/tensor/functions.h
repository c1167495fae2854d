// Functions of tensors, under the field's names. None is computed at the call: each is recorded in
// the entry that is being traced. Types, broadcasting, axes and errors are as tensor/tensor.h says.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

// ---- Values from nothing

Tensor zeros(const Type&, Where = Where::current());
Tensor ones(const Type&, Where = Where::current());
// A number in every element; it must be representable in the dtype.
Tensor full(const Type&, const Operand& number);
Tensor zeros_like(const Tensor&, Where = Where::current());
Tensor ones_like(const Tensor&, Where = Where::current());
// 0, 1, ... : rank 1.
Tensor arange(const Dim& count, DType = DType::i64, Where = Where::current());
// Data that is part of the program.
Tensor constant(const Array&, Where = Where::current());
Tensor constant(const std::vector<float>&, std::vector<std::int64_t> dims,
                Where = Where::current());
Tensor constant(const std::vector<std::int64_t>&, Where = Where::current());  // i64, rank 1
// The size of an axis as a scalar.
Tensor size_of(const Tensor&, int axis, DType = DType::i64, Where = Where::current());

// ---- Element by element

Tensor cast(const Tensor&, DType, Where = Where::current());
Tensor abs(const Tensor&, Where = Where::current());
Tensor sign(const Tensor&, Where = Where::current());
Tensor square(const Tensor&, Where = Where::current());
Tensor floor(const Tensor&, Where = Where::current());
Tensor ceil(const Tensor&, Where = Where::current());
Tensor round(const Tensor&, Where = Where::current());  // halves to even
Tensor trunc(const Tensor&, Where = Where::current());
// Floats only.
Tensor exp(const Tensor&, Where = Where::current());
Tensor log(const Tensor&, Where = Where::current());
Tensor sqrt(const Tensor&, Where = Where::current());
Tensor rsqrt(const Tensor&, Where = Where::current());
Tensor reciprocal(const Tensor&, Where = Where::current());
Tensor sin(const Tensor&, Where = Where::current());
Tensor cos(const Tensor&, Where = Where::current());
Tensor erf(const Tensor&, Where = Where::current());
Tensor tanh(const Tensor&, Where = Where::current());
Tensor sigmoid(const Tensor&, Where = Where::current());
Tensor softplus(const Tensor&, Where = Where::current());
Tensor relu(const Tensor&, Where = Where::current());
Tensor silu(const Tensor&, Where = Where::current());
enum class Gelu : std::uint8_t { erf, tanh };
Tensor gelu(const Tensor&, Gelu = Gelu::erf, Where = Where::current());
Tensor leaky_relu(const Tensor&, double slope = 0.01, Where = Where::current());
Tensor elu(const Tensor&, double alpha = 1, Where = Where::current());
Tensor pow(const Operand& x, const Operand& y);
Tensor maximum(const Operand&, const Operand&);  // NaN if one is
Tensor minimum(const Operand&, const Operand&);
Tensor remainder(const Operand& x, const Operand& y);  // of the sign of y
// min(max(x, low), high).
Tensor clip(const Operand& x, const Operand& low, const Operand& high);
// condition (bool) ? a : b, all three broadcast.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b);

// ---- Shapes

// One axis given, or several, or all.
class AxisList {
 public:
  AxisList() = default;
  AxisList(int axis) : axes_{axis}, is_all_(false) {}                          // NOLINT
  AxisList(std::initializer_list<int> axes) : axes_(axes), is_all_(false) {}   // NOLINT
  AxisList(std::vector<int> axes) : axes_(std::move(axes)), is_all_(false) {}  // NOLINT
  bool is_all() const { return is_all_; }
  const std::vector<int>& axes() const { return axes_; }

 private:
  std::vector<int> axes_;
  bool is_all_ = true;
};

// One size may be -1: it follows from the others.
Tensor reshape(const Tensor&, const Dims&, Where = Where::current());
// Joins the axes from `first` to `last`.
Tensor flatten(const Tensor&, int first = 0, int last = -1, Where = Where::current());
// Swaps two axes.
Tensor transpose(const Tensor&, int a = -2, int b = -1, Where = Where::current());
// Axis i of the result is axis order[i] of x.
Tensor permute(const Tensor&, const std::vector<int>& order, Where = Where::current());
// Removes axes of size 1; inserts them, at places of the result.
Tensor squeeze(const Tensor&, const AxisList&, Where = Where::current());
Tensor unsqueeze(const Tensor&, const AxisList&, Where = Where::current());
Tensor broadcast_to(const Tensor&, const Dims&, Where = Where::current());
Tensor concat(const Tensors&, int axis, Where = Where::current());
Tensor stack(const Tensors&, int axis = 0, Where = Where::current());  // along a new axis
// Consecutive parts of an axis: of the given sizes; `count` equal ones.
Tensors split(const Tensor&, const std::vector<Dim>& sizes, int axis, Where = Where::current());
Tensors chunk(const Tensor&, int count, int axis, Where = Where::current());
// Python's start:end:step along an axis. A negative place counts from the back, a place outside is
// moved to the nearest end; a step is positive.
struct Range {
  static constexpr std::int64_t to_end = std::numeric_limits<std::int64_t>::max();
  std::int64_t start = 0, end = to_end, step = 1;
};
Tensor slice(const Tensor&, int axis, Range, Where = Where::current());
// `size` elements from `start` on, which must be inside.
Tensor narrow(const Tensor&, int axis, const Dim& start, const Dim& size, Where = Where::current());
// The same from a place (an integer scalar) that a run computes; and x with `part` there instead. A
// part that is not inside is moved inside.
Tensor dynamic_slice(const Tensor& x, int axis, const Tensor& start, const Dim& size,
                     Where = Where::current());
Tensor dynamic_update(const Tensor& x, const Tensor& part, int axis, const Tensor& start,
                      Where = Where::current());
// One index of an axis, which disappears. Negative indices count from the back.
Tensor select(const Tensor&, int axis, std::int64_t index, Where = Where::current());
Tensor flip(const Tensor&, const AxisList&, Where = Where::current());
// low[i] and high[i] elements added around axis i.
Tensor pad(const Tensor&, const std::vector<std::int64_t>& low,
           const std::vector<std::int64_t>& high, const Operand& number = 0.0);

// ---- Places

// Slices of x along an axis at integers of any shape, which takes the axis's place. An index
// outside is an error of the run; negative ones are outside.
Tensor take(const Tensor& x, const Tensor& index, int axis = 0, Where = Where::current());
// Each element is x at its own place, with the index along the axis: PyTorch's gather.
Tensor gather(const Tensor& x, int axis, const Tensor& index, Where = Where::current());
// x with slices of `updates` added, or written, along an axis at integers: the inverse of take.
enum class Scatter : std::uint8_t { add, set, max, min, mul };
Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& updates,
               Scatter = Scatter::add, Where = Where::current());
// 1 at the index and 0 elsewhere along a new last axis of `count`.
Tensor one_hot(const Tensor& index, std::int64_t count, DType = DType::f32,
               Where = Where::current());

// ---- Along axes: all of them unless some are given

struct Reduce {
  bool keepdims = false;  // reduced axes stay, with size 1
};
Tensor sum(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
Tensor prod(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
Tensor max(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
Tensor min(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
Tensor mean(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
// Divides by the number of elements less `correction`: 1 as in PyTorch's var, 0 as in NumPy's.
struct Variance {
  bool keepdims = false;
  int correction = 1;
};
Tensor var(const Tensor&, const AxisList& = {}, Variance = {}, Where = Where::current());
// sqrt(sum(x^2)).
Tensor norm(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
Tensor any(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());  // bool
Tensor all(const Tensor&, const AxisList& = {}, Reduce = {}, Where = Where::current());
// The place (i64) of the first of the largest, or smallest, along an axis.
Tensor argmax(const Tensor&, int axis, Reduce = {}, Where = Where::current());
Tensor argmin(const Tensor&, int axis, Reduce = {}, Where = Where::current());
Tensor cumsum(const Tensor&, int axis, Where = Where::current());
struct Sorted {
  Tensor values, places;  // i64
};
// Stable. NaN counts as the largest.
Sorted sort(const Tensor&, int axis = -1, bool descending = false, Where = Where::current());
Sorted topk(const Tensor&, std::int64_t k, int axis = -1, Where = Where::current());
Tensor softmax(const Tensor&, int axis, Where = Where::current());
Tensor log_softmax(const Tensor&, int axis, Where = Where::current());
Tensor logsumexp(const Tensor&, int axis, Where = Where::current());

// [..., m, k] and [..., k, n]; leading axes broadcast. Rank 1 is a row on the left and a column on
// the right, and disappears.
Tensor matmul(const Tensor&, const Tensor&, Where = Where::current());

// ---- Random numbers
//
// Each call draws numbers of its own, from two states of the program (group "random") that an entry
// advances: random.key, the program's seed, and random.counter.

Tensor rand(const Type&, Where = Where::current());   // from 0 (included) to 1 (excluded); f32
Tensor randn(const Type&, Where = Where::current());  // mean 0, deviation 1; f32
// Gumbel-max: a place along the last axis, which disappears, with the probability softmax(logits).
Tensor categorical(const Tensor& logits, Where = Where::current());

}  // namespace hone
