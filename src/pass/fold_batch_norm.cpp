#include "pass/fold_batch_norm.h"

#include "ops/common.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

std::vector<std::uint32_t> count_uses(const Function& f) {
  std::vector<std::uint32_t> uses(f.graph().node_count(), 0);
  for (NodeId n : live_nodes(f))
    for (const Value& v : f.graph().operands(n)) ++uses[v.node()];
  for (const Function::Result& r : f.results()) ++uses[r.value.node()];
  return uses;
}

bool is_foldable(Value norm, const std::vector<std::uint32_t>& uses) {
  Value conv = norm.operand(0);
  if (!norm.is(ops::batch_norm) || !conv.is(ops::conv) || uses[conv.node()] != 1) return false;
  if (norm.attrs().integer("axis") != 1 || conv.attrs().integer("channels_last")) return false;
  if (norm.dtype() != DType::f32 && norm.dtype() != DType::f64) return false;
  if (conv.dtype() != norm.dtype() || !conv.operand(1).is(ops::constant)) return false;
  for (std::size_t i = 1; i < 5; ++i)
    if (!norm.operand(i).is(ops::constant)) return false;
  return true;
}

// [C] along `axis` of a value of `shape`.
Value along(Value v, int axis, const Shape& shape) {
  Dims dims(static_cast<std::size_t>(shape.rank()), Dim(1));
  dims[static_cast<std::size_t>(axis)] = v.shape()[0];
  return broadcast_to(reshape_to(v, dims), shape);
}

Value folded(Value norm, Copier& copy) {
  Value conv = norm.operand(0), x = copy(conv.operand(0)), w = copy(conv.operand(1));
  Value scale = copy(norm.operand(1)), bias = copy(norm.operand(2)), mean = copy(norm.operand(3)),
        variance = copy(norm.operand(4));
  Value factor = scale / ops::sqrt(variance + norm.attrs().real("epsilon"));
  Value weights = w * along(factor, 0, w.shape());
  Value y;
  {  // the convolution keeps its own origins; nodes added after it have the normalisation's
    OriginScope scope(x.graph(), copy.origins_in_target(conv.node()));
    y = ops::conv(Values{x, weights}, conv.attrs());
  }
  return y + along(bias - mean * factor, 1, y.shape());
}

Function fold_here(const Function& f) {
  std::vector<std::uint32_t> uses = count_uses(f);
  bool any = false;
  for (NodeId n : live_nodes(f)) {
    Value v(&f.graph(), n);
    any = any || (v.is(ops::batch_norm) && is_foldable(v, uses));
  }
  if (!any) return f;
  return transform(f, [&](NodeId n, Copier& copy, Function&) -> Values {
    Value v(&f.graph(), n);
    if (!v.is(ops::batch_norm) || !is_foldable(v, uses)) return {};
    return {folded(v, copy)};
  });
}

}  // namespace

Function fold_batch_norm(const Function& f) { return for_bodies_too(f, fold_here); }

}  // namespace hone
