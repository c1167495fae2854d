#include <algorithm>
#include <deque>

#include "ops/common.h"
#include "pass/simplify.h"

namespace hone {

namespace {

bool keeps_shape(const Match& m) { return m["x"].shape() == m.root.shape(); }

const Attrs& root_attrs(const Match& m) { return m.root.attrs(); }
const Attrs& inner_attrs(const Match& m) { return m.root.operand(0).attrs(); }

Value x_reshaped(const Match& m) { return reshape_to(m["x"], m.root.shape().dims); }

bool all_equal(const Dims& dims, std::int64_t n) {
  return std::all_of(dims.begin(), dims.end(), [&](const Dim& d) { return d == Dim(n); });
}

// The axes of size other than 1 keep their order.
bool moves_only_ones(const Match& m) {
  int last = -1;
  for (int axis : axes_of(root_attrs(m), "perm")) {
    if (m["x"].shape()[axis] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// Aligning trailing axes has the same effect.
bool adds_leading_ones(const Match& m) {
  const Dims &from = m["x"].shape().dims, &to = m.root.operand(0).shape().dims;
  if (to.size() <= from.size()) return false;
  auto extra = static_cast<std::ptrdiff_t>(to.size() - from.size());
  return std::equal(from.begin(), from.end(), to.begin() + extra) &&
         all_equal(Dims(to.begin(), to.begin() + extra), 1);
}

bool has_leading_ones(const Match& m) { return m["x"].rank() > 0 && m["x"].shape()[0] == Dim(1); }

// Equal biases get the same form, whatever shape they were stored in.
Value without_leading_ones(const Match& m) {
  Dims dims = m["x"].shape().dims;
  while (!dims.empty() && dims.front() == Dim(1)) dims.erase(dims.begin());
  return broadcast_to(reshape_to(m["x"], dims), m.root.shape());
}

Value transposed_once(const Match& m) {
  Axes outer = axes_of(root_attrs(m), "perm"), inner = axes_of(inner_attrs(m), "perm");
  for (int& a : outer) a = inner[static_cast<std::size_t>(a)];
  return transpose_by(m["x"], outer);
}

// Merges a slice of a slice.
Value sliced_once(const Match& m) {
  Dims starts = inner_attrs(m).dims("starts"), steps = inner_attrs(m).dims("steps");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    starts[i] = starts[i] + root_attrs(m).dims("starts")[i] * steps[i];
    steps[i] = steps[i] * root_attrs(m).dims("steps")[i];
  }
  return ops::slice(m["x"],
                    {{"starts", starts}, {"sizes", root_attrs(m).dims("sizes")}, {"steps", steps}});
}

bool takes_everything(const Match& m) {
  return keeps_shape(m) && all_equal(root_attrs(m).dims("starts"), 0) &&
         all_equal(root_attrs(m).dims("steps"), 1);
}

bool pads_nothing(const Match& m) {
  return all_equal(root_attrs(m).dims("low"), 0) && all_equal(root_attrs(m).dims("high"), 0);
}

bool reverses_same_axes(const Match& m) {
  return root_attrs(m).dims("axes") == inner_attrs(m).dims("axes");
}

bool reduces_nothing(const Match& m) {
  for (int axis : axes_of(root_attrs(m), "axes"))
    if (m["x"].shape()[axis] != Dim(1)) return false;
  return true;
}

// A gather at one constant index, or at equally spaced increasing ones, is a slice.
struct IndexRun {
  std::int64_t first = 0, count = 0, step = 1;
};

std::optional<IndexRun> index_run(Value x, std::int64_t axis, Value indices) {
  std::optional<std::int64_t> size = x.shape()[static_cast<int>(axis)].as_number();
  if (!size || !indices.is(ops::constant) || indices.rank() > 1) return std::nullopt;
  const Array& a = indices.attrs().get<Array>("value");
  if (a.count() == 0) return std::nullopt;
  auto at = [&](std::int64_t i) { return a.integer(i) < 0 ? a.integer(i) + *size : a.integer(i); };
  IndexRun run{at(0), a.count(), a.count() > 1 ? at(1) - at(0) : 1};
  if (run.step < 1) return std::nullopt;
  for (std::int64_t i = 0; i < run.count; ++i)
    if (at(i) != run.first + i * run.step || at(i) < 0 || at(i) >= *size) return std::nullopt;
  return run;
}

bool gathers_a_run(const Match& m) {
  return index_run(m["x"], root_attrs(m).integer("axis"), m["i"]).has_value();
}

Value run_slice(const Match& m) {
  auto axis = static_cast<int>(root_attrs(m).integer("axis"));
  IndexRun run = *index_run(m["x"], axis, m["i"]);
  return reshape_to(slice_axis(m["x"], axis, run.first, run.count, run.step), m.root.shape().dims);
}

// A constant of equal numbers is one repeated number. Not where contents are tracked as sizes: a
// repeated number becomes a constant there as soon as it is built.
bool is_repeated_number(const Match& m) {
  constexpr std::int64_t most = 4096;
  if (m.root.rank() == 0 || contents_of(m.root)) return false;
  const Array& a = m.root.attrs().get<Array>("value");
  auto size = static_cast<std::size_t>(byte_size(a.dtype()));
  std::span<const std::byte> bytes = a.bytes();
  return a.count() > 0 && a.count() <= most &&
         std::equal(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(size),
                    bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

Value repeated_number(const Match& m) {
  const Array& a = m.root.attrs().get<Array>("value");
  auto size = static_cast<std::size_t>(byte_size(a.dtype()));
  Array one(a.dtype(), {}, Storage::copy(a.bytes().first(size)));
  return broadcast_to(constant(m.root.graph(), one), m.root.shape());
}

// The operand of a concat that contains the slice, and where that operand begins.
std::optional<std::pair<std::size_t, Dim>> sliced_operand(const Match& m) {
  Value all = m.root.operand(0);
  auto axis = static_cast<std::size_t>(all.attrs().integer("axis"));
  const Dims &starts = root_attrs(m).dims("starts"), &sizes = root_attrs(m).dims("sizes"),
             &steps = root_attrs(m).dims("steps");
  Dim first = starts[axis], last = first + (sizes[axis] - Dim(1)) * steps[axis], begin = 0;
  if (prove_less(Dim(0), sizes[axis]) != true) return std::nullopt;
  for (std::size_t i = 0; i < all.operand_count(); ++i) {
    Dim end = begin + all.operand(i).shape().dims[axis];
    if (prove_less(first, begin) == false && prove_less(last, end) == true)
      return std::pair(i, begin);
    begin = end;
  }
  return std::nullopt;
}

bool slices_one_operand(const Match& m) {
  return m.root.operand(0).is(ops::concat) && sliced_operand(m).has_value();
}

Value slice_of_operand(const Match& m) {
  auto [i, begin] = *sliced_operand(m);
  Value all = m.root.operand(0);
  auto axis = static_cast<std::size_t>(all.attrs().integer("axis"));
  Attrs attrs = root_attrs(m);
  Dims starts = attrs.dims("starts");
  starts[axis] = starts[axis] - begin;
  attrs.set("starts", starts);
  return ops::slice(all.operand(i), attrs);
}

// The shape before broadcast, if all broadcast operands agree on it or are single numbers.
std::optional<Shape> common_source(Value root) {
  std::optional<Shape> found;
  for (const Value& v : root.graph().operands(root.node())) {
    if (v.shape() != root.shape()) return std::nullopt;
    const Shape& from = v.operand(0).shape();
    if (from.rank() == 0) continue;
    if (found && *found != from) return std::nullopt;
    found = from;
  }
  return found ? found : Shape{};
}

bool comes_from_smaller(const Match& m) { return common_source(m.root).has_value(); }

// op(broadcast(a), broadcast(b)) is broadcast(op(a, b)).
Value computed_smaller(const Match& m) {
  Shape from = *common_source(m.root);
  Values operands;
  for (Value v : m.root.operands()) operands.push_back(broadcast_to(v.operand(0), from));
  return broadcast_to(m.root.graph().intern(m.root.op(), operands, m.root.attrs()), m.root.shape());
}

// One rule for each elementwise operation and number of operands.
void add_broadcast_rules(std::vector<Rule>& rules) {
  static std::deque<std::string> names;
  const Pattern repeats[] = {ops::broadcast(Pattern::any("a")), ops::broadcast(Pattern::any("b")),
                             ops::broadcast(Pattern::any("c"))};
  for (const Op* op : all_ops()) {
    if (op->kind != OpKind::elementwise) continue;
    names.push_back(cat(op->name, "-of-broadcast"));
    for (std::size_t n = 1; n <= 3; ++n) {
      std::vector<Pattern> operands(repeats, repeats + n);
      Rule rule{names.back(), RuleClass::exact, apply(*op, operands, {}), computed_smaller,
                comes_from_smaller};
      rules.push_back(std::move(rule));
    }
  }
}

std::vector<Rule> make_movement_rules() {
  using enum RuleClass;
  const Pattern x = Pattern::any("x"), i = Pattern::any("i"), v = Pattern::any("v");
  std::vector<Rule> rules = {
      {"reshape-same", exact, ops::reshape(x), x, keeps_shape},
      {"reshape-reshape", exact, ops::reshape(ops::reshape(x)), x_reshaped},
      {"transpose-ones", exact, ops::transpose(x), x_reshaped, moves_only_ones},
      {"transpose-transpose", exact, ops::transpose(ops::transpose(x)), transposed_once},
      {"broadcast-same", exact, ops::broadcast(x), x, keeps_shape},
      {"broadcast-broadcast", exact, ops::broadcast(ops::broadcast(x)),
       [](const Match& m) { return broadcast_to(m["x"], m.root.shape()); }},
      {"broadcast-reshape", exact, ops::broadcast(ops::reshape(x)),
       [](const Match& m) { return broadcast_to(m["x"], m.root.shape()); }, adds_leading_ones},
      {"broadcast-ones", exact, ops::broadcast(x), without_leading_ones, has_leading_ones},
      {"reverse-reverse", exact, ops::reverse(ops::reverse(x)), x, reverses_same_axes},
      {"slice-all", exact, ops::slice(x), x, takes_everything},
      {"slice-slice", exact, ops::slice(ops::slice(x)), sliced_once},
      {"slice-concat", exact, ops::slice(x), slice_of_operand, slices_one_operand},
      {"repeated-number", exact, apply(ops::constant, std::vector<Pattern>{}, {}), repeated_number,
       is_repeated_number},
      {"pad-nothing", exact, ops::pad(x, v), x, pads_nothing},
      {"concat-one", exact, ops::concat(x), x},
      {"gather-run", exact, ops::gather(x, i), run_slice, gathers_a_run},
      {"max-of-one", exact, ops::reduce_max(x), x_reshaped, reduces_nothing},
      {"min-of-one", exact, ops::reduce_min(x), x_reshaped, reduces_nothing},
      {"and-of-one", exact, ops::reduce_and(x), x_reshaped, reduces_nothing},
      {"or-of-one", exact, ops::reduce_or(x), x_reshaped, reduces_nothing},
      {"prod-of-one", exact, ops::reduce_prod(x), x_reshaped, reduces_nothing},
      // The sum of one -0.0 is +0.0.
      {"sum-of-one", rounding, ops::reduce_sum(x), x_reshaped, reduces_nothing},
  };
  add_broadcast_rules(rules);
  return rules;
}

}  // namespace

std::span<const Rule> movement_rules() {
  static const std::vector<Rule> rules = make_movement_rules();
  return rules;
}

}  // namespace hone
