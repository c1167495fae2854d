// The check itself: what it judges, once or alone, and what it leaves open.
#include "optimize/second_reading.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "api/compiler.h"
#include "test/cli/second_reading_nodes.h"
#include "test/import/support.h"
#include "test/onnx/suite.h"
#include "verify/onnx/alone.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using namespace test;

TEST(SecondReading, NoticesTheSignOfAZeroOfAnInitializer) {
  const std::vector<float> zeros = {0.0f, -0.0f};
  onnx::Model model;
  model.opsets = {{"", 18}};
  onnx::Tensor t;
  t.name = "w";
  t.data_type = 1;
  t.dims = {2};
  t.raw = std::as_bytes(std::span(zeros));
  model.graph.emplace().initializers.push_back(t);
  for (const double second : {-0.0, 0.0}) {
    const onnx::Numbers got{DType::f32, {2}, {0.0, second}};
    const auto checked = onnx::check_reading(model, [&](std::string_view) { return &got; });
    EXPECT_EQ(checked.wrong.empty(), std::signbit(second)) << checked.wrong;
  }
}

// Unknown operators, attributes and values are not judged.
TEST(SecondReading, LeavesOutWhatIsNotKnown) {
  const NodeValues values = {{"x", {DType::f32, {1}, {1}}}, {"y", {DType::f32, {1}, {5}}}};
  EXPECT_EQ(check_node(node("NoSuchOperator", {"x"}), values).judged.size(), 0);
  EXPECT_EQ(
      check_node(node("Relu", {"x"}, {integers("no_such_attribute", {1})}), values).judged.size(),
      0);
  EXPECT_EQ(check_node(node("Relu", {"z"}), values).judged.size(), 0);
}

SecondReading reading_of(const ModelBuilder& b) {
  const fs::path file = b.directory() / "test.onnx";
  return read_again(file, {}, hone::source(b.import()));
}

void expect_all_judged(const ModelBuilder& b, const std::string& what) {
  const SecondReading r = reading_of(b);
  EXPECT_EQ(r.wrong, "") << what;
  EXPECT_EQ(r.judged, r.nodes) << what;
  EXPECT_GT(r.nodes, 0) << what;
}

// Windows of padding alone, and windows that other sizes would make smaller than their padding.
TEST(SecondReading, JudgesWindowsInThePadding) {
  struct Case {
    std::vector<std::string> x, w;
    std::vector<std::int64_t> pads;
  };
  const Case cases[] = {{{"1", "1", "28", "28"}, {"6", "1", "5", "5"}, {2, 2, 2, 2}},
                        {{"1", "3", "8", "8"}, {"8", "3", "1", "1"}, {1, 1, 1, 1}},
                        {{"1", "16", "32"}, {"16", "16", "3"}, {0, 2}},
                        {{"2", "4", "10", "15"}, {"6", "4", "3", "3"}, {1, 1, 3, 2}},
                        {{"1", "2", "4", "4", "4"}, {"3", "2", "1", "1", "1"}, {1, 1, 1, 1, 1, 1}}};
  for (const char* op : {"Conv", "ConvInteger"})
    for (const Case& c : cases) {
      const DType t = std::string(op) == "Conv" ? DType::f32 : DType::u8;
      ModelBuilder b;
      b.input("x", t, c.x);
      b.input("w", t, c.w);
      set_ints(b.node(op, {"x", "w"}, {"y"}), "pads", c.pads);
      b.output("y");
      expect_all_judged(b, cat(op, " of ", c.x.size(), " axes"));
    }
}

// NaN in the middle of a model: pages do not speak of it.
TEST(SecondReading, LeavesOpenWhatDependsOnNaN) {
  for (const char* op : {"Sign", "Celu", "Relu", "ArgMax", "Hardmax", "Clip", "HardSigmoid",
                         "QuantizeLinear", "TopK", "Max", "Greater", "ReduceMin", "Softmax"}) {
    ModelBuilder b;
    b.input("x", DType::f32, {"7"});
    b.node("Log", {"x"}, {"a"});
    std::vector<std::string> inputs = {"a"}, outputs = {"y"};
    const std::string name = op;
    if (name == "QuantizeLinear" || name == "Max" || name == "Greater") inputs.push_back("x");
    if (name == "TopK") {
      b.ints("k", {3});
      inputs.push_back("k");
      outputs.push_back("i");
    }
    if (name == "QuantizeLinear") {
      b.constant("s", Array::scalar(0.1, DType::f32));
      inputs[1] = "s";
    }
    b.node(op, inputs, outputs);
    for (const std::string& o : outputs) b.output(o);
    expect_all_judged(b, op);
  }
}

// But what does not depend on it is judged.
TEST(SecondReading, NoticesAWrongResultBesideNaN) {
  const double nan = std::nan("");
  NodeValues values = {{"a", {DType::f32, {3}, {1, nan, 2}}},
                       {"b", {DType::f32, {3}, {3, 4, 0}}},
                       {"y", {DType::f32, {3}, {3, 4, 2}}}};
  const onnx::Node max = node("Max", {"a", "b"});
  EXPECT_EQ(check_node(max, values).wrong, "");
  values.at("y").values[1] = nan;
  EXPECT_EQ(check_node(max, values).wrong, "");
  values.at("y").values[2] = 0;
  EXPECT_NE(check_node(max, values).wrong, "");
  values.at("y") = {DType::f32, {3}, {1, 7, 2}};  // moved, not computed
  values.at("y").values[1] = 7;
  EXPECT_NE(check_node(node("Identity", {"a"}), values).wrong, "");
}

// Rounding alone decides what is left of a group of equal numbers.
TEST(SecondReading, LeavesOpenWhatRoundingDecides) {
  const double third = 1.0f / 3;
  NodeValues values = {{"x", {DType::f32, {1, 3}, {third, third, third}}},
                       {"s", {DType::f32, {3}, {1, 1, 1}}},
                       {"y", {DType::f32, {1, 3}, {1e-3, 0, -1e-3}}}};
  const onnx::Node norm = node("LayerNormalization", {"x", "s"}, {real("epsilon", 0)});
  EXPECT_EQ(check_node(norm, values).wrong, "");
  EXPECT_EQ(check_node(norm, values).judged.size(), 0);
  values.at("x").values[1] = 1;
  EXPECT_NE(check_node(norm, values).wrong, "");
  ModelBuilder b(13);
  b.input("x", DType::f32, {"2", "3", "4", "4"});
  b.constant("z", Array::scalar(0, DType::f32));
  b.node("Mul", {"x", "z"}, {"a"});
  b.node("MeanVarianceNormalization", {"a"}, {"y"});
  b.output("y");
  expect_all_judged(b, "MeanVarianceNormalization of zeros");
}

// A large integer stands for others, what is cast may have been rounded before, an interpolated
// integer is as precise as f32, and a tiny number may have become zero.
TEST(SecondReading, LeavesOpenWhatItsNumbersDoNotHold) {
  const DType f = DType::f32, i = DType::i64;
  const double large = onnx::most_whole;
  const std::vector<Example> agree = {
      {node("Mod", {"a", "b"}),
       {{"a", {i, {2}, {large, 7}}}, {"b", {i, {1}, {2}}}, {"y", {i, {2}, {0, 1}}}}},
      {node("BitwiseXor", {"a", "b"}),
       {{"a", {i, {2}, {-large, 5}}}, {"b", {i, {2}, {-large, 3}}}, {"y", {i, {2}, {1024, 6}}}}},
      {node("Cast", {"x"}, {integer("to", 6)}),
       {{"x", {i, {2}, {large, 3}}}, {"y", {DType::i32, {2}, {-1, 3}}}}},
      {node("Cast", {"x"}, {integer("to", 7)}),
       {{"x", {f, {2}, {-1.9999999945, 2.5}}}, {"y", {i, {2}, {-2, 2}}}}},
      {node("Resize", {"x", "", "s"}, {text("mode", "linear")}),
       {{"x", {DType::i32, {2}, {500'000'001, 500'000'003}}},
        {"s", {f, {1}, {2}}},
        {"y", {DType::i32, {4}, {500'000'000, 500'000'000, 500'000'000, 500'000'000}}}}},
      {node("Pow", {"a", "b"}),
       {{"a", {f, {1}, {0.5}}}, {"b", {f, {1}, {200}}}, {"y", {f, {1}, {0}}}}},
      {node("Slice", {"x", "s", "e", "a", "t"}),
       {{"x", {f, {0}, {}}},
        {"s", {i, {1}, {-2}}},
        {"e", {i, {1}, {2}}},
        {"a", {i, {1}, {0}}},
        {"t", {i, {1}, {-1}}},
        {"y", {f, {0}, {}}}}}};
  for (const Example& e : agree) EXPECT_EQ(check_node(e.node, e.values).wrong, "") << e.node.op;
  // What is known is still judged.
  std::vector<Example> wrong(agree.begin(), agree.begin() + 4);
  wrong[0].values["y"].values[1] = 0;
  wrong[1].values["y"].values[1] = 7;
  wrong[2].values["y"].values[1] = 4;
  wrong[3].values["y"].values[1] = 3;
  for (const Example& e : wrong) EXPECT_NE(check_node(e.node, e.values).wrong, "") << e.node.op;
}

TEST(SecondReading, JudgesEqualNodesOnceInLongModels) {
  ModelBuilder b;
  b.input("v0", DType::f32, {"4"});
  const int n = 6000;
  for (int i = 0; i < n; ++i) b.node(i % 2 ? "Relu" : "Neg", {cat("v", i)}, {cat("v", i + 1)});
  b.output(cat("v", n));
  const SecondReading r = reading_of(b);
  EXPECT_EQ(r.wrong, "");
  EXPECT_EQ(r.judged, n);
  EXPECT_EQ(r.alone + r.equal, n);
  EXPECT_LE(r.alone, 2);
  EXPECT_EQ(r.limit, "");
}

TEST(SecondReading, NamesOperatorsThatItDoesNotKnow) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.node("RandomNormalLike", {"x"}, {"a"});
  b.node("Add", {"a", "x"}, {"y"});
  b.output("y");
  const SecondReading r = reading_of(b);
  EXPECT_EQ(r.unknown, std::vector<std::string>{"RandomNormalLike"});
  EXPECT_EQ(r.judged, 1);
}

// A size of 1 hides which axis the import uses as the default.
TEST(SecondReading, JudgesFlattenAtOtherSizesThanOne) {
  const onnx::MetNode met{node("Flatten", {"x"}), {{"", 18}}, {}};
  const onnx::SizedNode n{&met, {{{DType::f32, {1, 6}, {}}}}};
  EXPECT_TRUE(std::ranges::any_of(onnx::other_sizes(n), [](const onnx::SizeMap& m) {
    return m.of(1) != 1 && m.of(6) != 1 && m.of(1) != m.of(6);
  }));
  ModelBuilder b;
  b.input("x", DType::f32, {"1", "6"});
  b.node("Flatten", {"x"}, {"y"});
  b.output("y");
  const SecondReading r = reading_of(b);
  EXPECT_EQ(r.wrong, "");
  EXPECT_EQ(r.judged, 1);
}

TEST(SecondReading, JudgesAllResultsOfUnique) {
  for (const std::int64_t sorted : {0, 1}) {
    ModelBuilder b;
    b.input("x", DType::i64, {"12"});
    set_int(b.node("Unique", {"x"}, {"y", "firsts", "groups", "counts"}), "sorted", sorted);
    for (const char* name : {"y", "firsts", "groups", "counts"}) b.output(name);
    const SecondReading r = reading_of(b);
    EXPECT_EQ(r.wrong, "") << sorted;
    EXPECT_EQ(r.judged, 1) << sorted;
  }
}

TEST(SecondReading, JudgesEquationsOfEinsum) {
  struct Sum {
    std::string equation;
    std::vector<std::string> x, y;
  };
  for (const Sum& sum : {Sum{"ii", {"4", "4"}, {}}, Sum{"...ii->...i", {"2", "3", "3"}, {}},
                         Sum{"bij,jk", {"2", "3", "4"}, {"4", "2"}}, Sum{"ba", {"2", "3"}, {}},
                         Sum{"...ij,...jk", {"1", "2", "3"}, {"4", "3", "2"}}}) {
    ModelBuilder b;
    b.input("x", DType::f32, sum.x);
    if (!sum.y.empty()) b.input("y", DType::f32, sum.y);
    onnx_pb::Node& n =
        sum.y.empty() ? b.node("Einsum", {"x"}, {"z"}) : b.node("Einsum", {"x", "y"}, {"z"});
    set_text(n, "equation", sum.equation);
    b.output("z");
    const SecondReading r = reading_of(b);
    EXPECT_EQ(r.wrong, "") << sum.equation;
    EXPECT_EQ(r.judged, 1) << sum.equation;
  }
}

TEST(SecondReading, JudgesScanBackwardsAlongInnerAxes) {
  ModelBuilder b;
  b.input("s", DType::f32, {"4"});
  b.input("x", DType::f32, {"4", "4"});
  b.input("z", DType::f32, {"4", "4"});
  onnx_pb::Node& scan = b.node("Scan", {"s", "x", "z"}, {"last", "y"});
  set_int(scan, "num_scan_inputs", 2);
  set_ints(scan, "scan_input_axes", {1, 0});
  set_ints(scan, "scan_input_directions", {1, 0});
  set_ints(scan, "scan_output_axes", {1});
  set_ints(scan, "scan_output_directions", {1});
  onnx_pb::Graph& g = set_graph(scan, "body");
  for (const char* name : {"state", "a", "b"})
    ModelBuilder::fill(g.add_input(), name, DType::f32, {"4"});
  ModelBuilder::add(g, "Add", {"state", "a"}, {"sum"});
  ModelBuilder::add(g, "Sub", {"sum", "b"}, {"rest"});
  for (const char* name : {"sum", "rest"}) g.add_output()->set_name(name);
  for (const char* name : {"last", "y"}) b.output(name);
  const SecondReading r = reading_of(b);
  EXPECT_EQ(r.wrong, "");
  EXPECT_FALSE(r.left_out.contains("Scan"));
}

// 200 GFLOP, with nodes whose sizes may only shrink together, one at a time, or not at all.
TEST(SecondReading, JudgesNodesOfLargeModelsAlone) {
  ModelBuilder b;
  b.input("x", DType::f32, {"batch", "96", "200", "200"});
  b.input("w", DType::f32, {"480", "48", "3", "3"});
  b.input("v", DType::f32, {"480", "480", "11", "11"});
  b.input("m", DType::f32, {"1920", "1000"});
  b.input("yes", DType::b1, {});
  set_int(b.node("Conv", {"x", "w"}, {"groups"}), "group", 2);
  set_ints(b.node("Conv", {"groups", "v"}, {"window"}), "kernel_shape", {11, 11});
  b.ints("parts", {100, 380});
  set_int(b.node("Split", {"window", "parts"}, {"few", "many"}), "axis", 1);
  b.node("GlobalAveragePool", {"window"}, {"pool"});
  b.ints("heads", {0, 4, -1});
  b.node("Reshape", {"pool", "heads"}, {"reshaped"});
  b.node("Shape", {"pool"}, {"sizes"});
  b.ints("four", {4});
  b.ints("first", {0});
  b.node("Gather", {"sizes", "first"}, {"batch"});
  set_int(b.node("Concat", {"batch", "four", "four"}, {"target"}), "axis", 0);
  onnx_pb::Node& choice = b.node("If", {"yes"}, {"product"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx_pb::Graph& g = set_graph(choice, branch);
    ModelBuilder::add(g, std::string(branch) == "then_branch" ? "Abs" : "Neg", {"m"}, {"inner"});
    g.add_output()->set_name("inner");
  }
  for (const char* name : {"few", "many", "reshaped", "target", "product"}) b.output(name);
  const SecondReading r = reading_of(b);
  EXPECT_EQ(r.wrong, "");
  EXPECT_EQ(r.left_out, (std::map<std::string, int>{{"If", 1}}));
  EXPECT_EQ(r.nodes, 11);
  EXPECT_EQ(r.judged, 10);
  EXPECT_EQ(r.alone, 10);
}

// The fields that onnx.proto has beside raw_data.
TEST(SecondReading, ElementsInTypedFields) {
  const auto bytes = [](const auto& list) { return std::as_bytes(std::span(list)); };
  const float reals[] = {0.5f, -2};
  const double wide[] = {0.1, -0.0};
  const std::uint8_t varints[] = {0xac, 0x02, 0xff, 0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0xff, 0x01};  // 300, -1
  const std::uint8_t halves[] = {0x80, 0x78, 0x80, 0x80, 0x02};         // 0x3c00, 0x8000
  using Field = onnx::TypedData::Kind;
  struct Row {
    std::int32_t data_type;
    Field field;
    std::span<const std::byte> packed;
    onnx::Numbers numbers;
  };
  const Row rows[] = {{1, Field::f32, bytes(reals), {DType::f32, {2}, {0.5, -2}}},
                      {11, Field::f64, bytes(wide), {DType::f64, {2}, {0.1, -0.0}}},
                      {7, Field::i64, bytes(varints), {DType::i64, {2}, {300, -1}}},
                      {6, Field::i32, bytes(varints), {DType::i32, {2}, {300, -1}}},
                      {9, Field::i32, bytes(varints), {DType::b1, {2}, {1, 1}}},
                      {10, Field::i32, bytes(halves), {DType::f16, {2}, {1, -0.0}}}};
  for (const Row& r : rows) {
    onnx::Tensor t;
    t.data_type = r.data_type;
    t.dims = {2};
    t.typed = {{r.field, WireType::bytes, r.packed}};
    const auto got = onnx::numbers_of(t);
    ASSERT_TRUE(got) << r.data_type;
    EXPECT_EQ(got->dtype, r.numbers.dtype);
    EXPECT_EQ(got->values, r.numbers.values) << r.data_type;
    EXPECT_EQ(std::signbit(got->values[1]), std::signbit(r.numbers.values[1]));
    t.dims = {3};
    EXPECT_FALSE(onnx::numbers_of(t)) << "one is missing";
    t.dims = {2};
    t.data_type = r.data_type == 11 ? 1 : 11;
    EXPECT_FALSE(onnx::numbers_of(t)) << "another field holds them";
  }
  onnx::Tensor single;
  single.data_type = 7;
  single.typed = {{Field::i64, WireType::varint, {}, ~std::uint64_t{0}}};
  EXPECT_EQ(onnx::numbers_of(single)->values, std::vector<double>{-1});
}

TEST(SecondReading, AgreesWithTheImport) {
  std::vector<fs::path> models = {HONE_SOURCE_DIR "/examples/digits/digits.onnx"};
  for (const auto& e : fs::recursive_directory_iterator(HONE_SOURCE_DIR "/test/stored"))
    if (e.path().extension() == ".onnx") models.push_back(e.path());
  const fs::path cache = fs::path(HONE_BINARY_DIR) / "onnx_suite";
  if (const auto suite = conformance::find_suite(HONE_SOURCE_DIR, cache))
    for (const conformance::Case& c : conformance::list_cases(*suite)) models.push_back(c.model);
  int judged = 0, nodes = 0, alone = 0;
  for (const fs::path& m : models) {
    Source source;
    try {
      source = hone::source(import_onnx(m));
    } catch (const UserError&) {
      continue;
    }
    const SecondReading c = read_again(m, {}, source);
    EXPECT_EQ(c.wrong, "") << m;
    judged += c.judged;
    nodes += c.nodes;
    alone += c.alone;
  }
  RecordProperty("judged", judged);
  RecordProperty("nodes", nodes);
  RecordProperty("alone", alone);
  EXPECT_GT(judged, 500) << "of " << nodes;
}

}  // namespace
}  // namespace hone
