// Domain ai.onnx.ml: trees, encoders, features. Trees are walked in parallel, one level per step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/node/context.h"
#include "import/onnx/operators/forest.h"
#include "import/onnx/operators/list.h"
#include "ops/require.h"
#include "type/text.h"

namespace hone::onnx {

namespace {

Values binarizer(NodeContext& c) {
  Value x = c.in(0), threshold = number_like(x, c.real("threshold", 0));
  return {cast_to(ops::lt(threshold, x), x.dtype())};
}

// Selects columns of the last axis by index.
Values array_feature_extractor(NodeContext& c) {
  Value x = c.in(0);
  if (x.rank() == 0) c.bad_input(0, "X", "at least one axis");
  if (x.rank() == 1) x = unsqueeze(x, {0});
  require_within(c.in(1), 0, x.shape()[-1] - Dim(1), "index");
  return {ops::gather(Values{x, flatten(c.in(1))}, {{"axis", std::int64_t{x.rank() - 1}}})};
}

// ==== trees

std::vector<std::int64_t> list_of(NodeContext& c, std::string_view name, std::size_t size) {
  auto list = c.integers(name);
  if (!list) c.fail(cat("attribute '", name, "' is missing; it is required"));
  if (list->size() != size)
    c.fail(cat("attribute '", name, "' has ", amount(list->size(), "entry", "entries"),
               ", expected ", size));
  return *list;
}

void expect_in(NodeContext& c, const std::vector<std::int64_t>& list, std::int64_t count,
               std::string_view what) {
  for (std::int64_t n : list)
    if (n < 0 || n >= count)
      c.fail(cat("a ", what, " is ", n, ", expected at least 0 and less than ", count));
}

// The children of nodes, as indices among nodes and leaves.
std::vector<std::int64_t> children(NodeContext& c, const Forest& f, std::string_view ids,
                                   std::string_view leafs) {
  const auto n = static_cast<std::size_t>(f.nodes);
  std::vector<std::int64_t> out = list_of(c, ids, n);
  const std::vector<std::int64_t> is_leaf = list_of(c, leafs, n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t among = is_leaf[i] ? f.leaves : f.nodes;
    if (out[i] < 0 || out[i] >= among)
      c.fail(cat("attribute '", ids, "' contains ", out[i], " for node ", i,
                 ", expected at least 0 and less than ", among));
    if (is_leaf[i]) out[i] += f.nodes;
  }
  return out;
}

// Reads the sets of the nodes of mode member, which are concatenated and each terminated by a NaN.
void read_sets(NodeContext& c, Forest& f) {
  f.sets.resize(static_cast<std::size_t>(f.nodes));
  const std::optional<Array> values = c.tensor("membership_values");
  std::int64_t at = 0;
  for (std::size_t i = 0; i < f.sets.size(); ++i) {
    if (f.modes[i] != static_cast<std::int64_t>(Mode::member)) continue;
    for (;; ++at) {
      if (!values || at >= values->count())
        c.fail(
            "attribute 'membership_values' has too few sets, expected one for each node of mode "
            "MEMBER");
      if (std::isnan(values->real(at))) break;
      f.sets[i].push_back(values->real(at));
    }
    ++at;
  }
}

Forest read_forest(NodeContext& c) {
  Forest f;
  const std::optional<Array> splits = c.tensor("nodes_splits"), weights = c.tensor("leaf_weights"),
                             modes = c.tensor("nodes_modes");
  if (!splits || !weights || !modes)
    c.fail(
        "attribute 'nodes_splits', 'nodes_modes' or 'leaf_weights' is missing; all are required");
  f.splits = *splits;
  f.weights = *weights;
  f.nodes = splits->count();
  f.leaves = weights->count();
  if (f.nodes == 0 || f.leaves == 0)
    c.fail(cat("the trees have ", amount(f.nodes, "node", "nodes"), " and ", f.leaves,
               " leaves, expected at least one of each"));
  const auto n = static_cast<std::size_t>(f.nodes);
  if (modes->count() != f.nodes)
    c.fail(cat("attribute 'nodes_modes' has ", amount(modes->count(), "entry", "entries"),
               ", expected ", f.nodes));
  for (std::int64_t i = 0; i < f.nodes; ++i) f.modes.push_back(modes->integer(i));
  expect_in(c, f.modes, mode_count, "mode");
  f.features = list_of(c, "nodes_featureids", n);
  f.yes = children(c, f, "nodes_truenodeids", "nodes_trueleafs");
  f.no = children(c, f, "nodes_falsenodeids", "nodes_falseleafs");
  f.tracks_missing = c.has_attribute("nodes_missing_value_tracks_true")
                         ? list_of(c, "nodes_missing_value_tracks_true", n)
                         : std::vector<std::int64_t>(n, 0);
  f.targets = list_of(c, "leaf_targetids", static_cast<std::size_t>(f.leaves));
  auto roots = c.integers("tree_roots");
  if (!roots || roots->empty())
    c.fail("attribute 'tree_roots' is missing or empty, expected at least one entry");
  f.roots = *roots;
  expect_in(c, f.roots, f.nodes, "root");
  read_sets(c, f);
  return f;
}

// Steps from a root to the deepest leaf; fails for cycles.
int depth_of(NodeContext& c, const Forest& f) {
  constexpr int most_depth = 64;
  std::vector<std::int64_t> level = f.roots;
  for (int depth = 0;; ++depth) {
    std::vector<std::int64_t> next;
    for (std::int64_t n : level)
      if (n < f.nodes) {
        next.push_back(f.yes[static_cast<std::size_t>(n)]);
        next.push_back(f.no[static_cast<std::size_t>(n)]);
      }
    if (next.empty()) return depth;
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    if (depth == most_depth) {
      if (depth > f.nodes) c.fail("the nodes of a tree form a cycle");
      c.unsupported(
          cat("a tree is more than ", most_depth, " levels deep, which is not supported"));
    }
    level = std::move(next);
  }
}

// One entry per node and leaf.
Value integers_by_node(hone::Graph& g, const Forest& f, const std::vector<std::int64_t>& of_nodes,
                       bool leaves_are_themselves = false) {
  std::vector<std::int64_t> all = of_nodes;
  for (std::int64_t i = f.nodes; i < f.count(); ++i) all.push_back(leaves_are_themselves ? i : 0);
  return integer_list(g, all);
}

Value reals_by_node(hone::Graph& g, const Forest& f, const Array& of_nodes) {
  Array all = Array::zeros(of_nodes.dtype(), {f.count()});
  for (std::int64_t i = 0; i < f.nodes; ++i) all.set_real(i, of_nodes.real(i));
  return constant(g, all);
}

Value taken(Value table, Value at) {
  return ops::gather(Values{table, at}, {{"axis", std::int64_t{0}}});
}

// Whether x is in the set of its current node; false for nodes without a set.
Value is_member(Value x, Value at, const Forest& f) {
  std::size_t most = 0;
  for (const auto& set : f.sets) most = std::max(most, set.size());
  Array table = Array::zeros(x.dtype(), {f.count(), static_cast<std::int64_t>(most)});
  for (std::int64_t i = 0; i < table.count(); ++i)
    table.set_real(i, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t n = 0; n < f.sets.size(); ++n)
    for (std::size_t k = 0; k < f.sets[n].size(); ++k)
      table.set_real(static_cast<std::int64_t>(n * most + k), f.sets[n][k]);
  Value sets = taken(constant(x.graph(), table), at);
  Value equal = ops::eq(broadcast_to(unsqueeze(x, {-1}), sets.shape()), sets);
  return reduce_axes(ops::reduce_or, equal, {-1});
}

Value compared(Mode mode, Value x, Value split, Value at, const Forest& f) {
  switch (mode) {
    case Mode::at_most:
      return ops::le(x, split);
    case Mode::below:
      return ops::lt(x, split);
    case Mode::at_least:
      return ops::le(split, x);
    case Mode::above:
      return ops::lt(split, x);
    case Mode::equal:
      return ops::eq(x, split);
    case Mode::unequal:
      return ops::ne(x, split);
    case Mode::member:
      break;
  }
  return is_member(x, at, f);
}

// Whether the walk continues with the node's first child.
Value goes_on_true(Value x, Value at, const Forest& f) {
  hone::Graph& g = x.graph();
  Value split = taken(reals_by_node(g, f, f.splits), at);
  Value mode = taken(integers_by_node(g, f, f.modes), at), out;
  for (int m = 0; m < mode_count; ++m) {
    if (std::find(f.modes.begin(), f.modes.end(), m) == f.modes.end()) continue;
    Value here = compared(static_cast<Mode>(m), x, split, at, f);
    out = out ? ops::select(Values{ops::eq(mode, integer_like(mode, m)), here, out}) : here;
  }
  const bool tracks = std::any_of(f.tracks_missing.begin(), f.tracks_missing.end(),
                                  [](std::int64_t n) { return n != 0; });
  if (!tracks) return out;
  Value does = taken(integers_by_node(g, f, f.tracks_missing), at);
  return ops::bit_or(out, ops::bit_and(ops::ne(x, x), ops::ne(does, integer_like(does, 0))));
}

}  // namespace

Value reached_leaves(NodeContext& c, Value x, const Forest& f) {
  hone::Graph& g = c.graph();
  const auto trees = static_cast<std::int64_t>(f.roots.size());
  Value at = broadcast_to(integer_list(g, f.roots), {x.shape()[0], trees});
  const Value features = integers_by_node(g, f, f.features);
  const Value yes = integers_by_node(g, f, f.yes, true), no = integers_by_node(g, f, f.no, true);
  for (int depth = depth_of(c, f); depth > 0; --depth) {
    Value feature = take_along(x, taken(features, at), 1);
    at = ops::select(Values{goes_on_true(feature, at, f), taken(yes, at), taken(no, at)});
  }
  return at - integer_like(at, f.nodes);
}

namespace {

// Joins the trees per target: 0 average, 1 sum, 2 minimum, 3 maximum; 0 for targets without a leaf.
Value aggregated(NodeContext& c, Value leaf, const Forest& f, std::int64_t targets) {
  hone::Graph& g = c.graph();
  Value weight = unsqueeze(taken(constant(g, f.weights), leaf), {2});
  Value target = unsqueeze(taken(integer_list(g, f.targets), leaf), {2});
  const Shape all = {leaf.shape()[0], leaf.shape()[1], targets};
  Value belongs = ops::eq(broadcast_to(target, all), iota_value(g, DType::i64, all, 2));
  weight = broadcast_to(weight, all);
  const std::int64_t how = c.integer("aggregate_function", 1);
  if (how == 0 || how == 1) {
    Value sum = sum_over(where_or(belongs, weight, 0), {1});
    return how == 1 ? sum : sum / static_cast<double>(f.roots.size());
  }
  if (how != 2 && how != 3) c.bad_attribute("aggregate_function", how, "0 to 3");
  const double start = how == 2 ? HUGE_VAL : -HUGE_VAL;
  Value best = reduce_axes(how == 2 ? ops::reduce_min : ops::reduce_max,
                           where_or(belongs, weight, start), {1});
  return where_or(reduce_axes(ops::reduce_or, belongs, {1}), best, 0);
}

Value transformed(NodeContext& c, Value y) {
  const std::int64_t how = c.integer("post_transform", 0);
  if (how == 0) return y;
  if (how == 1) return ops::softmax(y, {{"axis", std::int64_t{1}}});
  if (how == 2) return ops::sigmoid(y);
  if (how == 3) {  // zeros remain and do not count
    Value is_zero = ops::eq(y, constant_like(y, 0));
    Value rest = ops::softmax(ops::select(Values{is_zero, constant_like(y, -HUGE_VAL), y}),
                              {{"axis", std::int64_t{1}}});
    return ops::select(Values{is_zero, constant_like(y, 0), rest});
  }
  if (how == 4)
    c.unsupported(
        "attribute 'post_transform' is 4 (PROBIT), which is not supported, expected 0 to 3");
  c.bad_attribute("post_transform", how, "0 to 4");
}

Values tree_ensemble(NodeContext& c) {
  c.ignore("nodes_hitrates");
  Value x = c.in(0);
  if (x.rank() != 2) c.bad_input(0, "X", "two axes, [samples, features]");
  const Forest f = read_forest(c);
  if (f.splits.dtype() != x.dtype() || f.weights.dtype() != x.dtype())
    c.fail(cat("input 0 ('X') is ", x.type(), ", nodes_splits ", f.splits.type(),
               " and leaf_weights ", f.weights.type(), ", expected one dtype"));
  if (std::optional<std::int64_t> n = x.shape()[1].as_number())
    expect_in(c, f.features, *n, "feature");
  const std::int64_t targets = c.integer("n_targets", 1);
  if (targets < 1) c.bad_attribute("n_targets", targets, "a positive integer");
  expect_in(c, f.targets, targets, "target");
  return {transformed(c, aggregated(c, reached_leaves(c, x, f), f, targets))};
}

// ==== encoders

std::optional<Array> listed(NodeContext& c, std::string_view prefix) {
  if (auto list = c.integers(cat(prefix, "_int64s"))) return Array::from_ints(*list);
  if (auto list = c.reals(cat(prefix, "_floats")))
    return Array::of<float>(DType::f32, {std::ssize(*list)}, *list);
  if (auto list = c.texts(cat(prefix, "_strings"))) return text_array({std::ssize(*list)}, *list);
  return c.tensor(cat(prefix, "_tensor"));
}

Array default_of(NodeContext& c, DType t) {
  if (std::optional<Array> given = c.tensor("default_tensor")) {
    if (given->count() != 1 || given->dtype() != t)
      c.bad_attribute("default_tensor", given->type(), cat("one element of ", t));
    return Array(t, {}, given->storage());
  }
  const std::int64_t integer = c.integer("default_int64", -1);
  const std::string_view text = c.text("default_string", "_Unused");
  if (t == DType::text) return text_array({}, std::span(&text, 1));
  const double real = c.real("default_float", -0.0);
  return is_float(t) ? Array::scalar(real, t) : Array::scalar_int(integer, t);
}

// The value of the first key equal to x; for floats NaN equals NaN.
Values label_encoder(NodeContext& c) {
  for (std::string_view name : {"default_string", "default_int64", "default_float"}) c.ignore(name);
  Value x = c.in(0);
  const std::optional<Array> keys = listed(c, "keys"), values = listed(c, "values");
  if (!keys || !values) c.fail("a 'keys_*' or 'values_*' attribute is missing; both are required");
  if (keys->rank() != 1 || keys->dims() != values->dims() || keys->count() == 0)
    c.fail(cat("the keys are ", keys->type(), " and the values ", values->type(),
               ", expected lists of one length, at least 1"));
  if (keys->dtype() != x.dtype())
    c.fail(cat("the keys are ", keys->type(), " and input 0 ('X') is ", x.type(),
               ", expected one dtype"));
  Value all = constant_value(c.graph(), *keys), given = unsqueeze(x, {-1});
  Shape pairs = x.shape();
  pairs.dims.push_back(keys->count());
  given = broadcast_to(given, pairs);
  all = broadcast_to(all, pairs);
  Value is_key = ops::eq(given, all);
  if (is_float(x.dtype()))
    is_key = ops::bit_or(is_key, ops::bit_and(ops::ne(given, given), ops::ne(all, all)));
  Value first = ops::argmax(cast_to(is_key, DType::i32),
                            {{"axis", std::int64_t{x.rank()}}, {"dtype", DType::i64}});
  Value found = taken(constant_value(c.graph(), *values), first);
  Value fallback =
      broadcast_to(constant_value(c.graph(), default_of(c, values->dtype())), x.shape());
  return {ops::select(Values{reduce_axes(ops::reduce_or, is_key, {-1}), found, fallback})};
}

constexpr ImportEntry ml_table[] = {
    {.op = "Binarizer", .import = binarizer, .domain = ml_domain},
    {.op = "ArrayFeatureExtractor", .import = array_feature_extractor, .domain = ml_domain},
    {.op = "TreeEnsemble", .import = tree_ensemble, .since = 5, .domain = ml_domain},
    {.op = "LabelEncoder", .import = label_encoder, .since = 2, .domain = ml_domain},
};

}  // namespace

std::span<const ImportEntry> ml_imports() { return ml_table; }

}  // namespace hone::onnx
