#include "schedule/schedule.h"

#include <algorithm>

#include "ir/measured.h"
#include "ops/host.h"
#include "ops/ops.h"
#include "pass/expand.h"
#include "schedule/appended.h"
#include "schedule/cost.h"
#include "schedule/places.h"
#include "schedule/sizes.h"
#include "schedule/specs.h"

namespace hone {

namespace {

// Shared by all sections (the function and its bodies).
struct Builder {
  Builder(const Function& f, const ScheduleOptions& o)
      : whole(f), options(o), slots(out), specs(out, slots, o.in_place, o.tells_alignment) {}
  const Function& whole;
  Schedule out;
  ScheduleOptions options;
  Slots slots;
  Specs specs;
};

Item copy_item(const View& from, const View& to) {
  Item item;
  item.kind = Item::Kind::copy;
  item.reads = {from};
  item.writes = {to};
  return item;
}

// One function: the whole one, or the body of a control node.
class Section {
 public:
  // `params` are the views of its parameters, `results` where its results must be stored. `loop` is
  // the innermost loop around it. Those of `owned` may be overwritten.
  Section(Builder& builder, const Function& f, const std::vector<View>& params,
          const std::vector<View>& results, std::uint32_t loop, std::vector<bool> owned)
      : builder_(builder),
        f_(f),
        grouping_(group(f, {builder.options.one_op_groups, builder.options.rows_into_products,
                            std::move(owned)})),
        extraction_(extract(f, grouping_)),
        places_(builder.slots, f, grouping_, extraction_.groups, params, results, loop),
        loop_(loop) {
    for (const Function& g : extraction_.functions) functions_.push_back(builder.specs.function(g));
    builder.out.groups.reserve(builder.out.groups.size() + extraction_.groups.size());
    items_.reserve(extraction_.groups.size() + results.size());
    for (const DimBound& b : measured_sizes(f.graph())) {
      waiting_.push_back(b.symbol.name());
      note_measured(b);
    }
    std::ranges::copy(f.graph().checks(), std::back_inserter(builder.out.checks));
    for (std::size_t i = 0; i < extraction_.groups.size(); ++i)
      add_item(extraction_.groups[i], grouping_.groups[i]);
    // Those that are stored come last: what they overwrite may have been read until then.
    std::vector<std::size_t> stored;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const Function::Result& r = f.results()[i]; r.stored_to)
        stored.push_back(i);
      else
        copy_value(r.value, results[i]);
    for (std::size_t i : stored) copy_value(f.results()[i].value, results[i]);
  }

  std::vector<Item> take_items() { return std::move(items_); }

 private:
  void add_item(const Extracted& group, const Group& members) {
    Value first(&f_.graph(), members.nodes[0]);
    if (members.kind == Group::Kind::control) return add_control(first, !group.results.empty());
    if (members.kind == Group::Kind::assemble) return add_assembly(first);
    const Specs::Updates updates = updates_of(group, members);
    for (auto [result, param] : updates)
      copy_value(group.params[static_cast<std::size_t>(param)],
                 places_.of(group.results[static_cast<std::size_t>(result)]));
    std::vector<ScheduledGroup>& groups = builder_.out.groups;
    Item& item = (members.prepare ? builder_.out.prepare : items_).emplace_back();
    item.group = static_cast<std::uint32_t>(groups.size());
    ScheduledGroup& out = groups.emplace_back();
    out.param_count = static_cast<std::uint32_t>(group.params.size());
    out.views.reserve(group.params.size() + group.results.size());
    for (const Value& v : group.params) out.views.push_back(places_.of(v));
    for (const Value& v : group.results) out.views.push_back(places_.of(v));
    for (auto [result, param] : updates)
      out.views[static_cast<std::size_t>(param)] = out.results()[static_cast<std::size_t>(result)];
    out.spec = builder_.specs.spec(functions_[group.function], members.prepare, updates, out);
    out.origins = group_origins(f_, members.nodes);
    if (&f_ == &builder_.whole) out.nodes = members.nodes;
  }

  // Results of the group that are a parameter with a part changed, and that parameter: it is copied
  // to the result's place, which does nothing if both turn out to be the same place.
  Specs::Updates updates_of(const Extracted& group, const Group& members) const {
    Specs::Updates out;
    for (NodeId n : members.nodes) {
      if (!grouping_.is_update(n)) continue;
      const Value changed(&f_.graph(), n), whole = f_.graph().operands(n)[0];
      const auto result = std::find(group.results.begin(), group.results.end(), changed);
      const auto param = std::find(group.params.begin(), group.params.end(), whole);
      if (result == group.results.end() || param == group.params.end()) continue;
      const auto p = param - group.params.begin();
      if (uses(extraction_.functions[group.function], static_cast<std::size_t>(p)) == 1)
        out.emplace_back(static_cast<int>(result - group.results.begin()), static_cast<int>(p));
    }
    return out;
  }

  static std::size_t uses(const Function& f, std::size_t param) {
    const Value p = f.param(param);
    std::size_t count = 0;
    for (NodeId n : live_nodes(f)) {
      const std::span<const Value> operands = f.graph().operands(n);
      count += static_cast<std::size_t>(std::count(operands.begin(), operands.end(), p));
    }
    for (const Function::Result& r : f.results()) count += r.value == p;
    return count;
  }

  // Operands that could not be written directly to their windows are copied there.
  void add_assembly(Value assembled) {
    for (std::size_t i = 0; i < assembled.operand_count(); ++i)
      copy_value(assembled.operand(i), places_.window(assembled, i));
  }

  // Does nothing if the value is already there.
  void copy_value(Value v, const View& to) {
    if (!v.type().is_tensor()) return;
    const View& from = places_.of(v);
    if (!is_same_place(from, to)) add_copy(from, to);
  }

  void add_copy(const View& from, const View& to) { items_.push_back(copy_item(from, to)); }

  void add_control(Value v, bool is_read);
  void add_measure(Value v, bool is_read);
  void add_host(Value v);
  void note_measured(const DimBound& b);
  void note_limit(const DimCheck& c, std::string_view symbol);
  void add_branch(Value v);
  void add_loop(Value v);
  void add_refusal(Value v);
  void add_requirement(Value v, bool is_read);
  // The first `owned` parameters may be overwritten.
  std::vector<Item> body(Value v, AttrName which, const std::vector<View>& params,
                         const std::vector<View>& results, std::uint32_t loop,
                         std::size_t owned = 0);
  View temporary(const Type& type, std::uint32_t loop) {
    return dense_view(builder_.slots.arena(type, loop), type);
  }
  // Bodies assume that their parameters are dense.
  std::vector<View> operand_places(Value v, std::size_t first) {
    std::vector<View> out;
    for (std::size_t i = first; i < v.operand_count(); ++i) {
      View at = places_.of(v.operand(i));
      if (!are_dense(at.strides, at.dims)) {
        View copy = temporary(v.operand(i).type(), loop_);
        add_copy(at, copy);
        at = copy;
      }
      out.push_back(std::move(at));
    }
    return out;
  }
  // Also for results that are never read: the body writes them.
  std::vector<View> result_places(Value v) {
    std::vector<View> out;
    for (std::size_t i = 0; i < v.result_count(); ++i) out.push_back(places_.of(v.result(i)));
    return out;
  }

  Builder& builder_;
  const Function& f_;
  Grouping grouping_;
  Extraction extraction_;
  std::vector<std::uint32_t> functions_;  // per function of extraction_: its index in specs
  Places places_;
  std::uint32_t loop_;
  std::vector<std::string> waiting_;  // data-dependent symbols that are not measured yet
  std::vector<Item> items_;
};

bool mentions(const DimCheck& c, std::string_view symbol) {
  return holds_symbol(c.a, symbol) || holds_symbol(c.b, symbol);
}

Item check_item(const DimCheck& check) {
  Item item;
  item.kind = Item::Kind::refuse;
  item.text = check.message;
  item.sizes = {check.a, check.b};
  return item;
}

// Replaces its symbols by the sizes of its arguments; its requirements on them are checked each
// time.
std::vector<Item> Section::body(Value v, AttrName which, const std::vector<View>& params,
                                const std::vector<View>& results, std::uint32_t loop,
                                std::size_t owned) {
  Function f = with_sizes(*v.attrs().get<FunctionRef>(which), params);
  std::vector<Item> items;
  for (const DimCheck& check : first_checks(f)) items.push_back(check_item(check));
  std::vector<bool> may_change(params.size(), false);
  std::fill_n(may_change.begin(), owned, true);
  std::vector<Item> rest =
      Section(builder_, f, params, results, loop, std::move(may_change)).take_items();
  std::move(rest.begin(), rest.end(), std::back_inserter(items));
  return items;
}

// A body that is used twice may measure a size under two bounds.
void Section::note_measured(const DimBound& b) {
  std::vector<DimBound>& all = builder_.out.measured;
  Dim most = b.most;
  for (const DimBound& known : all)
    if (known.symbol == b.symbol) most = max(most, known.most);
  std::erase_if(all, [&](const DimBound& known) { return known.symbol == b.symbol; });
  all.push_back({b.symbol, most});
}

// p == q, or max(p, q) == q: p is at most q.
void Section::note_limit(const DimCheck& c, std::string_view symbol) {
  for (auto [a, b] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
    const DimExpr* e = a.expr();
    if (e && e->kind == DimExpr::Kind::max) a = e->a == b ? e->b : e->a;
    if (e && e->kind == DimExpr::Kind::max && !(e->a == b) && !(e->b == b)) continue;
    if (holds_symbol(a, symbol) && !holds_symbol(b, symbol)) builder_.out.limits.push_back({a, b});
  }
}

// Requirements on the size are checked as soon as it is known.
void Section::add_measure(Value v, bool is_read) {
  if (is_read) copy_value(v.operand(0), places_.of(v));
  const Dim symbol = v.attrs().dims("symbol")[0];
  Item item;
  item.kind = Item::Kind::measure;
  item.reads = {places_.of(v.operand(0))};
  item.text = cat("measure ", symbol, " ", origins_text(v));
  item.sizes = {symbol, v.attrs().dims("high")[0]};
  items_.push_back(std::move(item));
  if (!symbol.is_symbol()) return;
  std::erase(waiting_, symbol.name());
  for (const DimCheck& c : f_.graph().checks())
    if (mentions(c, symbol.name()) &&
        std::none_of(waiting_.begin(), waiting_.end(),
                     [&](const std::string& name) { return mentions(c, name); })) {
      items_.push_back(check_item(c));
      note_limit(c, symbol.name());
    }
}

void Section::add_host(Value v) {
  Item item;
  item.kind = Item::Kind::host;
  item.text = v.op().name;
  item.reads = operand_places(v, 0);
  item.writes = result_places(v);
  item.settings = host_settings(v.op(), v.attrs());
  items_.push_back(std::move(item));
}

void Section::add_control(Value v, bool is_read) {
  if (v.is(ops::measure)) return add_measure(v, is_read);
  if (is_host_op(v.op())) return add_host(v);
  if (v.is(ops::if_else)) return add_branch(v);
  if (v.is(ops::while_loop)) return add_loop(v);
  if (v.is(ops::refuse)) return add_refusal(v);
  if (v.is(ops::require)) return add_requirement(v, is_read);
  throw UserError(v.op().name, ": cannot be a step of a plan on this device (", origins_text(v),
                  ")");
}

void Section::add_branch(Value v) {
  Item item;
  item.kind = Item::Kind::branch;
  item.reads = {places_.of(v.operand(0))};
  std::vector<View> arguments = operand_places(v, 1), results = result_places(v);
  item.text = cat("if ", origins_text(v));
  item.body = body(v, "then", arguments, results, loop_);
  item.otherwise = body(v, "else", arguments, results, loop_);
  items_.push_back(std::move(item));
}

// The state lives in the results' slots: copied in, tested, computed into other memory, copied
// back. The plan builder finds the copies that do nothing because source and target share memory.
void Section::add_loop(Value v) {
  std::vector<View> values = operand_places(v, 0), carried = result_places(v), next;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    add_copy(values[i], carried[i]);
    values[i] = carried[i];
  }
  Item item;
  item.kind = Item::Kind::loop;
  item.loop = static_cast<std::uint32_t>(builder_.out.loop_parents.size());
  builder_.out.loop_parents.push_back(loop_);
  item.text = cat("while ", origins_text(v));
  item.reads = {temporary(Type(DType::b1, Shape{}), item.loop)};
  item.otherwise = body(v, "condition", values, item.reads, item.loop);
  for (std::size_t i = 0; i < carried.size(); ++i)
    next.push_back(temporary(v.result(i).type(), item.loop));
  item.body = body(v, "body", values, next, item.loop, carried.size());
  for (std::size_t i = 0; i < carried.size(); ++i)
    item.body.push_back(copy_item(next[i], carried[i]));
  item.carried = carried.size();
  items_.push_back(std::move(item));
}

void Section::add_refusal(Value v) {
  Item item;
  item.kind = Item::Kind::refuse;
  item.text = v.attrs().get<std::string>("message");
  items_.push_back(std::move(item));
}

void Section::add_requirement(Value v, bool is_read) {
  const std::string from = origins_text(v);
  Item item;
  item.kind = Item::Kind::require;
  item.reads = {places_.of(v.operand(0))};
  item.text = cat(from, from.empty() ? "" : ": ", v.attrs().get<std::string>("message"));
  item.sizes = {v.attrs().dims("low").at(0), v.attrs().dims("high").at(0)};
  items_.push_back(std::move(item));
  if (is_read) add_copy(places_.of(v.operand(0)), places_.of(v));
}

// Memory of the caller for a parameter or result.
View port(Slots& slots, PlanBuffer::Kind kind, std::size_t number, const Type& type,
          const std::optional<Capacity>& capacity) {
  if (!capacity) return dense_view(slots.add(kind, static_cast<std::uint32_t>(number), type), type);
  const Type whole = whole_type(type, capacity);
  View v = dense_view(slots.add(kind, static_cast<std::uint32_t>(number), whole), whole);
  v.dims = type.shape.dims;
  return v;
}

}  // namespace

std::vector<DimCheck> first_checks(const Function& f) {
  const std::vector<DimBound> measured = measured_sizes(f.graph());
  std::vector<DimCheck> out;
  for (const DimCheck& c : f.graph().checks())
    if (std::none_of(measured.begin(), measured.end(),
                     [&](const DimBound& m) { return mentions(c, m.symbol.name()); }))
      out.push_back(c);
  return out;
}

Schedule schedule(const Function& function, const ScheduleOptions& options) {
  // Composites that no kernel computes as a whole would be recomputed for every element read.
  const Function f = expand(function);
  Builder builder(f, options);
  std::vector<View> params, results;
  params.reserve(f.params().size());
  results.reserve(f.results().size());
  builder.out.slots.reserve(f.params().size() + f.results().size());
  for (std::size_t i = 0; i < f.params().size(); ++i)
    params.push_back(
        port(builder.slots, PlanBuffer::Kind::param, i, f.param(i).type(), f.params()[i].capacity));
  std::vector<Item> stores;
  for (std::size_t i = 0; i < f.results().size(); ++i) {
    const Function::Result& r = f.results()[i];
    const Type& type = r.value.type();
    const auto number = static_cast<std::uint32_t>(i);
    if (!r.stored_to) {
      const std::uint32_t slot = builder.slots.add(PlanBuffer::Kind::result, number, type);
      results.push_back(dense_view(slot, type));
      continue;
    }
    const std::uint32_t param = *r.stored_to;
    results.push_back(
        port(builder.slots, PlanBuffer::Kind::result, i, type, f.params()[param].capacity));
    const bool appends = !options.one_op_groups && is_appended(f, i);
    builder.out.stores.push_back({number, param, appends});
    if (appends) continue;
    const View made = dense_view(builder.slots.arena(type, 0), type);
    stores.push_back(copy_item(made, results.back()));
    results.back() = made;
  }
  builder.out.params = f.param_types();
  builder.out.results = f.result_types();
  std::vector<bool> donated;
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    donated.push_back(f.params()[i].donated);
    if (donated.back()) builder.out.donated.push_back(params[i].buffer);
  }
  builder.out.items = Section(builder, f, params, results, 0, std::move(donated)).take_items();
  std::ranges::move(stores, std::back_inserter(builder.out.items));
  return std::move(builder.out);
}

}  // namespace hone
