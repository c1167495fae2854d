#include "kernel/nest/split_reduce.h"

#include <algorithm>
#include <unordered_set>

#include "kernel/nest/lower.h"
#include "ops/common.h"

namespace hone {

namespace {

// Maximum parts in total, minimum elements of a part, and of a reduction worth two stages.
constexpr std::int64_t most_parts = 64, least_part = 1 << 14, least_elements = 1 << 18;

// An axis in parts of `size` elements; the remainder has fewer elements than there are parts.
struct Cut {
  int axis = 0;
  std::int64_t parts = 1, size = 1, rest = 0;
};

class Splitter {
 public:
  std::optional<SplitFunction> run(const Function& f) {
    SplitFunction out;
    std::unordered_set<Value, ValueHash> read;
    for (NodeId n : live_nodes(f))
      for (const Value& v : f.graph().operands(n)) read.insert(v);
    out.function = transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
      const Value v(&f.graph(), n);
      const bool is_arg = v.is(ops::argmax) || v.is(ops::argmin);
      if (!is_arg && (v.op().kind != OpKind::reduction || !joiner_of(v.op()))) return {};
      const Axes axes =
          is_arg ? Axes{static_cast<int>(v.attrs().integer("axis"))} : axes_of(v.attrs(), "axes");
      const std::optional<Cut> cut = cut_of(v.operand(0).shape(), axes, is_arg);
      if (!cut) return {};
      const Value x = copy(v.operand(0));
      const Value all = is_arg ? split_arg(v, x, *cut) : split(v, x, axes, *cut);
      // Its readers can then have any number of chunks and find it in memory.
      if (read.contains(v)) partial_.push_back(all);
      return {all};
    });
    if (partial_.empty()) return std::nullopt;
    out.partial = std::move(partial_);
    return out;
  }

 private:
  static std::optional<Cut> cut_of(const Shape& shape, const Axes& axes, bool is_even) {
    if (!shape.is_static()) return std::nullopt;
    std::int64_t reduced = 1;
    for (int a : axes) reduced *= shape[a].number();
    const std::int64_t all = shape.count().number(), kept = reduced > 0 ? all / reduced : 0;
    if (all < least_elements || kept * 2 > most_parts) return std::nullopt;
    const std::int64_t wanted = std::min(most_parts / kept, reduced / least_part);
    Axes ordered = axes;
    std::ranges::sort(ordered);
    for (int a : ordered)
      if (std::optional<Cut> cut = cut_axis(a, shape[a].number(), wanted, is_even)) return cut;
    return std::nullopt;
  }

  // Allows a small remainder or, with `is_even`, none.
  static std::optional<Cut> cut_axis(int axis, std::int64_t n, std::int64_t wanted, bool is_even) {
    std::optional<Cut> best;
    const std::int64_t most = std::min(wanted, n);
    for (std::int64_t parts = most; parts >= 2 && (is_even || parts * 2 >= most); --parts) {
      const Cut cut{axis, parts, n / parts, n % parts};
      if (is_even ? cut.rest == 0 : cut.rest * 64 <= n)
        if (!best || cut.rest < best->rest) best = cut;
      if (best && best->rest == 0) break;
    }
    return best;
  }

  // Reshapes [..., parts * size, ...] to [..., parts, size, ...].
  static Value in_parts(Value x, const Cut& cut) {
    Dims dims = x.shape().dims;
    dims[static_cast<std::size_t>(cut.axis)] = cut.size;
    dims.insert(dims.begin() + cut.axis, cut.parts);
    return reshape_to(slice_axis(x, cut.axis, 0, cut.parts * cut.size), dims);
  }

  // The axis of the parts among the axes that remain.
  static int place_of_parts(const Axes& axes, int cut) {
    return cut - static_cast<int>(std::ranges::count_if(axes, [&](int a) { return a < cut; }));
  }

  Value split(Value v, Value x, const Axes& axes, const Cut& cut) {
    const Op& op = v.op();
    // Sums of narrow numbers keep the wider dtype that kernels sum in.
    if (const Op* join = joiner_of(op); join == &ops::add || join == &ops::mul)
      x = cast_to(x, sum_dtype(x.dtype()));
    Axes inner;
    for (int a : axes) inner.push_back(a >= cut.axis ? a + 1 : a);
    const Value parts = reduce_axes(op, in_parts(x, cut), inner);
    partial_.push_back(parts);
    Value all = reduce_axes(op, parts, {place_of_parts(axes, cut.axis)});
    if (cut.rest > 0) {
      const Value rest = slice_axis(x, cut.axis, cut.parts * cut.size, cut.rest);
      all = (*joiner_of(op))(Values{all, reduce_axes(op, rest, axes)});
    }
    return cast_to(all, v.dtype());
  }

  // The first part that holds the extreme, and its first position there.
  Value split_arg(Value v, Value x, const Cut& cut) {
    const Op& extreme = v.is(ops::argmax) ? ops::reduce_max : ops::reduce_min;
    const Value parts = in_parts(x, cut);
    auto arg = [&](Value of, int axis) {
      return v.op()(of, {{"axis", axis}, {"dtype", v.dtype()}});
    };
    const Value best = reduce_axes(extreme, parts, {cut.axis + 1}), at = arg(parts, cut.axis + 1);
    partial_.push_back(best);
    partial_.push_back(at);
    const Value chosen = broadcast_to(unsqueeze(arg(best, cut.axis), {cut.axis}), at.shape());
    const Value number = iota_value(x.graph(), at.dtype(), at.shape(), cut.axis);
    const Value place = number * integer_like(number, cut.size) + at;
    const Values kept = {ops::eq(number, chosen), place, integer_like(place, 0)};
    return reduce_axes(ops::reduce_sum, ops::select(kept), {cut.axis});
  }

  std::vector<Value> partial_;
};

}  // namespace

std::optional<SplitFunction> split_reductions(const Function& f) { return Splitter().run(f); }

}  // namespace hone
