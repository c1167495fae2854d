// NonMaxSuppression: processes boxes by decreasing score; each box removes later ones that overlap
// it too much.
#include "import/onnx/node/context.h"
#include "import/onnx/operators/dynamic.h"
#include "import/onnx/operators/list.h"

namespace hone::onnx {

namespace {

// The edges of boxes [..., 4], each [...]. Corners may come in any order.
struct Edges {
  Value top, left, bottom, right;
};

Value coordinate(Value boxes, std::int64_t i) { return take_axis(boxes, boxes.rank() - 1, i); }

Edges edges_of(Value boxes, bool from_center) {
  Value a = coordinate(boxes, 0), b = coordinate(boxes, 1), c = coordinate(boxes, 2),
        d = coordinate(boxes, 3);
  if (!from_center)
    return {ops::minimum(a, c), ops::minimum(b, d), ops::maximum(a, c), ops::maximum(b, d)};
  Value half_width = c * 0.5, half_height = d * 0.5;
  return {b - half_height, a - half_width, b + half_height, a + half_width};
}

Value area(const Edges& e) { return times(minus(e.bottom, e.top), minus(e.right, e.left)); }

// Whether boxes overlap by more than the limit: shared area > limit * area of both.
Value overlap_too_much(const Edges& a, const Edges& b, Value limit) {
  Value zero = scalar(limit.graph(), 0, limit.dtype());
  auto extent = [&](Value low_a, Value high_a, Value low_b, Value high_b) {
    return joined(ops::maximum,
                  minus(joined(ops::minimum, high_a, high_b), joined(ops::maximum, low_a, low_b)),
                  zero);
  };
  Value shared =
      times(extent(a.top, a.bottom, b.top, b.bottom), extent(a.left, a.right, b.left, b.right));
  Value all = minus(plus(area(a), area(b)), shared);
  // Boxes without area overlap nothing.
  return both(joined(ops::lt, zero, shared), joined(ops::lt, times(all, limit), shared));
}

// Operands of the loop over boxes by decreasing score: carried values, then constants.
namespace part {
enum Part : std::size_t { turn, removed, kept, taken, boxes, eligible, most, limit, count };
}

// [b, c, n] at one position of n: [b, c, 1].
Value flag_at(Value flags, Value here) {
  return reduce_axes(ops::reduce_or, both(flags, here), {2}, true);
}

void fill_body(Function& f, bool from_center) {
  using namespace part;
  auto p = [&](Part i) { return f.param(i); };
  hone::Graph& g = f.graph();
  const Dim n = p(removed).shape()[2];
  Value place = along(counted(g, DType::i64, n), 2, 3);
  Value here = joined(ops::eq, place, p(turn)), later = joined(ops::lt, p(turn), place);
  Value free = ops::bit_and(p(eligible), ops::bit_not(p(removed)));
  Value takes =
      both(flag_at(free, here), ops::lt(p(taken), broadcast_to(p(most), p(taken).shape())));
  Value overlaps = overlap_too_much(edges_of(slice_at(p(boxes), 2, p(turn)), from_center),
                                    edges_of(p(boxes), from_center), p(limit));
  f.add_result(p(turn) + integer_like(p(turn), 1));
  f.add_result(ops::bit_or(p(removed), both(both(overlaps, later), takes)));
  f.add_result(ops::bit_or(p(kept), both(here, takes)));
  f.add_result(p(taken) + cast_to(takes, DType::i64));
}

// The boxes [b, c, n], ordered by score, that are kept.
Value kept_boxes(const Values& operands, bool from_center) {
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* f : {go.get(), next.get()})
    for (const Value& v : operands) f->add_param(v.type(), cat("p", f->params().size()));
  go->add_result(ops::lt(go->param(part::turn),
                         size_value(go->graph(), operands[part::removed].shape()[2], DType::i64)));
  fill_body(*next, from_center);
  return ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}})
      .result(part::kept);
}

Value scalar_or(NodeContext& c, std::size_t input, Value otherwise) {
  return c.has(input) ? cast_to(reshape_to(c.in(input), {}), otherwise.dtype()) : otherwise;
}

// Boxes [b, n, 4] by class, each class in its own order [b, c, n].
Value sorted_boxes(Value boxes, Value order) {
  const Shape& s = order.shape();
  Value by_class = broadcast_to(unsqueeze(boxes, {1}), Shape{s[0], s[1], s[2], 4});
  Value index = broadcast_to(unsqueeze(order, {3}), by_class.shape());
  return ops::gather_elements(Values{by_class, index}, {{"axis", std::int64_t{2}}});
}

Values non_max_suppression(NodeContext& c) {
  Value boxes = c.in(0), scores = c.in(1);
  hone::Graph& g = c.graph();
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.shape()[2] != Dim(4))
    c.fail(cat("inputs 'boxes' and 'scores' are ", boxes.type(), " and ", scores.type(),
               ", expected [b, n, 4] and [b, classes, n]"));
  c.graph().require_equal(boxes.shape()[0], scores.shape()[0],
                          cat("NonMaxSuppression: 'boxes' and 'scores' are ", boxes.type(), " and ",
                              scores.type(), ", expected equal batch sizes"));
  c.graph().require_equal(boxes.shape()[1], scores.shape()[2],
                          cat("NonMaxSuppression: 'boxes' and 'scores' are ", boxes.type(), " and ",
                              scores.type(), ", expected equal numbers of boxes"));
  const bool from_center = c.flag("center_point_box");
  const Shape shape = scores.shape();
  Value sorted = ops::sort(scores, {{"axis", std::int64_t{2}}, {"descending", std::int64_t{1}}});
  Value order = sorted.result(1);
  Value eligible = c.has(4) ? joined(ops::lt, scalar_or(c, 4, scalar(g, 0, scores.dtype())), sorted)
                            : integers_filled(g, DType::b1, shape, 1);
  Value none = integers_filled(g, DType::b1, shape, 0);
  Value most_taken = scalar_or(c, 2, integer(g, 0));
  Values operands(part::count);
  operands[part::turn] = integer(g, 0);
  operands[part::removed] = operands[part::kept] = none;
  operands[part::taken] = integers_filled(g, DType::i64, Shape{shape[0], shape[1], 1}, 0);
  operands[part::boxes] = sorted_boxes(boxes, order);
  operands[part::eligible] = eligible;
  operands[part::most] = most_taken;
  operands[part::limit] = scalar_or(c, 3, scalar(g, 0, boxes.dtype()));
  Chosen found = chosen(flatten(kept_boxes(operands, from_center)));
  Dim each = shape[2];
  if (std::optional<Dims> known = contents_of(most_taken)) each = min(each, max((*known)[0], 0));
  const Dim n = c.measured(found.count, shape[0] * shape[1] * each);
  Value at = slice_axis(found.places, 0, 0, n);
  auto number = [&](const Dim& d) { return size_value(g, max(d, 1), DType::i64); };
  Value row = over(at, number(shape[2]));
  Value box = ops::gather(Values{flatten(order), at}, {{"axis", std::int64_t{0}}});
  return {concat_values(
      Values{unsqueeze(over(row, number(shape[1])), {1}),
             unsqueeze(joined(ops::mod, row, number(shape[1])), {1}), unsqueeze(box, {1})},
      1)};
}

constexpr ImportEntry suppress_table[] = {{"NonMaxSuppression", non_max_suppression}};

}  // namespace

std::span<const ImportEntry> suppress_imports() { return suppress_table; }

}  // namespace hone::onnx
