#include "schedule/schedule.h"

#include <optional>
#include <unordered_map>

#include "ops/ops.h"
#include "schedule/in_place.h"
#include "schedule/cost.h"
#include "schedule/extract.h"
#include "schedule/sizes.h"
#include "schedule/views.h"

namespace hone {

namespace {

// What all sections (the function and the bodies in it) share.
struct Builder {
  Schedule out;
  ScheduleOptions options;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> weight_slots;  // by storage hash

  std::uint32_t add_slot(PlanBuffer::Kind kind, std::uint32_t index, const Type& type,
                         std::uint32_t loop = 0) {
    out.slots.push_back({kind, index, byte_count(type), loop});
    return static_cast<std::uint32_t>(out.slots.size() - 1);
  }

  std::uint32_t weight_slot(const Array& data) {
    std::vector<std::uint32_t>& known = weight_slots[data.storage().hash()];
    for (std::uint32_t slot : known)
      if (equal(Attr(out.weights[out.slots[slot].index].data), Attr(data))) return slot;
    auto index = static_cast<std::uint32_t>(out.weights.size());
    out.weights.push_back({cat("weight", index), data});
    known.push_back(add_slot(PlanBuffer::Kind::weight, index, data.type()));
    return known.back();
  }

  std::uint32_t prepared_slot(const Type& type) {
    auto index = static_cast<std::uint32_t>(out.prepared.size());
    out.prepared.push_back({cat("prepared", index), type, {}});
    return add_slot(PlanBuffer::Kind::prepared, index, type);
  }
};

View dense_view(std::uint32_t slot, const Type& type) {
  return {slot, 0, type.dtype, type.shape.dims, dense_strides(type.shape)};
}

// One function: the whole one, or the body of a control node.
class Section {
 public:
  // `params` say where its parameters are, `results` where its results must go. `loop` is the
  // innermost loop around it.
  Section(Builder& builder, const Function& f, const std::vector<View>& params,
          const std::vector<View>& results, std::uint32_t loop)
      : builder_(builder),
        f_(f),
        grouping_(group(f, {builder.options.one_op_groups})),
        places_(grouping_.value_count),
        loop_(loop) {
    for (std::size_t i = 0; i < params.size(); ++i) places_[number(f.param(i))] = params[i];
    std::vector<Extracted> groups = extract(f, grouping_);
    place_results(results);
    for (std::size_t i = 0; i < groups.size(); ++i) place_group(groups[i], grouping_.groups[i]);
    for (std::size_t i = 0; i < groups.size(); ++i) add_item(groups[i], grouping_.groups[i]);
    for (std::size_t i = 0; i < results.size(); ++i) copy_result(f.result(i), results[i]);
  }

  std::vector<Item> take_items() { return std::move(items_); }

 private:
  std::uint32_t number(Value v) const { return grouping_.value_number(v); }

  // Results that a group computes are computed where they must go.
  void place_results(const std::vector<View>& results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      Value v = f_.result(i);
      std::uint32_t g = grouping_.group_of[v.node()];
      std::optional<View>& place = places_[number(v)];
      if (g != Grouping::none && !grouping_.groups[g].prepare && !place) place = results[i];
    }
  }

  void place_group(const Extracted& group, const Group& members) {
    for (const Value& v : group.results) {
      std::optional<View>& place = places_[number(v)];
      if (place || !v.type().is_tensor()) continue;
      std::uint32_t slot = members.prepare
                               ? builder_.prepared_slot(v.type())
                               : builder_.add_slot(PlanBuffer::Kind::arena, 0, v.type(), loop_);
      place = dense_view(slot, v.type());
    }
  }

  View place_of(Value v) {
    std::optional<View>& place = places_[number(v)];
    if (place) return *place;
    if (v.is(ops::constant)) {
      place = dense_view(builder_.weight_slot(v.attrs().get<Array>("value")), v.type());
      return *place;
    }
    return place_view(v);
  }

  // Walks down to memory, and up again through the windows.
  View place_view(Value v) {
    std::vector<Value> chain;
    while (grouping_.roles[v.node()] == Role::view && !places_[number(v)]) {
      chain.push_back(v);
      v = v.operand(0);
    }
    View at = place_of(v);
    for (std::size_t i = chain.size(); i-- > 0;) {
      Dim bytes = byte_size(at.dtype);
      std::optional<Layout> layout =
          view_layout(f_.graph(), chain[i].node(), {floor_div(at.offset, bytes), at.strides});
      HONE_ASSERT(layout, chain[i].op().name, " is no view of its operand");
      at = {at.buffer, layout->offset * bytes, at.dtype, chain[i].shape().dims, layout->strides};
      places_[number(chain[i])] = at;
    }
    return at;
  }

  void add_item(const Extracted& group, const Group& members) {
    if (members.control) return add_control(Value(&f_.graph(), members.nodes[0]));
    ScheduledGroup out;
    out.spec.function = group.function;
    out.prepare = members.prepare;
    for (const Value& v : group.params) add_operand(v, out);
    for (const Value& v : group.results) {
      out.results.push_back(place_of(v));
      out.spec.result_strides.push_back(normal_strides(out.results.back()));
    }
    if (builder_.options.in_place) out.in_place = in_place_pairs(group.function);
    out.name = group_name(group.function);
    out.origins = group_origins(f_, members.nodes);
    out.bytes = ideal_bytes(group.function);
    out.flops = ideal_flops(group.function);
    Item item;
    item.group = static_cast<std::uint32_t>(builder_.out.groups.size());
    builder_.out.groups.push_back(std::move(out));
    (members.prepare ? builder_.out.prepare : items_).push_back(std::move(item));
  }

  void add_operand(Value v, ScheduledGroup& out) {
    View at = place_of(v);
    PlanBuffer::Kind kind = builder_.out.slots[at.buffer].kind;
    out.spec.param_strides.push_back(normal_strides(at));
    out.spec.param_is_weight.push_back(kind == PlanBuffer::Kind::weight ||
                                       kind == PlanBuffer::Kind::prepared);
    out.params.push_back(std::move(at));
  }

  void copy_result(Value v, const View& to) {
    if (!v.type().is_tensor()) return;
    View from = place_of(v);
    if (from.buffer == to.buffer && from.offset == to.offset && from.strides == to.strides) return;
    add_copy(from, to);
  }

  static Item copy_item(const View& from, const View& to) {
    Item item;
    item.kind = Item::Kind::copy;
    item.from = from;
    item.to = to;
    return item;
  }
  void add_copy(const View& from, const View& to) { items_.push_back(copy_item(from, to)); }

  void add_control(Value v);
  void add_branch(Value v);
  void add_loop(Value v);
  void add_refusal(Value v);
  std::vector<Item> body(Value v, AttrName which, const std::vector<View>& params,
                         const std::vector<View>& results, std::uint32_t loop);
  View temporary(const Type& type, std::uint32_t loop) {
    return dense_view(builder_.add_slot(PlanBuffer::Kind::arena, 0, type, loop), type);
  }
  std::vector<View> operand_places(Value v, std::size_t first) {
    std::vector<View> out;
    for (std::size_t i = first; i < v.operand_count(); ++i) out.push_back(place_of(v.operand(i)));
    return out;
  }
  // Also of results that nobody reads: the body writes them.
  std::vector<View> result_places(Value v, std::uint32_t loop) {
    std::vector<View> out;
    for (std::size_t i = 0; i < v.result_count(); ++i) {
      std::optional<View>& place = places_[number(v.result(i))];
      if (!place) place = temporary(v.result(i).type(), loop);
      out.push_back(*place);
    }
    return out;
  }

  Builder& builder_;
  const Function& f_;
  Grouping grouping_;
  std::vector<std::optional<View>> places_;  // by value number
  std::uint32_t loop_;
  std::vector<Item> items_;
};

// Its symbols are replaced by the sizes that it is given, and what it requires of them is checked
// each time.
std::vector<Item> Section::body(Value v, AttrName which, const std::vector<View>& params,
                                const std::vector<View>& results, std::uint32_t loop) {
  Function f = with_sizes(*v.attrs().get<FunctionRef>(which), params);
  std::vector<Item> items;
  for (const DimCheck& check : f.graph().checks()) {
    Item item;
    item.kind = Item::Kind::refuse;
    item.text = check.message;
    item.sizes = {check.a, check.b};
    items.push_back(std::move(item));
  }
  std::vector<Item> rest = Section(builder_, f, params, results, loop).take_items();
  std::move(rest.begin(), rest.end(), std::back_inserter(items));
  return items;
}

void Section::add_control(Value v) {
  if (v.is(ops::if_else)) return add_branch(v);
  if (v.is(ops::while_loop)) return add_loop(v);
  if (v.is(ops::refuse)) return add_refusal(v);
  throw UserError(v.op().name, ": is no step of a plan on this device (", origins_text(v), ")");
}

void Section::add_branch(Value v) {
  Item item;
  item.kind = Item::Kind::branch;
  item.from = place_of(v.operand(0));
  std::vector<View> arguments = operand_places(v, 1), results = result_places(v, loop_);
  item.text = cat("if ", origins_text(v));
  item.body = body(v, "then", arguments, results, loop_);
  item.otherwise = body(v, "else", arguments, results, loop_);
  items_.push_back(std::move(item));
}

// What is carried lives in the results' slots: copied in, tested, computed beside, copied back.
void Section::add_loop(Value v) {
  std::vector<View> values = operand_places(v, 0), carried = result_places(v, loop_), next;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    add_copy(values[i], carried[i]);
    values[i] = carried[i];
  }
  Item item;
  item.kind = Item::Kind::loop;
  item.loop = static_cast<std::uint32_t>(builder_.out.loop_parents.size());
  builder_.out.loop_parents.push_back(loop_);
  item.text = cat("while ", origins_text(v));
  item.from = temporary(Type(DType::b1, Shape{}), item.loop);
  item.otherwise = body(v, "condition", values, {item.from}, item.loop);
  for (std::size_t i = 0; i < carried.size(); ++i)
    next.push_back(temporary(v.result(i).type(), item.loop));
  item.body = body(v, "body", values, next, item.loop);
  for (std::size_t i = 0; i < carried.size(); ++i)
    item.body.push_back(copy_item(next[i], carried[i]));
  items_.push_back(std::move(item));
}

void Section::add_refusal(Value v) {
  Item item;
  item.kind = Item::Kind::refuse;
  item.text = v.attrs().get<std::string>("message");
  items_.push_back(std::move(item));
}

}  // namespace

Schedule schedule(const Function& f, const ScheduleOptions& options) {
  Builder builder{{}, options, {}};
  std::vector<View> params, results;
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    const Type& type = f.param(i).type();
    params.push_back(dense_view(
        builder.add_slot(PlanBuffer::Kind::param, static_cast<std::uint32_t>(i), type), type));
  }
  for (std::size_t i = 0; i < f.results().size(); ++i) {
    const Type& type = f.result(i).type();
    results.push_back(dense_view(
        builder.add_slot(PlanBuffer::Kind::result, static_cast<std::uint32_t>(i), type), type));
  }
  builder.out.params = f.param_types();
  builder.out.results = f.result_types();
  for (std::size_t i = 0; i < f.params().size(); ++i)
    if (f.params()[i].donated) builder.out.donated.push_back(params[i].buffer);
  builder.out.items = Section(builder, f, params, results, 0).take_items();
  return std::move(builder.out);
}

}  // namespace hone
