// Domain ai.onnx.ml: models over rows of features, and feature preparation, as written by
// converters from scikit-learn. Scores are f32.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/amount.h"
#include "import/common/build.h"
#include "import/onnx/operators/forest.h"
#include "import/onnx/operators/list.h"
#include "ir/function.h"
#include "ops/require.h"
#include "type/text.h"

namespace hone::onnx {

namespace {

constexpr DType real = DType::f32;

// Rows of features in f32, or in f64 if they are f64.
Value rows_of(NodeContext& c, Value x) {
  if (x.dtype() == DType::text) c.bad_input(0, "X", "numbers");
  if (x.rank() == 1) x = unsqueeze(x, {0});
  if (x.rank() != 2)
    c.fail(cat("input 0 ('X') is ", x.type(), ", expected at most two axes, [samples, features]"));
  return cast_to(x, x.dtype() == DType::f64 ? DType::f64 : real);
}

Value numbers(hone::Graph& g, const std::vector<float>& list, std::vector<std::int64_t> dims) {
  return constant(g, Array::of<float>(DType::f32, std::move(dims), list));
}

std::vector<float> reals_or_none(NodeContext& c, std::string_view name) {
  return c.reals(name).value_or(std::vector<float>());
}

// ==== labels

// Classes by index: integers or strings.
struct Labels {
  Value all;  // [classes]
  std::int64_t count = 0;

  Value at(Value number) const {
    return ops::gather(Values{all, number}, {{"axis", std::int64_t{0}}});
  }
};

Labels labels_of(NodeContext& c, std::string_view texts, std::string_view integers) {
  if (auto list = c.texts(texts); list && !list->empty()) {
    c.ignore(integers);
    return {constant_value(c.graph(), text_array({std::ssize(*list)}, *list)), std::ssize(*list)};
  }
  auto list = c.integers(integers);
  if (!list || list->empty())
    c.fail(cat("attributes '", texts, "' and '", integers,
               "' are both missing or empty, expected one of them"));
  return {integer_list(c.graph(), *list), std::ssize(*list)};
}

// ==== what is done with scores

Value erf_inverse(Value x) {
  Value w = ops::log((1.0 - x) * (x + 1.0));
  Value a = w * 0.5 + 2 / (M_PI * 0.147), b = w / 0.147;
  Value y = ops::sqrt(ops::sqrt(a * a - b) - a);
  return ops::select(Values{ops::lt(x, constant_like(x, 0)), -y, y});
}

// For each row of [n, classes].
Value transformed(NodeContext& c, Value y, std::string_view how) {
  if (how == "NONE") return y;
  if (how == "SOFTMAX") return ops::softmax(y, {{"axis", std::int64_t{1}}});
  if (how == "LOGISTIC") return ops::sigmoid(y);
  if (how == "SOFTMAX_ZERO") {  // zeros remain and do not count
    Value is_zero = ops::eq(y, constant_like(y, 0));
    Value rest = ops::softmax(ops::select(Values{is_zero, constant_like(y, -HUGE_VAL), y}),
                              {{"axis", std::int64_t{1}}});
    return ops::select(Values{is_zero, constant_like(y, 0), rest});
  }
  if (how == "PROBIT") return erf_inverse(y * 2.0 - 1.0) * std::sqrt(2.0);
  c.bad_attribute("post_transform", how, "NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}

Value first_largest(Value scores) {
  return ops::argmax(scores, {{"axis", std::int64_t{1}}, {"dtype", DType::i64}});
}

// For one score [n, 1], of the second of two classes: the chosen classes and both scores. If the
// score is a probability, both add up to 1.
Values of_two(NodeContext& c, const Labels& labels, Value score, bool is_probability,
              std::string_view how) {
  Value threshold = constant_like(score, is_probability ? 0.5 : 0);
  Value second = cast_to(ops::lt(threshold, score), DType::i64);
  Value other = is_probability ? 1.0 - score : -score;
  Value both = concat_values(Values{other, score}, 1);
  if (!is_probability && how == "LOGISTIC") both = ops::sigmoid(both);
  if (how == "PROBIT")
    c.unsupported(
        "attribute 'post_transform' is 'PROBIT', which is not supported for a single score");
  return {labels.at(squeeze(second, {1})), both};
}

// ==== linear models

// The linear function [n, targets] given by `coefficients` and `intercepts`.
Value linear(NodeContext& c, std::int64_t& targets) {
  const std::vector<float> weights = reals_or_none(c, "coefficients"),
                           shifts = reals_or_none(c, "intercepts");
  Value x = rows_of(c, c.in(0));
  const std::optional<std::int64_t> features = x.shape()[1].as_number();
  if (!features)
    c.unsupported(cat("the number of features is the open size ", x.shape()[1],
                      ", expected a number; give it with --dim"));
  targets = *features > 0 ? std::ssize(weights) / *features : 0;
  if (targets < 1 || targets * *features != std::ssize(weights))
    c.fail(cat("attribute 'coefficients' has ", amount(weights.size(), "entry", "entries"),
               ", expected a positive multiple of the ", *features, " features"));
  Value w = numbers(c.graph(), weights, {targets, *features});
  Value y = dot_general(x, cast_to(w, x.dtype()), {}, {{1, 1}});
  if (shifts.empty()) return cast_to(y, real);
  if (std::ssize(shifts) != targets)
    c.fail(cat("attribute 'intercepts' has ", amount(shifts.size(), "entry", "entries"),
               ", expected ", targets, ", one for each target"));
  Value b = cast_to(numbers(c.graph(), shifts, {targets}), x.dtype());
  return cast_to(plus(y, b), real);
}

Values linear_regressor(NodeContext& c) {
  std::int64_t targets = 0;
  Value y = linear(c, targets);
  if (c.integer("targets", targets) != targets)
    c.bad_attribute("targets", c.integer("targets", 1),
                    cat(targets, ", the number of rows of 'coefficients'"));
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

Values linear_classifier(NodeContext& c) {
  c.ignore("multi_class");
  const Labels labels = labels_of(c, "classlabels_strings", "classlabels_ints");
  const std::string_view how = c.text("post_transform", "NONE");
  std::int64_t targets = 0;
  Value y = linear(c, targets);
  if (targets == 1 && labels.count == 2) return of_two(c, labels, y, false, how);
  if (targets != labels.count)
    c.fail(cat("the coefficients give ", targets, " scores, expected ", labels.count,
               ", one for each class"));
  return {labels.at(first_largest(y)), transformed(c, y, how)};
}

// ==== trees

std::vector<double> tensor_or_reals(NodeContext& c, const std::string& name) {
  std::vector<double> out;
  if (std::optional<Array> given = c.tensor(name + "_as_tensor")) {
    for (std::int64_t i = 0; i < given->count(); ++i) out.push_back(given->real(i));
  } else {
    for (float v : reals_or_none(c, name)) out.push_back(double{v});
  }
  return out;
}

std::vector<std::int64_t> integers_of(NodeContext& c, std::string_view name, std::size_t count) {
  auto list = c.integers(name);
  if (!list || list->size() != count)
    c.fail(cat("attribute '", name, "' has ", amount(list ? list->size() : 0, "entry", "entries"),
               ", expected ", count));
  return *list;
}

// Trees, and the contributions of their leaves to each target.
struct Ensemble {
  Forest forest;
  std::vector<double> weights;         // [leaves, targets]
  std::set<std::int64_t> targets_met;  // targets with at least one leaf
  bool all_positive = true;
};

using Place = std::pair<std::int64_t, std::int64_t>;  // tree and node

std::int64_t mode_of(NodeContext& c, std::string_view name) {
  constexpr std::string_view modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto found = std::ranges::find(modes, name);
  if (found == std::end(modes))
    c.fail(cat("attribute 'nodes_modes' contains '", name,
               "', expected LEAF or BRANCH_ with LEQ, LT, GTE, GT, EQ or NEQ"));
  return found - std::begin(modes);
}

// Nodes of all trees as branches, then as leaves, in file order. `prefix`: class or target.
Ensemble read_ensemble(NodeContext& c, const std::string& prefix, std::int64_t targets,
                       DType dtype) {
  c.ignore("nodes_hitrates");
  c.ignore("nodes_hitrates_as_tensor");
  const auto modes = c.texts("nodes_modes");
  if (!modes || modes->empty())
    c.fail("attribute 'nodes_modes' is missing or empty, expected at least one entry");
  const std::size_t n = modes->size();
  const auto trees = integers_of(c, "nodes_treeids", n), ids = integers_of(c, "nodes_nodeids", n),
             features = integers_of(c, "nodes_featureids", n),
             yes = integers_of(c, "nodes_truenodeids", n),
             no = integers_of(c, "nodes_falsenodeids", n);
  const bool tracks = c.has_attribute("nodes_missing_value_tracks_true");
  std::vector<std::int64_t> missing(n, 0);
  if (tracks) missing = integers_of(c, "nodes_missing_value_tracks_true", n);
  const std::vector<double> splits = tensor_or_reals(c, "nodes_values");
  if (splits.size() != n)
    c.fail(cat("attribute 'nodes_values' has ", amount(splits.size(), "entry", "entries"),
               ", expected ", n));
  std::map<Place, std::size_t> at;  // index among all nodes
  for (std::size_t i = 0; i < n; ++i)
    if (!at.emplace(Place{trees[i], ids[i]}, i).second)
      c.fail(cat("node ", ids[i], " of tree ", trees[i], " appears twice"));
  Ensemble e;
  Forest& f = e.forest;
  std::vector<std::int64_t> number(n);  // index among branches or among leaves
  for (std::size_t i = 0; i < n; ++i) number[i] = (*modes)[i] == "LEAF" ? f.leaves++ : f.nodes++;
  const auto goes_to = [&](std::size_t i, std::int64_t id) {
    const auto found = at.find({trees[i], id});
    if (found == at.end())
      c.fail(cat("tree ", trees[i], " leads to node ", id, ", which does not exist"));
    const std::size_t to = found->second;
    return number[to] + ((*modes)[to] == "LEAF" ? f.nodes : 0);
  };
  f.splits = Array::zeros(dtype, {f.nodes});
  std::set<std::int64_t> begun;
  for (std::size_t i = 0; i < n; ++i) {
    // A tree begins with its first node.
    const bool is_leaf = (*modes)[i] == "LEAF";
    if (begun.insert(trees[i]).second) f.roots.push_back(number[i] + (is_leaf ? f.nodes : 0));
    if (is_leaf) continue;
    f.splits.set_real(number[i], splits[i]);
    f.features.push_back(features[i]);
    f.modes.push_back(mode_of(c, (*modes)[i]));
    f.yes.push_back(goes_to(i, yes[i]));
    f.no.push_back(goes_to(i, no[i]));
    f.tracks_missing.push_back(missing[i]);
  }
  f.sets.resize(static_cast<std::size_t>(f.nodes));
  const std::vector<double> weights = tensor_or_reals(c, prefix + "_weights");
  const std::size_t m = weights.size();
  const auto of_tree = integers_of(c, prefix + "_treeids", m),
             of_node = integers_of(c, prefix + "_nodeids", m),
             of_target = integers_of(c, prefix + "_ids", m);
  e.weights.assign(static_cast<std::size_t>(f.leaves * targets), 0);
  for (std::size_t i = 0; i < m; ++i) {
    const auto found = at.find({of_tree[i], of_node[i]});
    if (found == at.end() || (*modes)[found->second] != "LEAF")
      c.fail(
          cat("node ", of_node[i], " of tree ", of_tree[i], " has a weight, but it is not a leaf"));
    if (of_target[i] < 0 || of_target[i] >= targets)
      c.fail(cat("attribute '", prefix, "_ids' contains ", of_target[i],
                 ", expected at least 0 and less than ", targets));
    const std::int64_t place = number[found->second] * targets + of_target[i];
    e.weights[static_cast<std::size_t>(place)] += weights[i];
    e.targets_met.insert(of_target[i]);
    e.all_positive = e.all_positive && weights[i] >= 0;
  }
  return e;
}

// [n, trees, targets]: one leaf per tree for each row.
Value leaf_weights(NodeContext& c, Value x, const Ensemble& e, std::int64_t targets) {
  Array table = Array::zeros(x.dtype(), {e.forest.leaves, targets});
  for (std::int64_t i = 0; i < table.count(); ++i)
    table.set_real(i, e.weights[static_cast<std::size_t>(i)]);
  Value leaf = reached_leaves(c, x, e.forest);
  return ops::gather(Values{constant(c.graph(), table), leaf}, {{"axis", std::int64_t{0}}});
}

void check_features(NodeContext& c, Value x, const Forest& f) {
  const std::optional<std::int64_t> n = x.shape()[1].as_number();
  for (std::int64_t feature : f.features)
    if (feature < 0 || (n && feature >= *n))
      c.fail(cat("attribute 'nodes_featureids' contains ", feature, ", expected a column of ",
                 x.type()));
}

Value with_base(NodeContext& c, Value y, const std::vector<double>& base) {
  if (base.empty()) return y;
  Array a = Array::zeros(y.dtype(), {std::ssize(base)});
  for (std::size_t i = 0; i < base.size(); ++i) a.set_real(static_cast<std::int64_t>(i), base[i]);
  if (std::ssize(base) != 1 && prove_equal(y.shape()[1], std::ssize(base)) != true)
    c.fail(cat("attribute 'base_values' has ", amount(base.size(), "entry", "entries"),
               ", expected 1 or ", y.shape()[1]));
  return plus(y, constant(c.graph(), a));
}

Values tree_regressor(NodeContext& c) {
  Value x = rows_of(c, c.in(0));
  const std::int64_t targets = c.integer("n_targets", 1);
  if (targets < 1) c.bad_attribute("n_targets", targets, "a positive integer");
  const Ensemble e = read_ensemble(c, "target", targets, x.dtype());
  check_features(c, x, e.forest);
  const std::string_view how = c.text("aggregate_function", "SUM");
  Value all = leaf_weights(c, x, e, targets), y;
  if (how == "SUM")
    y = sum_over(all, {1});
  else if (how == "AVERAGE")
    y = sum_over(all, {1}) / static_cast<double>(e.forest.roots.size());
  else if (how == "MIN" || how == "MAX")
    y = reduce_axes(how == "MIN" ? ops::reduce_min : ops::reduce_max, all, {1});
  else
    c.bad_attribute("aggregate_function", how, "SUM, AVERAGE, MIN or MAX");
  y = with_base(c, y, tensor_or_reals(c, "base_values"));
  return {cast_to(transformed(c, y, c.text("post_transform", "NONE")), real)};
}

Values tree_classifier(NodeContext& c) {
  Value x = rows_of(c, c.in(0));
  const Labels labels = labels_of(c, "classlabels_strings", "classlabels_int64s");
  const std::string_view how = c.text("post_transform", "NONE");
  const Ensemble e = read_ensemble(c, "class", labels.count, x.dtype());
  check_features(c, x, e.forest);
  const std::vector<double> base = tensor_or_reals(c, "base_values");
  Value y = sum_over(leaf_weights(c, x, e, labels.count), {1});
  // If all leaves contribute to one class only, whatever its index, it counts as the second.
  const bool is_one = labels.count <= 2 && e.targets_met.size() == 1;
  if (is_one) {
    y = slice_axis(y, 1, *e.targets_met.begin(), 1);
    std::vector<double> own = base;
    if (base.size() == 2) own = {base[1]};
    y = cast_to(with_base(c, y, own), real);
    if (labels.count == 2) return of_two(c, labels, y, e.all_positive, how);
  }
  y = cast_to(with_base(c, y, is_one ? std::vector<double>() : base), real);
  return {labels.at(first_largest(y)), transformed(c, y, how)};
}

// ==== support vectors

// Kernel of rows x [n, f] with vectors [m, f]: [n, m].
Value kernel_of(NodeContext& c, Value x, Value vectors) {
  const std::vector<float> given = reals_or_none(c, "kernel_params");
  auto number = [&](std::size_t i) { return i < given.size() ? double{given[i]} : 0.0; };
  const double gamma = number(0), shift = number(1), degree = number(2);
  const std::string_view kind = c.text("kernel_type", "LINEAR");
  if (kind == "RBF") {
    Value difference = minus(unsqueeze(x, {1}), unsqueeze(vectors, {0}));
    return ops::exp(sum_over(difference * difference, {2}) * -gamma);
  }
  Value products = dot_general(x, vectors, {}, {{1, 1}});
  if (kind == "LINEAR") return products;
  Value scaled = products * gamma + shift;
  if (kind == "POLY") return ops::pow(scaled, constant_like(scaled, degree));
  if (kind == "SIGMOID") return ops::tanh(scaled);
  c.bad_attribute("kernel_type", kind, "LINEAR, POLY, RBF or SIGMOID");
}

// support_vectors [count, features].
Value support_vectors(NodeContext& c, Value x, std::int64_t count) {
  const std::vector<float> all = reals_or_none(c, "support_vectors");
  if (count < 1 || std::ssize(all) % count != 0 ||
      prove_equal(x.shape()[1], std::ssize(all) / count) == false)
    c.fail(cat("attribute 'support_vectors' has ", amount(all.size(), "entry", "entries"),
               ", expected ", count, " vectors of ", x.shape()[1], " features"));
  return numbers(c.graph(), all, {count, std::ssize(all) / count});
}

Values svm_regressor(NodeContext& c) {
  Value x = cast_to(rows_of(c, c.in(0)), real);
  const std::int64_t count = c.integer("n_supports", 0);
  const std::vector<float> weights = reals_or_none(c, "coefficients"),
                           rho = reals_or_none(c, "rho");
  Value y;
  if (count > 0) {
    if (std::ssize(weights) != count)
      c.fail(cat("attribute 'coefficients' has ", amount(weights.size(), "entry", "entries"),
                 ", expected ", count));
    Value k = kernel_of(c, x, support_vectors(c, x, count));
    y = dot_general(k, numbers(c.graph(), weights, {1, count}), {}, {{1, 1}});
  } else {
    c.ignore("support_vectors");
    y = kernel_of(c, x, numbers(c.graph(), weights, {1, std::ssize(weights)}));
  }
  if (!rho.empty()) y = y + double{rho[0]};
  if (c.flag("one_class"))
    y = where(ops::lt(constant_like(y, 0), y), scalar(c.graph(), 1, real),
              scalar(c.graph(), -1, real));
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

// A vote for each pair of classes, and the sum of its decisions: [n, pairs].
Value pair_decisions(NodeContext& c, Value kernels, const std::vector<std::int64_t>& counts,
                     const std::vector<float>& weights, const std::vector<float>& rho) {
  const std::size_t classes = counts.size();
  const std::int64_t all = kernels.shape()[1].number();
  std::vector<std::int64_t> starts(classes, 0);
  for (std::size_t i = 1; i < classes; ++i) starts[i] = starts[i - 1] + counts[i - 1];
  const std::size_t pairs = classes * (classes - 1) / 2;
  if (weights.size() != (classes - 1) * static_cast<std::size_t>(all) || rho.size() < pairs)
    c.fail(cat("attributes 'coefficients' and 'rho' have ", weights.size(), " and ", rho.size(),
               " entries, expected ", (classes - 1) * static_cast<std::size_t>(all), " and ", pairs,
               " for ", classes, " classes"));
  // One row per pair over all vectors.
  std::vector<float> matrix(pairs * static_cast<std::size_t>(all), 0);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < classes; ++i)
    for (std::size_t j = i + 1; j < classes; ++j, ++pair) {
      const auto put = [&](std::size_t of, std::size_t row) {
        for (std::int64_t k = starts[of]; k < starts[of] + counts[of]; ++k)
          matrix[pair * static_cast<std::size_t>(all) + static_cast<std::size_t>(k)] =
              weights[row * static_cast<std::size_t>(all) + static_cast<std::size_t>(k)];
      };
      put(i, j - 1);
      put(j, i);
    }
  Value w = numbers(c.graph(), matrix, {static_cast<std::int64_t>(pairs), all});
  std::vector<float> shift(rho.begin(), rho.begin() + static_cast<std::ptrdiff_t>(pairs));
  return plus(dot_general(kernels, w, {}, {{1, 1}}),
              numbers(c.graph(), shift, {static_cast<std::int64_t>(pairs)}));
}

// Pairs (i, j) of classes as index tables.
struct Pairs {
  std::vector<std::int64_t> first, second;
};
Pairs pairs_of(std::size_t classes) {
  Pairs out;
  for (std::size_t i = 0; i < classes; ++i)
    for (std::size_t j = i + 1; j < classes; ++j) {
      out.first.push_back(static_cast<std::int64_t>(i));
      out.second.push_back(static_cast<std::int64_t>(j));
    }
  return out;
}

// [pairs, classes]: ones where the pair's first (or second) class is this one.
Value incidence(hone::Graph& g, const std::vector<std::int64_t>& of, std::int64_t classes) {
  std::vector<float> out(of.size() * static_cast<std::size_t>(classes), 0);
  for (std::size_t p = 0; p < of.size(); ++p)
    out[p * static_cast<std::size_t>(classes) + static_cast<std::size_t>(of[p])] = 1;
  return numbers(g, out, {std::ssize(of), classes});
}

// One Gauss-Seidel iteration over the classes (T.-F. Wu, C.-J. Lin, R. Weng 2004, algorithm 2, as
// in libsvm): probabilities p [n, k] of the quadratic form q [n, k, k]; rows that are `done` are
// unchanged. Returns p and which rows are now done.
std::pair<Value, Value> coupling_round(Value p, Value q, Value done, std::int64_t k) {
  constexpr double tolerance = 0.005;
  auto column = [](Value v, std::int64_t t) { return slice_axis(v, 1, t, 1); };  // [n, 1]
  Value products = sum_over(times(q, unsqueeze(p, {1})), {2});                   // [n, k]
  Value form = sum_over(products * p, {1}, true);                                // [n, 1]
  Value error = max_over(ops::abs(minus(products, form)), {1}, true);
  done =
      ops::bit_or(done, ops::lt(error, constant_like(error, tolerance / static_cast<double>(k))));
  Value number = iota_value(p.graph(), DType::i64, p.shape(), 1), next = p;
  for (std::int64_t t = 0; t < k; ++t) {
    Value row = squeeze(slice_axis(q, 1, t, 1), {1}), own = column(row, t);
    Value step = over(minus(form, column(products, t)), own), more = step + 1.0;
    Value is_t = ops::eq(number, integer_like(number, t));
    next = over(where(is_t, plus(next, step), next), more);
    Value change = times(step, plus(times(step, own), column(products, t) * 2.0));
    form = over(over(plus(form, change), more), more);
    products = over(plus(products, times(step, row)), more);
  }
  return {where(done, p, next), done};
}

// Class probabilities [n, k], coupled from the pairwise probabilities, which follow from decisions.
Value coupled(NodeContext& c, Value decisions, const Pairs& pairs, const std::vector<float>& a,
              const std::vector<float>& b, std::int64_t k) {
  constexpr std::int64_t most_rounds = 100;
  constexpr double least = 1e-7;
  hone::Graph& g = c.graph();
  const auto count = static_cast<std::int64_t>(a.size());
  Value line = plus(times(decisions, numbers(g, a, {count})), numbers(g, b, {count}));
  Value chance = ops::sigmoid(-line);
  chance = ops::minimum(ops::maximum(chance, constant_like(chance, least)),
                        constant_like(chance, 1 - least));
  // r[i][j] is the probability of i against j; 0 on the diagonal.
  const auto n = static_cast<std::size_t>(k), size = n * n;
  std::vector<float> forth(a.size() * size, 0), back = forth, identity(size, 0);
  for (std::size_t p = 0; p < a.size(); ++p) {
    const auto i = static_cast<std::size_t>(pairs.first[p]),
               j = static_cast<std::size_t>(pairs.second[p]);
    forth[p * size + i * n + j] = 1;
    back[p * size + j * n + i] = 1;
  }
  Value r = dot_general(chance, numbers(g, forth, {count, k * k}), {}, {{1, 0}}) +
            dot_general(1.0 - chance, numbers(g, back, {count, k * k}), {}, {{1, 0}});
  r = reshape_to(r, {decisions.shape()[0], k, k});
  // q[t][t] is the sum of r[j][t]^2, q[t][j] is -r[j][t] r[t][j].
  for (std::size_t i = 0; i < size; i += n + 1) identity[i] = 1;
  Value squares = sum_over(r * r, {1});
  Value q =
      minus(times(numbers(g, identity, {k, k}), unsqueeze(squares, {1})), transpose_matrix(r) * r);
  Value start = filled(g, real, Shape{decisions.shape()[0], k}, 1 / static_cast<double>(k));
  Value open = integers_filled(g, DType::b1, Shape{decisions.shape()[0], 1}, 0);
  const Values operands = {integer(g, 0), start, open, q};
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* f : {go.get(), next.get()})
    for (const Value& v : operands) f->add_param(v.type(), cat("p", f->params().size()));
  go->add_result(ops::lt(go->param(0), integer(go->graph(), most_rounds)));
  auto [p, done] = coupling_round(next->param(1), next->param(3), next->param(2), k);
  next->add_result(next->param(0) + integer_like(next->param(0), 1));
  next->add_result(p);
  next->add_result(done);
  return ops::while_loop(operands, {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}})
      .result(1);
}

Values svm_classifier(NodeContext& c) {
  Value x = cast_to(rows_of(c, c.in(0)), real);
  const Labels labels = labels_of(c, "classlabels_strings", "classlabels_ints");
  const auto counts = c.integers("vectors_per_class").value_or(std::vector<std::int64_t>());
  const std::vector<float> weights = reals_or_none(c, "coefficients"),
                           rho = reals_or_none(c, "rho"), a = reals_or_none(c, "prob_a"),
                           b = reals_or_none(c, "prob_b");
  const std::string_view how = c.text("post_transform", "NONE");
  std::int64_t all = 0;
  for (std::int64_t n : counts) {
    if (n < 0) c.fail(cat("attribute 'vectors_per_class' contains ", n, ", expected 0 or more"));
    all += n;
  }
  if (all == 0)
    c.unsupported(
        "a linear classifier without support vectors is not supported; use LinearClassifier");
  if (std::ssize(counts) != labels.count || labels.count < 2)
    c.fail(cat("attribute 'vectors_per_class' has ", amount(counts.size(), "entry", "entries"),
               ", expected one for each of ", labels.count, " classes, at least two"));
  Value decisions =
      pair_decisions(c, kernel_of(c, x, support_vectors(c, x, all)), counts, weights, rho);
  hone::Graph& g = c.graph();
  const Pairs pairs = pairs_of(counts.size());
  Value first = incidence(g, pairs.first, labels.count),
        second = incidence(g, pairs.second, labels.count);
  Value wins = cast_to(ops::lt(constant_like(decisions, 0), decisions), real);
  Value votes =
      dot_general(wins, first, {}, {{1, 0}}) + dot_general(1.0 - wins, second, {}, {{1, 0}});
  Value chosen = labels.at(first_largest(votes));
  if (!a.empty()) {
    if (a.size() != pairs.first.size() || b.size() != a.size())
      c.fail(cat("attributes 'prob_a' and 'prob_b' have ", a.size(), " and ", b.size(),
                 " entries, expected ", pairs.first.size(), ", one for each pair of classes"));
    Value p = coupled(c, decisions, pairs, a, b, labels.count);
    return {labels.at(first_largest(p)), transformed(c, p, how)};
  }
  if (labels.count > 2) return {chosen, transformed(c, decisions, how)};
  Value both = concat_values(Values{-decisions, decisions}, 1);
  return {chosen, transformed(c, both, how)};
}

// ==== features

// (x - offset) * scale, with one number for all features or one per feature.
Values scaler(NodeContext& c) {
  Value y = cast_to(rows_of(c, c.in(0)), real);
  const std::vector<float> offset = reals_or_none(c, "offset"), scale = reals_or_none(c, "scale");
  if (!offset.empty()) y = minus(y, numbers(c.graph(), offset, {std::ssize(offset)}));
  if (!scale.empty()) y = times(y, numbers(c.graph(), scale, {std::ssize(scale)}));
  return {reshape_to(y, c.in(0).shape().dims)};
}

// Rows of norm 0 are unchanged.
Values normalizer(NodeContext& c) {
  Value x = cast_to(rows_of(c, c.in(0)), real), norm;
  const std::string_view how = c.text("norm", "MAX");
  if (how == "MAX")
    norm = max_over(x, {1}, true);
  else if (how == "L1")
    norm = sum_over(ops::abs(x), {1}, true);
  else if (how == "L2")
    norm = ops::sqrt(sum_over(x * x, {1}, true));
  else
    c.bad_attribute("norm", how, "MAX, L1 or L2");
  Value none = ops::eq(norm, constant_like(norm, 0));
  Value y = over(x, where(none, scalar(c.graph(), 1, real), norm));
  return {reshape_to(y, c.in(0).shape().dims)};
}

Values imputer(NodeContext& c) {
  Value x = c.in(0);
  Value by, gap;
  if (auto given = c.integers("imputed_value_int64s"); given && !is_float(x.dtype())) {
    by = cast_to(integer_list(c.graph(), *given), x.dtype());
    gap = integer_like(x, c.integer("replaced_value_int64", 0));
    c.ignore("replaced_value_float");
    c.ignore("imputed_value_floats");
  } else {
    const std::vector<float> list = reals_or_none(c, "imputed_value_floats");
    if (list.empty())
      c.fail("attribute 'imputed_value_floats' is missing or empty, expected at least one entry");
    by = cast_to(numbers(c.graph(), list, {std::ssize(list)}), x.dtype());
    gap = constant_like(x, c.real("replaced_value_float", 0));
    c.ignore("imputed_value_int64s");
    c.ignore("replaced_value_int64");
  }
  Value is_gap = ops::eq(x, gap);
  if (is_float(x.dtype()) && std::isnan(c.real("replaced_value_float", 0))) is_gap = ops::ne(x, x);
  return {where(is_gap, by, x)};
}

// Adds an axis: 1 at the category's index.
Values one_hot_encoder(NodeContext& c) {
  Value x = c.in(0);
  const bool zeros = c.flag("zeros", true);
  const Labels cats = labels_of(c, "cats_strings", "cats_int64s");
  if (x.dtype() != cats.all.dtype()) {
    if (x.dtype() == DType::text || cats.all.dtype() == DType::text)
      c.fail(cat("input 0 ('X') is ", x.type(), " and the categories are ", cats.all.type(),
                 ", expected strings or numbers for both"));
    x = cast_to(x, DType::i64);
  }
  Shape shape = x.shape();
  shape.dims.push_back(cats.count);
  Value is_it =
      ops::eq(broadcast_to(unsqueeze(x, {x.rank()}), shape), broadcast_to(cats.all, shape));
  if (!zeros) {
    Value is_none = ops::bit_not(reduce_axes(ops::reduce_or, is_it, {x.rank()}));
    require_within(cast_to(is_none, DType::i64), 0, 0, "a flag that marks an unknown category");
  }
  return {cast_to(is_it, real)};
}

Values feature_vectorizer(NodeContext& c) {
  c.ignore("inputdimensions");
  Values parts;
  for (const Value& v : c.all_inputs()) parts.push_back(cast_to(rows_of(c, v), real));
  return {concat_values(parts, 1)};
}

// Maps integers to strings or back; unknown values get a default.
Values category_mapper(NodeContext& c) {
  const std::vector<std::int64_t> integers =
      c.integers("cats_int64s").value_or(std::vector<std::int64_t>());
  const auto texts = c.texts("cats_strings").value_or(std::vector<std::string_view>());
  if (integers.empty() || integers.size() != texts.size())
    c.fail(cat("attributes 'cats_int64s' and 'cats_strings' have ", integers.size(), " and ",
               texts.size(), " entries, expected equal numbers, at least 1"));
  const std::string_view text = c.text("default_string", "_Unused");
  const std::int64_t integer_default = c.integer("default_int64", -1);
  Value names = constant_value(c.graph(), text_array({std::ssize(texts)}, texts));
  Value numbers_of = integer_list(c.graph(), integers);
  Value x = c.in(0);
  const bool to_numbers = x.dtype() == DType::text;
  Value keys = to_numbers ? names : numbers_of, values = to_numbers ? numbers_of : names;
  if (!to_numbers) x = cast_to(x, DType::i64);
  Shape pairs = x.shape();
  pairs.dims.push_back(std::ssize(integers));
  Value is_key = ops::eq(broadcast_to(unsqueeze(x, {x.rank()}), pairs), broadcast_to(keys, pairs));
  Value at = ops::argmax(cast_to(is_key, DType::i32),
                         {{"axis", std::int64_t{x.rank()}}, {"dtype", DType::i64}});
  Value found = ops::gather(Values{values, at}, {{"axis", std::int64_t{0}}});
  Value otherwise = to_numbers ? integer(c.graph(), integer_default)
                               : constant_value(c.graph(), text_array({}, std::span(&text, 1)));
  return {where(reduce_axes(ops::reduce_or, is_key, {x.rank()}), found, otherwise)};
}

// A map from classes to scores for each row. Maps are not supported: the scores of each row stay
// together, in the order of the classes.
Values zip_map(NodeContext& c) {
  c.ignore("classlabels_strings");
  c.ignore("classlabels_int64s");
  return {c.in(0)};
}

constexpr ImportEntry ml_model_table[] = {
    {.op = "LinearRegressor", .import = linear_regressor, .domain = ml_domain},
    {.op = "LinearClassifier", .import = linear_classifier, .domain = ml_domain},
    {.op = "TreeEnsembleRegressor", .import = tree_regressor, .domain = ml_domain},
    {.op = "TreeEnsembleClassifier", .import = tree_classifier, .domain = ml_domain},
    {.op = "SVMRegressor", .import = svm_regressor, .domain = ml_domain},
    {.op = "SVMClassifier", .import = svm_classifier, .domain = ml_domain},
    {.op = "Scaler", .import = scaler, .domain = ml_domain},
    {.op = "Normalizer", .import = normalizer, .domain = ml_domain},
    {.op = "Imputer", .import = imputer, .domain = ml_domain},
    {.op = "OneHotEncoder", .import = one_hot_encoder, .domain = ml_domain},
    {.op = "FeatureVectorizer", .import = feature_vectorizer, .domain = ml_domain},
    {.op = "CategoryMapper", .import = category_mapper, .domain = ml_domain},
    {.op = "ZipMap", .import = zip_map, .domain = ml_domain},
};

}  // namespace

std::span<const ImportEntry> ml_model_imports() { return ml_model_table; }

}  // namespace hone::onnx
