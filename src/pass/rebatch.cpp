#include "pass/rebatch.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "ir/measured.h"
#include "ops/common.h"
#include "pass/rewrite.h"

namespace hone {

namespace {

// How an attribute changes where a batch axis is put in front of the operands.
enum class Front {
  count,  // sizes get the number of batches in front
  zero,   // a list gets 0 in front
  one,    // a list gets 1 in front
  axis,   // an axis moves by one
  axes,   // all axes of a list move by one
  perm,   // all axes of a list move by one, and 0 comes in front
};
struct AttrRule {
  AttrName name;
  Front how;
};
// An operation that treats each index of a new first axis alike. Operands from `shared` on must be
// the same for all batches.
struct OpRule {
  const Op* op;
  std::vector<AttrRule> attrs;
  std::size_t shared = 99;
};

const OpRule* rule_of(const Op& op) {
  static const std::vector<OpRule> rules = [] {
    const AttrRule shape{"shape", Front::count}, axis{"axis", Front::axis},
        axes{"axes", Front::axes}, low{"low", Front::zero}, high{"high", Front::zero};
    const std::vector<AttrRule> window = {
        {"window", Front::one},    {"strides", Front::one},    {"dilations", Front::one},
        {"pads_low", Front::zero}, {"pads_high", Front::zero},
    };
    std::vector<OpRule> out = {
        {&ops::reshape, {shape}},
        {&ops::broadcast, {shape}},
        {&ops::transpose, {{"perm", Front::perm}}},
        {&ops::slice, {{"starts", Front::zero}, {"sizes", Front::count}, {"steps", Front::one}}},
        {&ops::pad, {low, high}, 1},
        {&ops::pad_edge, {low, high}},
        {&ops::pad_reflect, {low, high}},
        {&ops::tile, {{"count", Front::one}}},
        {&ops::concat, {axis}},
        {&ops::replay, {}},
        {&ops::reverse, {axes}},
        {&ops::reduce_window, window},
        {&ops::avg_pool, window},
        {&ops::cumulative, {axis}},
        {&ops::sort, {axis}},
        {&ops::argmax, {axis}},
        {&ops::argmin, {axis}},
        {&ops::softmax, {axis}},
        {&ops::log_softmax, {axis}},
        {&ops::layer_norm, {axis}, 1},
        {&ops::rms_norm, {axis}, 1},
        {&ops::batch_norm, {axis}, 1},
        {&ops::gather_elements, {axis}},
        {&ops::scatter_elements, {axis}},
        {&ops::gather_nd, {{"batch", Front::axis}}},
    };
    for (const Op* reduction :
         {&ops::reduce_sum, &ops::reduce_max, &ops::reduce_min, &ops::reduce_prod, &ops::reduce_and,
          &ops::reduce_or, &ops::mean, &ops::variance})
      out.push_back({reduction, {axes}});
    return out;
  }();
  const auto at = std::ranges::find(rules, &op, &OpRule::op);
  return at == rules.end() ? nullptr : &*at;
}

Dims in_front(const Dim& first, Dims dims) {
  dims.insert(dims.begin(), first);
  return dims;
}

Dims moved_by_one(Dims axes) {
  for (Dim& a : axes) a = a + Dim(1);
  return axes;
}

Attrs with_front(Attrs attrs, const std::vector<AttrRule>& rules, const Dim& count) {
  for (const AttrRule& r : rules) {
    if (!attrs.has(r.name)) continue;
    switch (r.how) {
      case Front::count:
        attrs.set(r.name, in_front(count, attrs.dims(r.name)));
        break;
      case Front::zero:
        attrs.set(r.name, in_front(0, attrs.dims(r.name)));
        break;
      case Front::one:
        attrs.set(r.name, in_front(1, attrs.dims(r.name)));
        break;
      case Front::axis:
        attrs.set(r.name, attrs.integer(r.name) + 1);
        break;
      case Front::axes:
        attrs.set(r.name, moved_by_one(attrs.dims(r.name)));
        break;
      case Front::perm:
        attrs.set(r.name, in_front(0, moved_by_one(attrs.dims(r.name))));
        break;
    }
  }
  return attrs;
}

// Whether the operation, with the attributes it has, computes each index of the first axis from
// that index of its operands: then more of them need no other axis.
bool keeps_rows(Value v, const OpRule& rule) {
  const Attrs& a = v.attrs();
  const Value x = v.operand(0);
  if (v.rank() == 0 || x.rank() == 0 || v.shape()[0] != x.shape()[0]) return false;
  if (v.is(ops::broadcast)) return v.rank() == x.rank();
  for (const AttrRule& r : rule.attrs) {
    if (!a.has(r.name)) continue;
    switch (r.how) {
      case Front::count:
        if (a.dims(r.name)[0] != x.shape()[0]) return false;
        break;
      case Front::zero:
        if (a.dims(r.name)[0] != Dim(0)) return false;
        break;
      case Front::one:
        if (a.dims(r.name)[0] != Dim(1)) return false;
        break;
      case Front::axis:
        if (a.integer(r.name) == 0) return false;
        break;
      case Front::axes:
        if (std::ranges::count(a.dims(r.name), Dim(0)) > 0) return false;
        break;
      case Front::perm:
        if (a.dims(r.name)[0] != Dim(0)) return false;
        break;
    }
  }
  return true;
}

// A composite that has to be expanded first.
struct NeedsExpansion {
  const Op* op;
};

Function with_expanded(const Function& f, const Op& op) {
  return transform(f, [&](NodeId n, Copier& copy, Function& to) -> Values {
    const Graph& g = f.graph();
    if (&g.op(n) != &op) return {};
    Values operands;
    for (const Value& o : g.operands(n)) operands.push_back(copy(o));
    const std::vector<Type> types = g.result_types(n);
    return op.expand({op, operands, g.attrs(n), to.graph(), types});
  });
}

Value with_axis_first(Value v, int axis) {
  if (axis == 0) return v;
  Axes perm = {axis};
  for (int i = 0; i < v.rank(); ++i)
    if (i != axis) perm.push_back(i);
  return transpose_by(v, perm);
}

Value with_first_axis_at(Value v, int axis) {
  if (axis == 0) return v;
  Axes perm;
  for (int i = 1; i < v.rank(); ++i) perm.push_back(i);
  perm.insert(perm.begin() + axis, 0);
  return transpose_by(v, perm);
}

class Rows {
 public:
  Rows(const Function& from, Function& to, const Dim& count)
      : from_(from), to_(to), count_(count) {}

  void share(Value v, Value now) { shared_.insert_or_assign(v, now); }
  // [count] in front of the type of v, or as many times its first size.
  void set_lifted(Value v, Value now) { lifted_.insert_or_assign(v, now); }
  void set_rows(Value v, Value now) { rows_.insert_or_assign(v, now); }
  bool has_batch(Value v) const { return lifted_.contains(v) || rows_.contains(v); }

  Value shared(Value v) const { return shared_.at(v); }
  Value lifted(Value v) {
    if (const auto at = lifted_.find(v); at != lifted_.end()) return at->second;
    const Dims dims = in_front(count_, v.shape().dims);
    Value out;
    if (const auto at = rows_.find(v); at != rows_.end())
      out = reshape_to(at->second, dims);
    else
      out = broadcast_to(reshape_to(shared(v), in_front(1, v.shape().dims)), Shape(dims));
    if (has_batch(v)) lifted_.emplace(v, out);
    return out;
  }
  Value rows(Value v) {
    if (const auto at = rows_.find(v); at != rows_.end()) return at->second;
    Dims dims = v.shape().dims;
    dims[0] = dims[0] * count_;
    const bool is_one = v.shape()[0] == Dim(1) && !has_batch(v);
    const Value out = is_one ? broadcast_to(shared(v), Shape(dims)) : reshape_to(lifted(v), dims);
    if (has_batch(v)) rows_.emplace(v, out);
    return out;
  }

  void node(NodeId n) {
    const Value v(&from_.graph(), n);
    const std::vector<Value> operands = v.operands();
    if (std::ranges::none_of(operands, [&](const Value& o) { return has_batch(o); }))
      return copy(v);
    if (v.op().kind == OpKind::elementwise) return elementwise(v);
    if (const OpRule* rule = rule_of(v.op())) return by_rule(v, *rule);
    if (special(v)) return;
    if (!v.op().is_core()) throw NeedsExpansion{&v.op()};
    refuse(v, "no rule says that its batches stay apart");
  }

  [[noreturn]] static void refuse(Value v, std::string_view why) {
    const std::string from = origins_text(v);
    throw UserError(from.empty() ? cat("operation ", v.op().name) : from, ": ", why);
  }

 private:
  Value intern(Value v, const Values& operands, Attrs attrs) {
    return to_.graph().intern(v.op(), operands, std::move(attrs));
  }
  template <class Set>
  void each_result(Value v, Value made, const Set& set) {
    for (std::size_t i = 0; i < v.result_count(); ++i) set(v.result(i), made.result(i));
  }
  void lift(Value v, Value made) {
    each_result(v, made, [&](Value r, Value now) { set_lifted(r, now); });
  }

  void copy(Value v) {
    Values operands;
    for (const Value& o : v.operands()) operands.push_back(shared(o));
    each_result(v, intern(v, operands, v.attrs()), [&](Value r, Value now) { share(r, now); });
  }

  void elementwise(Value v) {
    for (const Value& o : v.operands())
      if (o.shape() != v.shape()) refuse(v, "its operands have other sizes than its result");
    // In rows if an operand already is: a shared operand of one row is repeated then.
    const bool in_rows = v.rank() > 0 && std::ranges::any_of(v.operands(), [&](const Value& o) {
                           return rows_.contains(o);
                         });
    Values operands;
    for (const Value& o : v.operands()) operands.push_back(in_rows ? rows(o) : lifted(o));
    const Value made = intern(v, operands, v.attrs());
    each_result(v, made,
                [&](Value r, Value now) { in_rows ? set_rows(r, now) : set_lifted(r, now); });
  }

  void by_rule(Value v, const OpRule& rule) {
    for (std::size_t i = rule.shared; i < v.operand_count(); ++i)
      if (has_batch(v.operand(i))) {
        if (!v.op().is_core()) throw NeedsExpansion{&v.op()};
        refuse(v, cat("its operand ", i, " differs from batch to batch"));
      }
    const bool in_rows = keeps_rows(v, rule);
    Values operands;
    for (std::size_t i = 0; i < v.operand_count(); ++i) {
      const Value o = v.operand(i);
      operands.push_back(i >= rule.shared ? shared(o) : in_rows ? rows(o) : lifted(o));
    }
    if (!in_rows) {
      if (v.is(ops::broadcast)) operands[0] = of_rank(operands[0], v.rank() + 1);
      return lift(v, intern(v, operands, with_front(v.attrs(), rule.attrs, count_)));
    }
    Attrs attrs = v.attrs();
    for (const AttrRule& r : rule.attrs)
      if (r.how == Front::count) {
        Dims sizes = attrs.dims(r.name);
        sizes[0] = sizes[0] * count_;
        attrs.set(r.name, sizes);
      }
    each_result(v, intern(v, operands, attrs), [&](Value r, Value now) { set_rows(r, now); });
  }

  // [count] and then enough axes of size 1 for the given rank.
  static Value of_rank(Value lifted, int rank) {
    Dims dims = lifted.shape().dims;
    dims.insert(dims.begin() + 1, static_cast<std::size_t>(rank - lifted.rank()), Dim(1));
    return reshape_to(lifted, dims);
  }

  bool special(Value v) {
    if (v.is(ops::dot)) return dot(v), true;
    if (v.is(ops::matmul)) return matmul(v), true;
    if (v.is(ops::conv)) return conv(v), true;
    if (v.is(ops::gather)) return gather(v), true;
    if (v.is(ops::scatter)) return scatter(v), true;
    if (v.is(ops::scatter_nd)) return scatter_nd(v), true;
    if (v.is(ops::dynamic_slice) || v.is(ops::dynamic_update)) return dynamic(v), true;
    if (v.is(ops::lstm)) return lstm(v), true;
    if (v.is(ops::require)) return require(v), true;
    if (v.is(ops::if_else)) return if_else(v), true;
    if (v.is(ops::while_loop)) return while_loop(v), true;
    if (&v.op() == &ops::measure) refuse(v, "the data of each batch decides a size");
    return false;
  }

  // Result axes: pairs of `batch`, the free axes of a, those of b. The new axis is a pair, or the
  // first free axis of the operand that has it.
  void dot(Value v) {
    const Value a = v.operand(0), b = v.operand(1);
    const bool in_a = has_batch(a), in_b = has_batch(b);
    const auto pairs = [&](AttrName name) {
      Dims out = v.attrs().dims(name);
      for (std::size_t i = 0; i < out.size(); ++i)
        if (i % 2 == 0 ? in_a : in_b) out[i] = out[i] + Dim(1);
      return out;
    };
    Attrs attrs = v.attrs();
    Dims batch = pairs("batch");
    const int batches = static_cast<int>(batch.size() / 2),
              contracted = static_cast<int>(attrs.dims("contract").size() / 2);
    if (in_a && in_b) batch.insert(batch.begin(), 2, Dim(0));
    attrs.set("batch", batch);
    attrs.set("contract", pairs("contract"));
    const Value made =
        intern(v, {in_a ? lifted(a) : shared(a), in_b ? lifted(b) : shared(b)}, attrs);
    const int at = in_a && in_b ? 0 : in_a ? batches : a.rank() - contracted;
    set_lifted(v, with_axis_first(made, at));
  }

  // Rows of a first operand of two axes stay rows: each is multiplied alone.
  void matmul(Value v) {
    const Value a = v.operand(0), b = v.operand(1);
    if (a.rank() < 2 || b.rank() < 2) throw NeedsExpansion{&v.op()};
    const int rank = std::max(a.rank(), b.rank());
    if (has_batch(a) && !has_batch(b) && a.rank() == v.rank() &&
        (b.rank() < a.rank() || (b.rank() == 2 && a.rank() == 2)))
      return set_rows(v, intern(v, {rows(a), shared(b)}, v.attrs()));
    const auto operand = [&](const Value& x) {
      return has_batch(x) ? of_rank(lifted(x), rank + 1) : shared(x);
    };
    set_lifted(v, intern(v, {operand(a), operand(b)}, v.attrs()));
  }

  void conv(Value v) {
    if (has_batch(v.operand(1))) refuse(v, "its weights differ from batch to batch");
    set_rows(v, intern(v, {rows(v.operand(0)), shared(v.operand(1))}, v.attrs()));
  }

  void gather(Value v) {
    const Value x = v.operand(0), index = v.operand(1);
    const int axis = static_cast<int>(v.attrs().integer("axis"));
    if (!has_batch(index)) {
      Attrs attrs = v.attrs();
      if (axis > 0) return set_rows(v, intern(v, {rows(x), shared(index)}, attrs));
      attrs.set("axis", std::int64_t{axis + 1});
      return set_lifted(v, intern(v, {lifted(x), shared(index)}, attrs));
    }
    if (!has_batch(x)) {
      if (axis == 0 && index.rank() > 0)
        return set_rows(v, intern(v, {shared(x), rows(index)}, v.attrs()));
      return set_lifted(v, with_axis_first(intern(v, {shared(x), lifted(index)}, v.attrs()), axis));
    }
    // The axis first, for gather_nd: [count, index.., axes before, axes behind].
    Axes order = {0, axis + 1};
    for (int i = 0; i < x.rank(); ++i)
      if (i != axis) order.push_back(i + 1);
    Dims places = in_front(count_, index.shape().dims);
    places.push_back(1);
    const Value made =
        ops::gather_nd(Values{transpose_by(lifted(x), order), reshape_to(lifted(index), places)},
                       {{"batch", std::int64_t{1}}});
    Axes back = {0};
    for (int i = 0; i < axis; ++i) back.push_back(1 + index.rank() + i);
    for (int i = 0; i < index.rank(); ++i) back.push_back(1 + i);
    for (int i = axis; i + 1 < x.rank(); ++i) back.push_back(1 + index.rank() + i);
    set_lifted(v, transpose_by(made, back));
  }

  void scatter(Value v) {
    if (has_batch(v.operand(1))) refuse(v, "its indices differ from batch to batch");
    Attrs attrs = v.attrs();
    attrs.set("axis", attrs.integer("axis") + 1);
    set_lifted(
        v, intern(v, {lifted(v.operand(0)), shared(v.operand(1)), lifted(v.operand(2))}, attrs));
  }

  // The number of the batch becomes the first index of each place.
  void scatter_nd(Value v) {
    const Value index = lifted(v.operand(1));
    Shape first = index.shape();
    first[-1] = 1;
    const Value batch = iota_value(to_.graph(), index.dtype(), first, 0);
    const Value places[] = {batch, index};
    set_lifted(v, intern(v,
                         {lifted(v.operand(0)), concat_values(places, index.rank() - 1),
                          lifted(v.operand(2))},
                         v.attrs()));
  }

  void dynamic(Value v) {
    const std::size_t last = v.operand_count() - 1;
    if (has_batch(v.operand(last))) refuse(v, "the place of a part differs from batch to batch");
    const Value starts = shared(v.operand(last));
    const Value parts[] = {constant(to_.graph(), Array::zeros(starts.dtype(), {1})), starts};
    Values operands;
    for (std::size_t i = 0; i < last; ++i) operands.push_back(lifted(v.operand(i)));
    operands.push_back(concat_values(parts, 0));
    set_lifted(v, intern(v, operands, with_front(v.attrs(), {{"sizes", Front::count}}, count_)));
  }

  // x [steps, b, i] and the states [b, h]: b becomes count * b.
  void lstm(Value v) {
    for (std::size_t i : {1U, 2U, 3U})
      if (has_batch(v.operand(i))) throw NeedsExpansion{&v.op()};
    Values operands;
    for (std::size_t i = 0; i < v.operand_count(); ++i) {
      const Value o = v.operand(i);
      if (i == 0) {
        Dims dims = o.shape().dims;
        dims[1] = dims[1] * count_;
        operands.push_back(reshape_to(with_first_axis_at(lifted(o), 1), dims));
      } else {
        operands.push_back(i < 4 ? shared(o) : rows(o));
      }
    }
    const Value made = intern(v, operands, v.attrs());
    Dims split = v.shape().dims;
    split.insert(split.begin() + 1, count_);
    set_lifted(v, with_axis_first(reshape_to(made, split), 1));
    for (std::size_t i : {1U, 2U}) set_rows(v.result(i), made.result(i));
  }

  // Of the numbers that are not 0, one is enough to refuse the run.
  void require(Value v) {
    const Value all = lifted(v.operand(0));
    const Value most = reduce_axes(ops::reduce_max, all, {0}),
                least = reduce_axes(ops::reduce_min, all, {0});
    const Value wrong = where(ops::ne(most, integer_like(most, 0)), most, least);
    intern(v, {wrong}, v.attrs());
    set_lifted(v, all);
  }

  // ==== control

  // The body for operands of which some have batches; all results have them, or those that need to.
  FunctionRef body_with(const Function& body, const std::vector<bool>& has,
                        std::vector<bool>& gives, bool all_give) {
    Function out;
    Rows rows(body, out, count_);
    for (std::size_t i = 0; i < body.params().size(); ++i) {
      const Function::Param& p = body.params()[i];
      Type t = p.value.type();
      if (has[i]) t.shape.dims = in_front(count_, t.shape.dims);
      const Value now = out.add_param(t, p.name);
      has[i] ? rows.set_lifted(p.value, now) : rows.share(p.value, now);
    }
    for (const DimCheck& c : body.graph().checks()) out.graph().require_equal(c.a, c.b, c.message);
    rows.nodes();
    for (std::size_t i = 0; i < body.results().size(); ++i) {
      const Value r = body.result(i);
      gives[i] = gives[i] || all_give || rows.has_batch(r);
      out.add_result(gives[i] ? rows.lifted(r) : rows.shared(r), body.results()[i].name);
    }
    return std::make_shared<const Function>(std::move(out));
  }

  void if_else(Value v) {
    if (has_batch(v.operand(0))) refuse(v, "the data of each batch decides the branch");
    std::vector<bool> has, gives(v.result_count(), true);
    Values operands = {shared(v.operand(0))};
    for (std::size_t i = 1; i < v.operand_count(); ++i) {
      const Value o = v.operand(i);
      has.push_back(has_batch(o));
      operands.push_back(has.back() ? lifted(o) : shared(o));
    }
    Attrs attrs = v.attrs();
    for (const AttrName name : {AttrName("then"), AttrName("else")})
      attrs.set(name, body_with(*v.attrs().get<FunctionRef>(name), has, gives, true));
    lift(v, intern(v, operands, attrs));
  }

  // A carried value has batches as soon as its first value or the body's result has.
  void while_loop(Value v) {
    std::vector<bool> has;
    for (const Value& o : v.operands()) has.push_back(has_batch(o));
    Attrs attrs = v.attrs();
    for (;;) {
      std::vector<bool> gives(has.begin(),
                              has.begin() + static_cast<std::ptrdiff_t>(v.result_count()));
      attrs.set("body", body_with(*v.attrs().get<FunctionRef>("body"), has, gives, false));
      if (std::equal(gives.begin(), gives.end(), has.begin())) break;
      std::copy(gives.begin(), gives.end(), has.begin());
    }
    std::vector<bool> decides(1, false);
    attrs.set("condition",
              body_with(*v.attrs().get<FunctionRef>("condition"), has, decides, false));
    if (decides[0]) refuse(v, "the data of each batch decides how often it is repeated");
    Values operands;
    for (std::size_t i = 0; i < v.operand_count(); ++i)
      operands.push_back(has[i] ? lifted(v.operand(i)) : shared(v.operand(i)));
    const Value made = intern(v, operands, attrs);
    for (std::size_t i = 0; i < v.result_count(); ++i)
      has[i] ? set_lifted(v.result(i), made.result(i)) : share(v.result(i), made.result(i));
  }

 public:
  void nodes() {
    for (NodeId n : live_nodes(from_)) {
      if (is_param(n)) continue;
      const OriginScope scope(to_.graph(), to_.graph().origin_list(from_.graph().origins(n)));
      node(n);
    }
  }

 private:
  bool is_param(NodeId n) const {
    return shared_.contains(Value(&from_.graph(), n)) || has_batch(Value(&from_.graph(), n));
  }

  const Function& from_;
  Function& to_;
  Dim count_;
  std::unordered_map<Value, Value, ValueHash> shared_, lifted_, rows_;
};

// The axis along which a result keeps its rows; none: a new one in front.
std::optional<int> row_axis(const Shape& result, const Dim& rows) {
  if (result.rank() == 0) return std::nullopt;
  if (result[0] == rows) return 0;
  for (int i = 0; rows == Dim(1) && i < result.rank(); ++i)
    if (result[i] == rows) return i;
  return std::nullopt;
}

Rebatched rebatched(const Function& f, const std::vector<bool>& has_batch, std::int64_t count) {
  Rebatched out;
  Rows rows(f, out.function, Dim(count));
  Dim of_batch = 1;
  for (std::size_t i = 0; i < f.params().size(); ++i) {
    const Function::Param& p = f.params()[i];
    Type t = p.value.type();
    if (has_batch[i]) {
      of_batch = t.shape.dims[0];
      t.shape.dims[0] = of_batch * Dim(count);
    }
    const Value now = out.function.add_param(t, p);
    has_batch[i] ? rows.set_rows(p.value, now) : rows.share(p.value, now);
  }
  for (const DimCheck& c : f.graph().checks())
    out.function.graph().require_equal(c.a, c.b, c.message);
  rows.nodes();
  for (const Function::Result& r : f.results()) {
    if (!rows.has_batch(r.value)) {
      out.function.add_result(rows.shared(r.value), r);
      continue;
    }
    const Shape& shape = r.value.shape();
    const std::optional<int> axis = row_axis(shape, of_batch);
    if (!axis) {
      const Value stacked = rows.lifted(r.value);
      out.notes.push_back(cat("result '", r.name, "' ", r.value.type(),
                              " has no axis for the batch; it becomes ", stacked.type()));
      out.function.add_result(stacked, r);
    } else if (*axis == 0) {
      out.function.add_result(rows.rows(r.value), r);
    } else {
      Dims dims = shape.dims;
      dims[static_cast<std::size_t>(*axis)] = Dim(count);
      out.function.add_result(reshape_to(with_first_axis_at(rows.lifted(r.value), *axis), dims), r);
    }
  }
  return out;
}

}  // namespace

Rebatched rebatch(const Function& f, const std::vector<bool>& has_batch, std::int64_t count) {
  Function now = f;
  for (;;) try {
      return rebatched(now, has_batch, count);
    } catch (const NeedsExpansion& e) {
      now = for_bodies_too(now, [&](const Function& body) { return with_expanded(body, *e.op); });
    }
}

}  // namespace hone
