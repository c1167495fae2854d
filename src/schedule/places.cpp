#include "schedule/places.h"

#include <unordered_map>

#include "ops/host.h"
#include "ops/ops.h"

namespace hone {

namespace {

Layout layout_of(const View& v) {
  return {floor_div(v.offset, Dim(byte_size(v.dtype))), v.strides};
}

View view_at(const View& memory, const Layout& layout, const Shape& shape) {
  return {memory.buffer, layout.offset * Dim(byte_size(memory.dtype)), memory.dtype, shape.dims,
          layout.strides};
}

}  // namespace

Places::Places(Slots& slots, const Function& f, const Grouping& grouping,
               std::span<const Extracted> groups, std::span<const View> params,
               std::span<const View> results, std::uint32_t loop)
    : slots_(slots),
      graph_(f.graph()),
      grouping_(grouping),
      loop_(loop),
      places_(grouping.value_count),
      views_on_(grouping.value_count) {
  for (NodeId n : grouping.order)
    if (grouping.roles[n] == Role::view)
      views_on_[number(grouping_.base_of({&graph_, n}))].push_back(n);
  for (std::size_t i = 0; i < params.size(); ++i) places_[number(f.param(i))] = &params[i];
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const Value v = f.results()[i].value; v.type().is_tensor()) try_place(v, results[i]);
  // Users first: a concat inside a concat is itself in a window.
  for (std::size_t i = groups.size(); i-- > 0;) {
    if (grouping.groups[i].kind != Group::Kind::assemble) continue;
    place_new(groups[i], grouping.groups[i]);
    place_operands({&graph_, grouping.groups[i].nodes[0]});
  }
  for (std::size_t i = 0; i < groups.size(); ++i) place_new(groups[i], grouping.groups[i]);
}

// True if a group of this function writes it during the run.
bool Places::is_made_here(Value v) const {
  std::uint32_t g = grouping_.group_of[v.node()];
  return g != Grouping::none && !grouping_.groups[g].prepare;
}

bool Places::try_place(Value v, const View& at) {
  if (grouping_.roles[v.node()] != Role::view) return try_place_base(v, at);
  Layout layout = layout_of(at);
  while (grouping_.roles[v.node()] == Role::view) {
    std::optional<Layout> below = operand_layout(graph_, v.node(), layout);
    if (!below) return false;
    layout = std::move(*below);
    v = v.operand(0);
  }
  return try_place_base(v, keep(view_at(at, layout, v.shape())));
}

bool Places::try_place_base(Value v, const View& at) {
  const View*& place = places_[number(v)];
  if (place || !is_made_here(v) || !views_fit(v, at)) return false;
  // The state of a loop is stored in its result.
  if (v.is(ops::while_loop) && !is_all_of_its_slot(at)) return false;
  // Host functions write their results densely.
  if (is_host_op(v.op()) && !are_dense(at.strides, at.dims)) return false;
  place = &at;
  return true;
}

bool Places::is_all_of_its_slot(const View& v) const {
  return v.offset == Dim(0) && are_dense(v.strides, v.dims) &&
         byte_count(Type(v.dtype, Shape(v.dims))) == slots_.bytes(v.buffer);
}

// Views were found under the assumption that everything is dense.
bool Places::views_fit(Value base, const View& at) const {
  if (views_on_[number(base)].empty() || are_dense(at.strides, at.dims)) return true;
  std::unordered_map<NodeId, Layout> known{{base.node(), layout_of(at)}};
  for (NodeId n : views_on_[number(base)]) {
    std::optional<Layout> at = view_layout(graph_, n, known.at(graph_.operands(n)[0].node()));
    if (!at) return false;
    known[n] = std::move(*at);
  }
  return true;
}

View Places::window(Value assembled, std::size_t i) {
  View at = of(assembled);
  if (assembled.is(ops::reshape)) {
    const std::optional<Layout> layout = operand_layout(graph_, assembled.node(), layout_of(at));
    HONE_ASSERT(layout, "the operand of an assembled reshape has no layout");
    return view_at(at, *layout, assembled.operand(0).shape());
  }
  auto axis = static_cast<std::size_t>(assembled.attrs().integer("axis"));
  Dim start = 0;
  for (std::size_t k = 0; k < i; ++k) start = start + assembled.operand(k).shape().dims[axis];
  at.offset = at.offset + start * at.strides[axis] * Dim(byte_size(at.dtype));
  at.dims = assembled.operand(i).shape().dims;
  return at;
}

void Places::place_operands(Value assembled) {
  for (std::size_t i = 0; i < assembled.operand_count(); ++i)
    try_place(assembled.operand(i), keep(window(assembled, i)));
}

void Places::place_new(const Extracted& group, const Group& members) {
  for (const Value& v : group.results) {
    const View*& place = places_[number(v)];
    if (place || !v.type().is_tensor()) continue;
    std::uint32_t slot =
        members.prepare ? slots_.prepared(v.type()) : slots_.arena(v.type(), loop_);
    place = &keep(dense_view(slot, v.type()));
  }
}

// Follows views down to memory, then computes the windows on the way back.
const View& Places::of(Value v) {
  std::vector<Value> chain;
  while (!places_[number(v)] && grouping_.roles[v.node()] == Role::view) {
    chain.push_back(v);
    v = v.operand(0);
  }
  const View*& at = places_[number(v)];
  if (!at && v.is(ops::constant))
    at = &keep(dense_view(slots_.weight(v.attrs().get<Array>("value")), v.type()));
  if (!at) at = &keep(dense_view(slots_.arena(v.type(), loop_), v.type()));
  const View* place = at;
  for (std::size_t i = chain.size(); i-- > 0;) {
    std::optional<Layout> layout = view_layout(graph_, chain[i].node(), layout_of(*place));
    HONE_ASSERT(layout, chain[i].op().name, " is no view of its operand");
    place = &keep(view_at(*place, *layout, chain[i].shape()));
    places_[number(chain[i])] = place;
  }
  return *place;
}

}  // namespace hone
