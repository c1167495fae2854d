#include "import/onnx/node/broadcast.h"

#include <algorithm>

#include "import/common/build.h"

namespace hone::onnx {

namespace {

bool share_symbols(const Dim& a, const Dim& b) {
  const Dims of_b = b.symbols();
  return std::ranges::any_of(
      a.symbols(), [&](const Dim& s) { return std::ranges::find(of_b, s) != of_b.end(); });
}

// Whether in some runs the sizes are equal and in others one of them is 1. Sizes computed from the
// same size, as those of a skip connection, are meant to be equal.
bool is_open_pair(NodeContext& c, const Dim& a, const Dim& b) {
  if (a == Dim(1) || b == Dim(1) || prove_equal(a, b).has_value()) return false;
  if (a.low() > 1 && b.low() > 1) return false;
  if ((!a.is_symbol() && !b.is_symbol()) || share_symbols(a, b)) return false;
  return c.bodies().is_of_inputs(a) && c.bodies().is_of_inputs(b);
}

// In a reading with equal sizes, notes the pair and returns false.
bool may_differ(NodeContext& c, const Dim& a, const Dim& b) {
  return is_open_pair(c, a, b) && !c.assumptions().take_as_equal(a, b);
}

// `b` where a is 1, else a: the size that both have after broadcasting.
Dim common_size(const Dim& a, const Dim& b) {
  for (const Dim* d : {&a, &b})
    if (d->is_number() && d->number() != 1) return *d;
  if (a.low() >= 1 && b.low() >= 1) return max(a, b);
  const Dim is_one = equal(a, 1);
  return is_one * b + (Dim(1) - is_one) * a;
}

// An axis of `size` elements, or of 1 that is repeated.
Value repeated_to(Value v, int axis, const Dim& size, const std::string& why) {
  const Dim here = v.shape()[axis];
  if (here == Dim(1) || prove_equal(here, size) == true) return v;
  hone::Graph& g = v.graph();
  const Dim is_one = equal(here, 1);
  g.require_equal(is_one * size + (Dim(1) - is_one) * here, size, why);
  const Value place = counted(g, DType::i64, size);
  const Value step = size_value(g, Dim(1) - is_one, DType::i64);
  return ops::gather(Values{v, place * broadcast_to(step, place.shape())},
                     {{"axis", std::int64_t{axis}}});
}

// The common size of the axis that is number i from the end, where operands may differ there.
std::optional<Dim> differing_size(NodeContext& c, const Values& all, int i) {
  std::optional<Dim> common;
  bool differ = false;
  for (const Value& v : all) {
    if (v.rank() < i || v.shape()[-i] == Dim(1)) continue;
    const Dim& here = v.shape()[-i];
    if (common && may_differ(c, *common, here)) {
      differ = true;
      common = common_size(*common, here);
    } else if (!common || here.is_number()) {
      common = here;
    }
  }
  return differ ? common : std::nullopt;
}

void spread(NodeContext& c, Values& all, int first_axis) {
  int rank = 0;
  for (const Value& v : all) rank = std::max(rank, v.rank());
  std::string shapes;
  for (const Value& v : all) shapes += cat(shapes.empty() ? "" : " and ", v.shape());
  for (int i = first_axis; i <= rank; ++i) {
    const std::optional<Dim> common = differing_size(c, all, i);
    if (!common) continue;
    for (Value& v : all)
      if (v.rank() >= i)
        v = repeated_to(
            v, v.rank() - i, *common,
            cat("shapes ", shapes, " do not broadcast at axis -", i, "; sizes must be equal or 1"));
  }
}

}  // namespace

Values broadcast_operands(NodeContext& c, const Values& operands) {
  Values all = operands;
  spread(c, all, 1);
  return broadcast_all(all, c.op());
}

std::pair<Value, Value> broadcast_operands(NodeContext& c, Value a, Value b) {
  if (a.shape() == b.shape()) return {a, b};
  Values all = {a, b};
  spread(c, all, 1);
  return broadcast_pair(all[0], all[1], c.op());
}

std::pair<Value, Value> broadcast_leading(NodeContext& c, Value a, Value b, int kept) {
  Values all = {a, b};
  spread(c, all, kept + 1);
  return {all[0], all[1]};
}

Value repeat_open_axes(NodeContext& c, Value v, const Shape& shape) {
  for (int i = 1; i <= std::min(v.rank(), shape.rank()); ++i)
    if (may_differ(c, v.shape()[-i], shape[-i]))
      v = repeated_to(v, v.rank() - i, shape[-i],
                      cat(v.shape(), " does not fit in ", shape, " at axis -", i,
                          "; sizes must be equal or 1"));
  return v;
}
Value broadcast_operand_to(NodeContext& c, Value v, const Shape& shape) {
  return broadcast_to(repeat_open_axes(c, v, shape), shape);
}

}  // namespace hone::onnx
