// Domain ai.onnx.ml, compared with tree walks and look-ups written here, and casts for which the
// format specifies more than `cast` does.
#include <algorithm>
#include <cmath>
#include <random>

#include "support.h"

namespace hone {
namespace {

using Integers = std::vector<std::int64_t>;

void set_array(onnx_pb::Node& n, const std::string& name, const Array& value) {
  onnx_pb::Attribute* a = n.add_attribute();
  a->set_name(name);
  a->set_type(4);
  ModelBuilder::fill(a->mutable_t(), name, value);
}

Array row(const std::vector<float>& values) {
  return Array::of<float>(DType::f32, {std::ssize(values)}, values);
}

ModelBuilder ml_model(const Array& x) {
  ModelBuilder b;
  onnx_pb::Opset* o = b.model.add_opset_import();
  o->set_domain("ai.onnx.ml");
  o->set_version(5);
  std::vector<std::string> sizes;
  for (std::int64_t d : x.dims()) sizes.push_back(cat(d));
  b.input("x", x.dtype(), sizes);
  b.output("y");
  return b;
}

onnx_pb::Node& ml_node(ModelBuilder& b, const std::string& op) {
  onnx_pb::Node& n = b.node(op, {"x"}, {"y"});
  n.set_domain("ai.onnx.ml");
  return n;
}

// A complete tree of depth 3 over 4 features: 7 nodes, 8 leaves, all modes in rotation.
struct Tree {
  Integers features, modes, tracks;
  std::vector<float> splits, weights;
  Integers targets;

  explicit Tree(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    for (int i = 0; i < 7; ++i) {
      features.push_back(static_cast<std::int64_t>(random() % 4));
      modes.push_back((i + static_cast<int>(seed)) % 6);
      tracks.push_back(static_cast<std::int64_t>(random() % 2));
      splits.push_back(modes.back() < 4 ? number(random) : 0.5f);
    }
    for (int i = 0; i < 8; ++i) {
      weights.push_back(number(random));
      targets.push_back(static_cast<std::int64_t>(random() % 3));
    }
  }

  bool goes_on_true(std::size_t n, float x) const {
    const float s = splits[n];
    if (std::isnan(x) && tracks[n]) return true;
    switch (modes[n]) {
      case 0:
        return x <= s;
      case 1:
        return x < s;
      case 2:
        return x >= s;
      case 3:
        return x > s;
      case 4:
        return x == s;
      default:
        return x != s;
    }
  }
  std::size_t leaf(std::span<const float> row) const {
    std::size_t n = 0;
    for (int depth = 0; depth < 3; ++depth)
      n = 2 * n + (goes_on_true(n, row[static_cast<std::size_t>(features[n])]) ? 1 : 2);
    return n - 7;
  }
};

ModelBuilder tree_model(const std::vector<Tree>& trees, const Array& x, std::int64_t aggregate) {
  Integers features, modes, tracks, yes, no, yes_leafs, no_leafs, targets, roots;
  std::vector<float> splits, weights;
  for (const Tree& t : trees) {
    const auto first = static_cast<std::int64_t>(features.size()),
               leaf = static_cast<std::int64_t>(weights.size());
    roots.push_back(first);
    features.insert(features.end(), t.features.begin(), t.features.end());
    modes.insert(modes.end(), t.modes.begin(), t.modes.end());
    tracks.insert(tracks.end(), t.tracks.begin(), t.tracks.end());
    splits.insert(splits.end(), t.splits.begin(), t.splits.end());
    weights.insert(weights.end(), t.weights.begin(), t.weights.end());
    targets.insert(targets.end(), t.targets.begin(), t.targets.end());
    for (std::int64_t n = 0; n < 7; ++n) {
      const bool at_leaves = n >= 3;
      yes.push_back(at_leaves ? leaf + 2 * n + 1 - 7 : first + 2 * n + 1);
      no.push_back(yes.back() + 1);
      yes_leafs.push_back(at_leaves);
      no_leafs.push_back(at_leaves);
    }
  }
  ModelBuilder b = ml_model(x);
  onnx_pb::Node& n = ml_node(b, "TreeEnsemble");
  set_ints(n, "tree_roots", roots);
  set_ints(n, "nodes_featureids", features);
  set_ints(n, "nodes_truenodeids", yes);
  set_ints(n, "nodes_falsenodeids", no);
  set_ints(n, "nodes_trueleafs", yes_leafs);
  set_ints(n, "nodes_falseleafs", no_leafs);
  set_ints(n, "nodes_missing_value_tracks_true", tracks);
  set_ints(n, "leaf_targetids", targets);
  set_array(n, "nodes_splits", row(splits));
  set_array(n, "leaf_weights", row(weights));
  Array codes = Array::zeros(DType::u8, {std::ssize(modes)});
  for (std::int64_t i = 0; i < codes.count(); ++i)
    codes.set_integer(i, modes[static_cast<std::size_t>(i)]);
  set_array(n, "nodes_modes", codes);
  set_int(n, "n_targets", 3);
  set_int(n, "aggregate_function", aggregate);
  return b;
}

double expected(const std::vector<Tree>& trees, std::span<const float> row, std::int64_t target,
                std::int64_t aggregate) {
  double sum = 0, low = HUGE_VAL, high = -HUGE_VAL;
  int count = 0;
  for (const Tree& t : trees) {
    const std::size_t leaf = t.leaf(row);
    if (t.targets[leaf] != target) continue;
    const double w = t.weights[leaf];
    sum += w;
    low = std::min(low, w);
    high = std::max(high, w);
    ++count;
  }
  if (count == 0) return 0;
  const double results[] = {sum / static_cast<double>(trees.size()), sum, low, high};
  return results[aggregate];
}

TEST(Trees, EveryModeAndAggregateAsAWalkDoesIt) {
  std::vector<Tree> trees;
  for (unsigned seed = 0; seed < 9; ++seed) trees.emplace_back(seed);
  Array x = Array::zeros(DType::f32, {50, 4});
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const double number = std::uniform_real_distribution<double>(-1, 1)(random);
    x.set_real(i, i % 11 == 0 ? NAN : i % 7 == 0 ? 0.5 : number);
  }
  for (std::size_t i = 0; i < 50; ++i) {  // sets one number per row to the split value of a node
    const Tree& t = trees[i % trees.size()];
    x.set_real(static_cast<std::int64_t>(i) * 4 + t.features[i % 7], t.splits[i % 7]);
  }
  for (std::int64_t aggregate : {0, 1, 2, 3}) {
    const Array y = tree_model(trees, x, aggregate).run({x}).at(0);
    ASSERT_EQ(y.type(), Type(DType::f32, {50, 3}));
    for (std::int64_t i = 0; i < y.count(); ++i)
      EXPECT_NEAR(y.real(i),
                  expected(trees, x.as<float>().subspan(static_cast<std::size_t>(i / 3 * 4), 4),
                           i % 3, aggregate),
                  1e-6);
  }
}

// The older operator with one node and two leaves: 1 if the test holds, otherwise 2.
TEST(Trees, ModesByNameBesideAndAtTheNumber) {
  struct Row {
    const char* mode;
    float below, at, above;
  };
  for (const Row& r :
       {Row{"BRANCH_LEQ", 1, 1, 2}, Row{"BRANCH_LT", 1, 2, 2}, Row{"BRANCH_GTE", 2, 1, 1},
        Row{"BRANCH_GT", 2, 2, 1}, Row{"BRANCH_EQ", 2, 1, 2}, Row{"BRANCH_NEQ", 1, 2, 1}}) {
    const Array x = Array::of<float>(DType::f32, {3, 1}, std::vector<float>{0.25f, 0.5f, 0.75f});
    ModelBuilder b = ml_model(x);
    b.model.mutable_opset_import(1)->set_version(3);
    onnx_pb::Node& n = ml_node(b, "TreeEnsembleRegressor");
    onnx_pb::Attribute* modes = n.add_attribute();
    modes->set_name("nodes_modes");
    modes->set_type(8);
    for (const char* mode : {r.mode, "LEAF", "LEAF"}) modes->add_strings(mode);
    const auto reals_of = [&](const std::string& name, const std::vector<float>& values) {
      onnx_pb::Attribute* a = n.add_attribute();
      a->set_name(name);
      a->set_type(6);
      for (const float v : values) a->add_floats(v);
    };
    set_int(n, "n_targets", 1);
    for (const char* name : {"nodes_treeids", "nodes_featureids"}) set_ints(n, name, {0, 0, 0});
    set_ints(n, "nodes_nodeids", {0, 1, 2});
    set_ints(n, "nodes_truenodeids", {1, 0, 0});
    set_ints(n, "nodes_falsenodeids", {2, 0, 0});
    reals_of("nodes_values", {0.5f, 0, 0});
    for (const char* name : {"target_treeids", "target_ids"}) set_ints(n, name, {0, 0});
    set_ints(n, "target_nodeids", {1, 2});
    reals_of("target_weights", {1, 2});
    EXPECT_EQ(b.run({x}).at(0),
              Array::of<float>(DType::f32, {3, 1}, std::vector<float>{r.below, r.at, r.above}))
        << r.mode;
  }
}

TEST(Trees, BrokenOnesAreRefused) {
  const Array x = Array::zeros(DType::f32, {2, 4});
  auto failure = [&](const std::string& attribute, std::int64_t value) {
    ModelBuilder b = tree_model({Tree(0)}, x, 1);
    for (onnx_pb::Attribute& a : *b.model.mutable_graph()->mutable_node(0)->mutable_attribute())
      if (a.name() == attribute) a.set_ints(0, value);
    return b.failure();
  };
  auto expect = [](const std::string& got, const std::string& what) {
    EXPECT_NE(got.find(what), std::string::npos) << got;
  };
  expect(failure("nodes_truenodeids", 0), "form a cycle");
  expect(failure("nodes_truenodeids", 7),
         "'nodes_truenodeids' contains 7 for node 0, expected at least 0 and less than 7");
  expect(failure("nodes_falsenodeids", -1), "expected at least 0 and less than 7");
  expect(failure("nodes_featureids", 4), "a feature is 4, expected at least 0 and less than 4");
  expect(failure("tree_roots", 9), "a root is 9, expected at least 0 and less than 7");
  expect(failure("leaf_targetids", 3), "a target is 3, expected at least 0 and less than 3");
}

TEST(Encoder, NumbersToNumbers) {
  const Array x = row({1.5f, NAN, 7, -0.0f});
  ModelBuilder b = ml_model(x);
  onnx_pb::Node& n = ml_node(b, "LabelEncoder");
  set_array(n, "keys_tensor", row({NAN, 0, 1.5f, 1.5f}));
  set_ints(n, "values_int64s", {10, 20, 30, 40});
  set_int(n, "default_int64", -7);
  const Array y = b.run({x}).at(0);
  EXPECT_EQ(y, Array::from_ints(Integers{30, 10, -7, 20}));
}

// ==== casts

Array cast_of(const Array& x, int to, const std::string& mode, bool saturate) {
  ModelBuilder b(25);
  b.input("x", x.dtype(), {cat(x.count())});
  b.output("y");
  onnx_pb::Node& n = b.node("Cast", {"x"}, {"y"});
  set_int(n, "to", to);
  set_int(n, "saturate", saturate);
  if (!mode.empty()) set_text(n, "round_mode", mode);
  return b.run({x}).at(0);
}

TEST(Cast, ExponentsRoundAsTold) {
  const Array x = row({1, 1.25f, -1.5f, 1.75f, 0x1p127f, 0x1.8p127f, 0, 0x1.4p-127f, INFINITY});
  struct Row {
    std::string mode;
    bool saturate;
    std::vector<double> expected;
  };
  const double top = 0x1p127, low = 0x1p-127;
  for (const Row& r : {Row{"up", true, {1, 2, 2, 2, top, top, low, 2 * low, NAN}},
                       Row{"down", true, {1, 1, 1, 1, top, top, low, low, NAN}},
                       Row{"nearest", true, {1, 1, 2, 2, top, top, low, low, NAN}},
                       Row{"up", false, {1, 2, 2, 2, top, NAN, low, 2 * low, NAN}},
                       Row{"nearest", false, {1, 1, 2, 2, top, NAN, low, low, NAN}}}) {
    const Array y = cast_of(x, 24, r.mode, r.saturate);
    ASSERT_EQ(y.dtype(), DType::f8e8m0);
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const double e = r.expected[static_cast<std::size_t>(i)];
      EXPECT_TRUE(y.real(i) == e || (std::isnan(y.real(i)) && std::isnan(e)))
          << r.mode << " " << r.saturate << ": " << x.real(i) << " to " << y.real(i);
    }
  }
}

TEST(Cast, SmallFloatsSaturateOrNot) {
  const Array x = row({1000, -INFINITY, NAN, 449});
  const Array held = cast_of(x, 17, "", true), lost = cast_of(x, 17, "", false);
  EXPECT_EQ(held.real(0), 448);
  EXPECT_EQ(held.real(1), -448);
  EXPECT_TRUE(std::isnan(held.real(2)));
  EXPECT_EQ(held.real(3), 448);
  EXPECT_TRUE(std::isnan(lost.real(0)));
  EXPECT_TRUE(std::isnan(lost.real(1)));
  EXPECT_EQ(lost.real(3), 448);
  const Array infinite = cast_of(row({1e6f, -1e6f}), 19, "", false);
  EXPECT_EQ(infinite.real(0), INFINITY);
  EXPECT_EQ(infinite.real(1), -INFINITY);
}

TEST(Cast, SmallIntegersKeepTheLowBits) {
  const Array y = cast_of(row({-9, 7.9f, 8, 17}), 22, "", true);
  ASSERT_EQ(y.dtype(), DType::i4);
  EXPECT_EQ(y.integer(0), 7);
  EXPECT_EQ(y.integer(1), 7);
  EXPECT_EQ(y.integer(2), -8);
  EXPECT_EQ(y.integer(3), 1);
}

}  // namespace
}  // namespace hone
