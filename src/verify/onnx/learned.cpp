// Domain ai.onnx.ml: features, linear models and trees, of numbers alone.
#include <algorithm>
#include <cmath>
#include <map>

#include "type/text.h"
#include "verify/onnx/call.h"

namespace hone::onnx {

namespace {

// [samples, features].
struct Rows {
  std::int64_t count, width;
  const Numbers& numbers;

  double at(std::int64_t row, std::int64_t column) const {
    return numbers.values.at(static_cast<std::size_t>(row * width + column));
  }
};

Rows rows_of(Call& c) {
  const Numbers& x = c.in(0);
  if (x.dims.empty() || x.dims.size() > 2 || (is_float(x.dtype) && x.dtype != DType::f32))
    throw NotJudged();
  return {x.dims.size() == 1 ? 1 : x.dims[0], x.dims.back(), x};
}

// One number for all features, or one for each.
double of_column(const std::vector<double>& list, std::int64_t column) {
  return list.at(list.size() == 1 ? 0 : static_cast<std::size_t>(column));
}

std::vector<Numbers> binarizer(Call& c) {
  const double threshold = c.real("threshold", 0);
  Numbers out{c.in(0).dtype, c.in(0).dims, {}};
  for (double x : c.in(0).values) out.values.push_back(x > threshold ? 1 : 0);
  return {out};
}

std::vector<Numbers> scaler(Call& c) {
  const Rows x = rows_of(c);
  const std::vector<double> offset = c.reals("offset"), scale = c.reals("scale");
  Numbers out{DType::f32, c.in(0).dims, {}};
  for (std::int64_t i = 0; i < x.count; ++i)
    for (std::int64_t k = 0; k < x.width; ++k)
      out.values.push_back((x.at(i, k) - of_column(offset, k)) * of_column(scale, k));
  return {out};
}

std::vector<Numbers> normalizer(Call& c) {
  const Rows x = rows_of(c);
  const std::string norm = c.text("norm", "MAX");
  Numbers out{DType::f32, c.in(0).dims, {}};
  for (std::int64_t i = 0; i < x.count; ++i) {
    double most = 0, sum = 0, squares = 0;
    for (std::int64_t k = 0; k < x.width; ++k) {
      const double v = x.at(i, k);
      if (v < 0 && norm == "MAX") throw NotJudged();  // the page does not say whether magnitudes
      most = std::fmax(most, v);
      sum += std::fabs(v);
      squares += v * v;
    }
    const double by = norm == "MAX" ? most : norm == "L1" ? sum : std::sqrt(squares);
    if (by == 0) throw NotJudged();
    for (std::int64_t k = 0; k < x.width; ++k) out.values.push_back(x.at(i, k) / by);
  }
  return {out};
}

std::vector<Numbers> imputer(Call& c) {
  const Rows x = rows_of(c);
  const bool of_integers = c.has_attribute("imputed_value_int64s");
  const double replaced = of_integers ? static_cast<double>(c.integer("replaced_value_int64", 0))
                                      : c.real("replaced_value_float", 0);
  std::vector<double> imputed = c.reals("imputed_value_floats");
  if (of_integers)
    for (std::int64_t n : c.integers("imputed_value_int64s").value_or(Sizes()))
      imputed.push_back(static_cast<double>(n));
  Numbers out{c.in(0).dtype, c.in(0).dims, {}};
  for (std::int64_t i = 0; i < x.count; ++i)
    for (std::int64_t k = 0; k < x.width; ++k) {
      const double v = x.at(i, k);
      const bool is_missing = v == replaced || (v != v && replaced != replaced);
      out.values.push_back(is_missing ? of_column(imputed, k) : v);
    }
  return {out};
}

std::vector<Numbers> array_feature_extractor(Call& c) {
  const Rows x = rows_of(c);
  const Sizes columns = c.list(1);
  Numbers out{c.in(0).dtype, {x.count, static_cast<std::int64_t>(columns.size())}, {}};
  for (std::int64_t i = 0; i < x.count; ++i)
    for (std::int64_t k : columns) out.values.push_back(x.at(i, k));
  return {out};
}

// Strings as elements of tensors.
std::vector<double> numbers_of_texts(const std::vector<std::string>& texts) {
  std::vector<double> out;
  for (const std::string& t : texts) out.push_back(static_cast<double>(text_number(t)));
  return out;
}

std::vector<Numbers> label_encoder(Call& c) {
  if (c.has_attribute("keys_tensor") || c.has_attribute("values_tensor")) throw NotJudged();
  const auto listed = [&](const char* integers, const char* reals, const char* texts) {
    std::vector<double> out = c.reals(reals);
    for (std::int64_t n : c.integers(integers).value_or(Sizes()))
      out.push_back(static_cast<double>(n));
    for (double n : numbers_of_texts(c.texts(texts))) out.push_back(n);
    return out;
  };
  const DType to = c.has_attribute("values_floats")    ? DType::f32
                   : c.has_attribute("values_strings") ? DType::text
                                                       : DType::i64;
  const std::vector<double> keys = listed("keys_int64s", "keys_floats", "keys_strings"),
                            values = listed("values_int64s", "values_floats", "values_strings");
  const double of_integers = static_cast<double>(c.integer("default_int64", -1)),
               of_reals = c.real("default_float", 0),
               of_texts = static_cast<double>(text_number(c.text("default_string", "_Unused"))),
               other = to == DType::f32    ? of_reals
                       : to == DType::text ? of_texts
                                           : of_integers;
  Numbers out{to, c.in(0).dims, {}};
  for (double x : c.in(0).values) {
    const auto at =
        std::ranges::find_if(keys, [&](double k) { return k == x || (k != k && x != x); });
    out.values.push_back(at == keys.end() ? other
                                          : values.at(static_cast<std::size_t>(at - keys.begin())));
  }
  return {out};
}

// Between strings and their numbers.
std::vector<Numbers> category_mapper(Call& c) {
  const bool to_text = c.in(0).dtype != DType::text;
  const std::vector<double> texts = numbers_of_texts(c.texts("cats_strings"));
  std::vector<double> numbers;
  for (std::int64_t n : c.integers("cats_int64s").value_or(Sizes()))
    numbers.push_back(static_cast<double>(n));
  const double of_texts = static_cast<double>(text_number(c.text("default_string", "_Unused"))),
               of_integers = static_cast<double>(c.integer("default_int64", -1));
  const std::vector<double>&from = to_text ? numbers : texts, &to = to_text ? texts : numbers;
  Numbers out{to_text ? DType::text : DType::i64, c.in(0).dims, {}};
  for (double x : c.in(0).values) {
    const auto at = std::ranges::find(from, x);
    out.values.push_back(at == from.end() ? (to_text ? of_texts : of_integers)
                                          : to.at(static_cast<std::size_t>(at - from.begin())));
  }
  return {out};
}

std::vector<Numbers> one_hot_encoder(Call& c) {
  std::vector<double> kinds = numbers_of_texts(c.texts("cats_strings"));
  for (std::int64_t n : c.integers("cats_int64s").value_or(Sizes()))
    kinds.push_back(static_cast<double>(n));
  const bool may_be_none = c.integer("zeros", 1) != 0;
  Numbers out{DType::f32, c.in(0).dims, {}};
  out.dims.push_back(static_cast<std::int64_t>(kinds.size()));
  for (double x : c.in(0).values) {
    bool is_any = false;
    for (double k : kinds) {
      is_any = is_any || k == x;
      out.values.push_back(k == x ? 1 : 0);
    }
    if (!is_any && !may_be_none) throw NotJudged();
  }
  return {out};
}

// Of a row of scores.
void transform(std::vector<double>& row, const std::string& how) {
  if (how == "NONE") return;
  if (how == "LOGISTIC") {
    for (double& x : row) x = 1 / (1 + std::exp(-x));
    return;
  }
  if (how != "SOFTMAX") throw NotJudged();
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - most);
  for (double& x : row) x /= sum;
}

// Scores of each row, [samples, targets].
std::vector<std::vector<double>> linear_scores(Call& c) {
  const Rows x = rows_of(c);
  const std::vector<double> weights = c.reals("coefficients"), shifts = c.reals("intercepts");
  if (x.width == 0) throw NotJudged();
  const auto targets = static_cast<std::int64_t>(weights.size()) / x.width;
  std::vector<std::vector<double>> out;
  for (std::int64_t i = 0; i < x.count; ++i) {
    std::vector<double> row;
    for (std::int64_t t = 0; t < targets; ++t) {
      double sum = shifts.empty() ? 0 : shifts.at(static_cast<std::size_t>(t));
      for (std::int64_t k = 0; k < x.width; ++k)
        sum += x.at(i, k) * weights[static_cast<std::size_t>(t * x.width + k)];
      row.push_back(sum);
    }
    out.push_back(std::move(row));
  }
  return out;
}

Numbers scores_of(std::vector<std::vector<double>> rows, const std::string& how) {
  Numbers out{DType::f32, {static_cast<std::int64_t>(rows.size()), 0}, {}};
  for (std::vector<double>& row : rows) {
    transform(row, how);
    out.dims[1] = static_cast<std::int64_t>(row.size());
    out.values.insert(out.values.end(), row.begin(), row.end());
  }
  return out;
}

std::vector<Numbers> linear_regressor(Call& c) {
  static_cast<void>(c.integer("targets", 1));
  return {scores_of(linear_scores(c), c.text("post_transform", "NONE"))};
}

// Labels that are integers, and a score for each.
std::vector<Numbers> linear_classifier(Call& c) {
  if (c.has_attribute("classlabels_strings")) throw NotJudged();
  const Sizes labels = c.integers("classlabels_ints").value_or(Sizes());
  static_cast<void>(c.integer("multi_class", 0));
  std::vector<std::vector<double>> rows = linear_scores(c);
  Numbers chosen{DType::i64, {static_cast<std::int64_t>(rows.size())}, {}};
  const std::string how = c.text("post_transform", "NONE");
  const bool is_one_of_two =
      !rows.empty() && rows[0].size() == 1 && labels.size() == 2 && how != "PROBIT";
  for (const std::vector<double>& row : rows) {
    if (row.size() != labels.size() && !is_one_of_two) throw NotJudged();
    const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    chosen.values.push_back(static_cast<double>(labels[is_one_of_two ? row[0] > 0 : best]));
  }
  // What the score of the first of two is the page does not say.
  if (is_one_of_two) return {chosen};
  return {chosen, scores_of(std::move(rows), how)};
}

// ==== trees

struct TreeNode {
  std::string mode;
  std::int64_t feature, yes, no;
  double split;
  bool goes_on_missing;
};

bool goes_on(const TreeNode& n, double x) {
  if (x != x && n.goes_on_missing) return true;
  if (n.mode == "BRANCH_LEQ") return x <= n.split;
  if (n.mode == "BRANCH_LT") return x < n.split;
  if (n.mode == "BRANCH_GTE") return x >= n.split;
  if (n.mode == "BRANCH_GT") return x > n.split;
  if (n.mode == "BRANCH_EQ") return x == n.split;
  if (n.mode == "BRANCH_NEQ") return x != n.split;
  throw NotJudged();
}

using Place = std::pair<std::int64_t, std::int64_t>;  // a tree, and a node of it

struct Trees {
  std::map<Place, TreeNode> nodes;
  std::vector<Place> roots;
  std::map<Place, std::vector<std::pair<std::int64_t, double>>> weights;  // target, weight

  Place leaf(Place at, const Rows& x, std::int64_t row) const {
    for (std::size_t steps = 0; steps <= nodes.size(); ++steps) {
      const TreeNode& n = nodes.at(at);
      if (n.mode == "LEAF") return at;
      at.second = goes_on(n, x.at(row, n.feature)) ? n.yes : n.no;
    }
    throw NotJudged();
  }
};

Trees trees_of(Call& c) {
  const auto list = [&](const char* name) { return c.integers(name).value_or(Sizes()); };
  const Sizes trees = list("nodes_treeids"), ids = list("nodes_nodeids"),
              features = list("nodes_featureids"), yes = list("nodes_truenodeids"),
              no = list("nodes_falsenodeids"), missing = list("nodes_missing_value_tracks_true");
  const std::vector<double> splits = c.reals("nodes_values");
  const std::vector<std::string> modes = c.texts("nodes_modes");
  static_cast<void>(c.reals("nodes_hitrates"));
  Trees out;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const bool is_first =
        std::ranges::none_of(out.roots, [&](const Place& root) { return root.first == trees[i]; });
    const Place at{trees[i], ids.at(i)};
    if (is_first) out.roots.push_back(at);
    out.nodes[at] = {modes.at(i), features.at(i), yes.at(i),
                     no.at(i),    splits.at(i),   !missing.empty() && missing.at(i) != 0};
  }
  const Sizes of_tree = list("target_treeids"), of_node = list("target_nodeids"),
              target = list("target_ids");
  const std::vector<double> weights = c.reals("target_weights");
  for (std::size_t i = 0; i < weights.size(); ++i)
    out.weights[{of_tree.at(i), of_node.at(i)}].emplace_back(target.at(i), weights[i]);
  return out;
}

std::vector<Numbers> tree_regressor(Call& c) {
  const Rows x = rows_of(c);
  const Trees trees = trees_of(c);
  const auto targets = static_cast<std::size_t>(c.integer("n_targets", 1));
  const std::string how = c.text("aggregate_function", "SUM");
  const std::vector<double> base = c.reals("base_values");
  if (how != "SUM" && how != "AVERAGE") throw NotJudged();
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < x.count; ++i) {
    std::vector<double> row(targets, 0);
    for (const Place& root : trees.roots)
      if (const auto at = trees.weights.find(trees.leaf(root, x, i)); at != trees.weights.end())
        for (const auto& [target, weight] : at->second)
          row.at(static_cast<std::size_t>(target)) += weight;
    for (std::size_t t = 0; t < targets; ++t) {
      if (how == "AVERAGE") row[t] /= static_cast<double>(trees.roots.size());
      if (!base.empty()) row[t] += of_column(base, static_cast<std::int64_t>(t));
    }
    rows.push_back(std::move(row));
  }
  return {scores_of(std::move(rows), c.text("post_transform", "NONE"))};
}

// Columns beside one another.
std::vector<Numbers> feature_vectorizer(Call& c) {
  static_cast<void>(c.integers("inputdimensions"));
  const std::int64_t rows = rows_of(c).count;
  Numbers out{DType::f32, {rows, 0}, {}};
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    if (c.in(i).dims.size() != 2 || c.in(i).dims[0] != rows) throw NotJudged();
    out.dims[1] += c.in(i).dims[1];
  }
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < c.inputs(); ++i) {
      const auto from = c.in(i).values.begin() + row * c.in(i).dims[1];
      out.values.insert(out.values.end(), from, from + c.in(i).dims[1]);
    }
  return {out};
}

constexpr MeaningRow learned_rows[] = {
    {"ai.onnx.ml.Binarizer", binarizer, Kind::rounds},
    {"ai.onnx.ml.Scaler", scaler},
    {"ai.onnx.ml.Normalizer", normalizer},
    {"ai.onnx.ml.Imputer", imputer, Kind::rounds},
    {"ai.onnx.ml.ArrayFeatureExtractor", array_feature_extractor, Kind::rounds},
    {"ai.onnx.ml.FeatureVectorizer", feature_vectorizer, Kind::rounds},
    {"ai.onnx.ml.LabelEncoder", label_encoder, Kind::rounds},
    {"ai.onnx.ml.CategoryMapper", category_mapper, Kind::rounds},
    {"ai.onnx.ml.OneHotEncoder", one_hot_encoder, Kind::rounds},
    {"ai.onnx.ml.LinearRegressor", linear_regressor},
    {"ai.onnx.ml.LinearClassifier", linear_classifier},
    {"ai.onnx.ml.TreeEnsembleRegressor", tree_regressor, Kind::rounds},
};

}  // namespace

std::span<const MeaningRow> learned_meanings() { return learned_rows; }

}  // namespace hone::onnx
