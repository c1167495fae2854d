// hone check: reports everything that is wrong with a model at once.
#include "import/onnx/check.h"

#include "test/import/support.h"

namespace hone {
namespace {

ModelCheck check(const ModelBuilder& b, const ImportOptions& options = {}) {
  std::ofstream(b.directory() / "test.onnx", std::ios::binary) << b.bytes();
  return check_onnx(b.directory() / "test.onnx", options);
}

int holding(const std::vector<std::string>& lines, const std::vector<std::string>& words) {
  int n = 0;
  for (const std::string& line : lines) {
    bool all = true;
    for (const std::string& w : words) all = all && line.find(w) != line.npos;
    n += all;
  }
  return n;
}

TEST(Check, AGoodModelIsFineAndItsOpenSizesAreNamed) {
  ModelBuilder b;
  b.input("x", DType::f32, {"batch", "3", ""});
  b.input("y", DType::f32, {"batch", "3", ""});
  b.node("Relu", {"x"}, {"r"});
  b.output("r");
  const ModelCheck c = check(b);
  EXPECT_TRUE(c.ok());
  ASSERT_EQ(c.outputs.size(), 1U);
  EXPECT_EQ(c.outputs[0].name, "r");
  EXPECT_EQ(c.outputs[0].types, std::vector<std::string>{"f32[batch,3,x_d2]"});
  ASSERT_EQ(c.open_sizes.size(), 3U);
  EXPECT_EQ(c.open_sizes[0].name, "batch");
  EXPECT_EQ(c.open_sizes[0].inputs, (std::vector<std::string>{"x axis 0", "y axis 0"}));
  EXPECT_EQ(c.open_sizes[1].name, "x_d2");
  EXPECT_FALSE(c.open_sizes[0].given);
  EXPECT_EQ(holding(c.warnings, {"1 input", "'y'", "not used"}), 1);
  EXPECT_EQ(c.opsets, std::vector<std::string>{"ai.onnx 21"});
  ImportOptions options;
  options.dims["batch"] = {1, 64};
  options.dims["x_d2"] = {4, 4};
  const ModelCheck bounded = check(b, options);
  ASSERT_EQ(bounded.open_sizes.size(), 2U);
  EXPECT_EQ(bounded.open_sizes[0].high, 64);
  EXPECT_TRUE(bounded.open_sizes[0].given);
}

TEST(Check, ManyProblemsAreOneReportEachOnce) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.input("i", DType::i64, {"4"});
  b.input("k", DType::i64, {"6"});
  b.node("Frobnicate", {"x"}, {"a"});                     // 0: no such operator
  b.node("Add", {"x", "nowhere"}, {"b"});                 // 1: undefined
  b.node("Add", {"x", "i"}, {"c"});                       // 2: types differ
  b.node("Relu", {"e"}, {"d"});                           // 3: a cycle with 4
  b.node("Relu", {"d"}, {"e"});                           // 4
  b.node("Relu", {"x"}, {"c"});                           // 5: c again
  b.node("Relu", {"a"}, {"after"});                       // 6: follows from 0
  set_int(b.node("Softmax", {"x"}, {"s"}), "colour", 3);  // 7: an unknown attribute
  b.node("Unsqueeze", {"x", "k"}, {"t"});                 // 8: many axes from data
  b.output("after");
  b.output("missing");
  const ModelCheck c = check(b);
  EXPECT_FALSE(c.ok());
  EXPECT_EQ(holding(c.unsupported, {"node 0", "Frobnicate", "ai.onnx opset 21"}), 1);
  EXPECT_EQ(holding(c.wrong, {"node 1", "'nowhere'", "not an input or initializer"}), 1);
  EXPECT_EQ(holding(c.wrong, {"node 2"}), 1);
  EXPECT_EQ(holding(c.wrong, {"node 3", "cycle", "node 4"}), 1);
  EXPECT_EQ(holding(c.wrong, {"node 5", "'c'", "twice"}), 1);
  EXPECT_EQ(holding(c.wrong, {"graph output 'missing'"}), 1);
  EXPECT_EQ(holding(c.unsupported, {"node 7", "colour"}) + holding(c.wrong, {"node 7", "colour"}),
            1);
  EXPECT_EQ(holding(c.data_dependent, {"node 8"}), 1);
  EXPECT_EQ(c.left_out, 2) << "nodes 4 and 6";
}

// The importer takes only the branch that a constant condition selects; the check inspects the
// other one too.
TEST(Check, BranchesThatNoReadingTakesAreLookedAt) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.constant("yes", Array::scalar_int(1, DType::b1));
  onnx_pb::Node& choice = b.node("If", {"yes"}, {"y"});
  onnx_pb::Graph& yes = set_graph(choice, "then_branch");
  ModelBuilder::add(yes, "Relu", {"x"}, {"a"});
  yes.add_output()->set_name("a");
  onnx_pb::Graph& no = set_graph(choice, "else_branch");
  ModelBuilder::add(no, "Relu", {"lost"}, {"x"});
  no.add_output()->set_name("x");
  b.output("y");
  const ModelCheck c = check(b);
  EXPECT_EQ(holding(c.wrong, {"node 0", "else_branch", "'lost'"}), 1);
  EXPECT_EQ(c.wrong.size(), 1U);
  EXPECT_EQ(holding(c.warnings, {"else_branch", "'x' hides"}), 1);
}

TEST(Check, WhatDataDecidesIsNamed) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.input("choose", DType::b1, {});
  onnx_pb::Node& choice = b.node("If", {"choose"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx_pb::Graph& g = set_graph(choice, branch);
    ModelBuilder::add(g, branch[0] == 't' ? "Relu" : "Neg", {"x"}, {"a"});
    g.add_output()->set_name("a");
  }
  b.output("y");
  const ModelCheck c = check(b);
  EXPECT_TRUE(c.ok());
  EXPECT_EQ(holding(c.decided_by_data, {"(If)", "which branch"}), 1);
}

TEST(Check, ExternalDataAndDeclaredTypes) {
  ModelBuilder b;
  b.input("x", DType::f32, {"4"});
  b.constant("w", reals({4}, {1, 2, 3, 4}));
  onnx_pb::Tensor* w = b.model.mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->set_data_location(1);
  auto* location = w->add_external_data();
  location->set_key("location");
  location->set_value("gone.bin");
  b.node("Add", {"x", "w"}, {"y"});
  b.output("y");
  const ModelCheck gone = check(b);
  EXPECT_EQ(holding(gone.wrong, {"'w'", "gone.bin"}), 1);
  EXPECT_EQ(gone.left_out, 1);
  std::ofstream(b.directory() / "gone.bin") << "short";
  EXPECT_EQ(holding(check(b).wrong, {"'w'", "past the end"}), 1);
  std::ofstream(b.directory() / "gone.bin") << std::string(16, '\0');
  EXPECT_TRUE(check(b).ok());
  ModelBuilder::fill(b.model.mutable_graph()->mutable_output(0), "y", DType::i64, {"4"});
  const ModelCheck declared = check(b);
  EXPECT_TRUE(declared.ok());
  EXPECT_EQ(holding(declared.warnings, {"output 'y'", "f32[4]", "declares i64[4]"}), 1);
}

TEST(Check, OutputsThatAreNotWhatTheFileDeclares) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "4"});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  const auto contradictions = [&](DType t, const std::vector<std::string>& sizes,
                                  const ImportOptions& options = {}) {
    onnx_pb::ValueInfo* y = b.model.mutable_graph()->mutable_output(0);
    y->Clear();
    ModelBuilder::fill(y, "y", t, sizes);
    return b.import(options).contradictions;
  };
  EXPECT_TRUE(contradictions(DType::f32, {"n", "4"}).empty());
  EXPECT_TRUE(contradictions(DType::f32, {"other", "4"}).empty());
  EXPECT_TRUE(contradictions(DType::f32, {"3", "4"}).empty()) << "n may be 3";
  EXPECT_EQ(holding(contradictions(DType::f32, {"n", "5"}), {"'y' is f32[n,4]", "f32[n,5]"}), 1);
  EXPECT_EQ(holding(contradictions(DType::f32, {"4"}), {"'y' is f32[n,4]", "f32[4]"}), 1);
  EXPECT_EQ(holding(contradictions(DType::i32, {"n", "4"}), {"'y' is f32[n,4]", "i32[n,4]"}), 1);
  const ImportOptions given = {.shapes = {{"x", {2, 4}}}};
  EXPECT_TRUE(contradictions(DType::f32, {"3", "4"}, given).empty()) << "sizes are given";
  EXPECT_EQ(contradictions(DType::f32, {"4"}, given).size(), 1u);
}

// ONNX's shape inference counts the window that begins in the padding, and files declare that.
TEST(Check, APoolMayDeclareAWindowInThePadding) {
  const auto contradictions = [](std::int64_t stride) {
    ModelBuilder b;
    b.input("x", DType::f32, {"1", "2", "8", "6"});
    onnx_pb::Node& pool = b.node("MaxPool", {"x"}, {"y"});
    set_ints(pool, "kernel_shape", {1, 3});
    set_ints(pool, "strides", {stride, stride});
    set_int(pool, "ceil_mode", 1);
    b.output("y");
    ModelBuilder::fill(b.model.mutable_graph()->mutable_output(0), "y", DType::f32,
                       {"1", "2", "4", "2"});
    return b.import().contradictions;
  };
  EXPECT_TRUE(contradictions(3).empty()) << "3 rows";
  EXPECT_EQ(contradictions(1).size(), 1u);
}

TEST(Check, AgreesWithImportOnRealModels) {
  for (const auto& path : real_models()) {
    SCOPED_TRACE(path.string());
    EXPECT_TRUE(check_onnx(path).ok());
  }
}

TEST(Check, NoiseIsOneProblem) {
  ModelBuilder b;
  b.directory();
  const auto path = b.directory() / "noise.onnx";
  std::ofstream(path) << "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  const ModelCheck c = check_onnx(path);
  EXPECT_EQ(c.wrong.size(), 1U);
  EXPECT_THROW(check_onnx(b.directory() / "absent.onnx"), UserError);
}

}  // namespace
}  // namespace hone
