// Graphs inside a model: branches of If, chosen by data or by sizes, and functions of the model.
#include "import/import.h"
#include "support.h"

namespace hone {
namespace {

// ==== If

ModelBuilder data_if() {
  ModelBuilder b;
  b.input("x", DType::f32, {"n"});
  b.input("c", DType::b1, {});
  b.ints("weights", {1});
  onnx_pb::Node& n = b.node("If", {"c"}, {"y", "z"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  ModelBuilder::add(yes, "Neg", {"x"}, {"a"});
  ModelBuilder::add(yes, "Add", {"x", "x"}, {"b"});
  ModelBuilder::add(no, "Identity", {"x"}, {"a2"});
  ModelBuilder::add(no, "Mul", {"x", "x"}, {"b2"});
  for (const char* o : {"a", "b"}) yes.add_output()->set_name(o);
  for (const char* o : {"a2", "b2"}) no.add_output()->set_name(o);
  b.output("y");
  b.output("z");
  return b;
}

TEST(If, OnDataIsControlFlowOverWhatItCaptures) {
  ModelBuilder b = data_if();
  Imported m = b.import();
  const Function& f = m.variants.at(0).function;
  EXPECT_TRUE(f.result(0).is(ops::if_else));
  EXPECT_EQ(f.result(0).operand_count(), 2u);  // the condition, and x once for both branches
  Array x = reals({2}, {3, 4});
  auto yes = evaluate(f, {{x, Array::scalar_int(1, DType::b1)}});
  auto no = evaluate(f, {{x, Array::scalar_int(0, DType::b1)}});
  EXPECT_EQ(yes[0], reals({2}, {-3, -4}));
  EXPECT_EQ(yes[1], reals({2}, {6, 8}));
  EXPECT_EQ(no[0], x);
  EXPECT_EQ(no[1], reals({2}, {9, 16}));
}

TEST(If, OnSizesIsChosenByVariant) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n", "2"});
  b.node("Shape", {"x"}, {"s"});
  b.constant("zero", Array::scalar_int(0, DType::i64));
  b.constant("one", Array::scalar_int(1, DType::i64));
  b.node("Gather", {"s", "zero"}, {"n"});
  b.node("Equal", {"n", "one"}, {"c"});
  onnx_pb::Node& n = b.node("If", {"c"}, {"y"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  set_ints(ModelBuilder::add(yes, "Constant", {}, {"axes"}), "value_ints", {0});
  ModelBuilder::add(yes, "Squeeze", {"x", "axes"}, {"a"});
  ModelBuilder::add(no, "Identity", {"x"}, {"a2"});
  yes.add_output()->set_name("a");
  no.add_output()->set_name("a2");
  b.output("y");
  Imported m = b.import();
  ASSERT_EQ(m.variants.size(), 2u);
  EXPECT_EQ(cat(m.variants[0].assumptions.at(0).condition), "equal(1,n)");
  EXPECT_EQ(m.variants[0].function.result(0).rank(), 1);
  EXPECT_EQ(m.variants[1].function.result(0).rank(), 2);
}

// A branch that is invalid for these sizes contains `refuse` with the reason; the other one works.
TEST(If, ABranchThatCannotBeTypedIsRefusedWhenTaken) {
  ModelBuilder b = data_if();
  onnx_pb::Graph* yes = b.model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  b.input("w", DType::f32, {"3", "3"});
  *yes->mutable_node(0) = {};
  yes->mutable_node(0)->set_op_type("MatMul");
  for (const char* i : {"w", "pair"}) yes->mutable_node(0)->add_input(i);
  yes->mutable_node(0)->add_output("a");
  b.constant("pair", reals({2, 2}, {1, 2, 3, 4}));
  Imported m = b.import();
  ASSERT_EQ(m.warnings.size(), 1u);
  expect_contains(
      m.warnings[0],
      "one branch of an If is invalid, and a run that takes it fails: node 0 'a' (MatMul): ");
  const Function& f = m.variants.at(0).function;
  Array x = reals({1}, {3}), w = Array::zeros(DType::f32, {3, 3});
  EXPECT_EQ(evaluate(f, {{x, Array::scalar_int(0, DType::b1), w}})[1], reals({1}, {9}));
  try {
    evaluate(f, {{x, Array::scalar_int(1, DType::b1), w}});
    ADD_FAILURE() << "the refused branch was run";
  } catch (const UserError& e) {
    expect_contains(e.what(), "a branch that is invalid for these sizes was taken");
  }
}

TEST(If, BranchesOfAnotherTypeAreRefused) {
  ModelBuilder b = data_if();
  onnx_pb::Graph* no = b.model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g();
  no->mutable_node(0)->set_op_type("Cast");
  set_int(*no->mutable_node(0), "to", 7);
  expect_contains(b.failure(), "output 0 is f32[n] in then_branch and i64[n] in else_branch");
  ModelBuilder fewer = data_if();
  fewer.model.mutable_graph()
      ->mutable_node(0)
      ->mutable_attribute(1)
      ->mutable_g()
      ->mutable_output()
      ->RemoveLast();
  expect_contains(fewer.failure(), "then_branch has 2 outputs and else_branch 1");
}

// Sizes that may differ but must be known before a run are checked in the branch that is taken.
TEST(If, BranchesWhoseSizesMustBeKnownAgreeOrFailWhenTaken) {
  ModelBuilder b;
  const auto matrix = [](std::int64_t n, const std::vector<std::int64_t>& values) {
    return Array::of<std::int64_t>(DType::i64, {n, n}, values);
  };
  b.input("w", DType::i64, {"m", "m"});
  b.input("c", DType::b1, {});
  b.constant("k", matrix(2, {0, 1, 1, 0}));
  b.constant("x", reals({3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  onnx_pb::Node& n = b.node("If", {"c"}, {"matrix"});
  for (auto [branch, from] : {std::pair("then_branch", "k"), std::pair("else_branch", "w")}) {
    onnx_pb::Graph& g = set_graph(n, branch);
    ModelBuilder::add(g, "Neg", {from}, {cat(from, "neg")});
    g.add_output()->set_name(cat(from, "neg"));
  }
  b.node("GatherND", {"x", "matrix"}, {"y"});  // needs a known number of columns
  b.output("y");
  const Array two = matrix(2, {0, 0, 1, 1}), three = matrix(3, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const Array yes = Array::scalar_int(1, DType::b1), no = Array::scalar_int(0, DType::b1);
  EXPECT_EQ(b.run({two, no})[0], reals({2}, {0, 8}));
  EXPECT_EQ(b.run({three, yes})[0], reals({2}, {2, 6}));
  EXPECT_THROW(b.run({three, no}), UserError);
}

TEST(If, FortyDeepIsRead) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  b.constant("c", Array::scalar_int(1, DType::b1));
  std::function<void(onnx_pb::Graph&, int)> nest = [&](onnx_pb::Graph& g, int depth) {
    std::string out = cat("y", depth);
    if (depth == 0) {
      ModelBuilder::add(g, "Neg", {"x"}, {out});
    } else {
      onnx_pb::Node& n = ModelBuilder::add(g, "If", {"c"}, {out});
      nest(set_graph(n, "then_branch"), depth - 1);
      nest(set_graph(n, "else_branch"), 0);
    }
    g.add_output()->set_name(out);
  };
  nest(*b.model.mutable_graph(), 20);
  EXPECT_EQ(b.run({reals({2}, {1, 2})})[0], reals({2}, {-1, -2}));
  ModelBuilder deep;
  deep.input("x", DType::f32, {"2"});
  nest(*deep.model.mutable_graph(), 40);  // 3 messages per level: more than 64
  expect_contains(deep.failure(), "nested more than 64 levels deep");
}

// Only a run knows whether there is an element, so the model may ask for it, and take it if there
// is one.
TEST(If, AnOptionalThatOneBranchLeavesEmpty) {
  ModelBuilder b;
  b.input("x", DType::f32, {"n"});
  b.input("c", DType::b1, {});
  onnx_pb::Node& n = b.node("If", {"c"}, {"o"});
  onnx_pb::Graph &yes = set_graph(n, "then_branch"), &no = set_graph(n, "else_branch");
  ModelBuilder::add(yes, "Optional", {"x"}, {"a"});
  ModelBuilder::add(no, "Optional", {}, {"a2"});
  yes.add_output()->set_name("a");
  no.add_output()->set_name("a2");
  b.node("OptionalHasElement", {"o"}, {"has"});
  onnx_pb::Node& reader = b.node("If", {"has"}, {"y"});
  onnx_pb::Graph &there = set_graph(reader, "then_branch"),
                 &missing = set_graph(reader, "else_branch");
  ModelBuilder::add(there, "OptionalGetElement", {"o"}, {"e"});
  ModelBuilder::add(missing, "Add", {"x", "x"}, {"e2"});
  there.add_output()->set_name("e");
  missing.add_output()->set_name("e2");
  b.output("y");
  b.output("has");
  const Array x = reals({2}, {3, 4}), t = Array::scalar_int(1, DType::b1),
              f = Array::scalar_int(0, DType::b1);
  EXPECT_EQ(b.run({x, t}), (std::vector{x, t}));
  EXPECT_EQ(b.run({x, f}), (std::vector{reals({2}, {6, 8}), f}));

  // Reads it without asking: a run without an element is refused.
  b.node("OptionalGetElement", {"o"}, {"z"});
  b.output("z");
  EXPECT_EQ(b.run({x, t})[2], x);
  try {
    b.run({x, f});
    ADD_FAILURE() << "an element that is not there was read";
  } catch (const UserError& e) {
    expect_contains(e.what(), "the number of elements missing in the optional is 1, expected 0");
  }

  b.output("o");
  expect_contains(b.failure(), "only a run tells whether the optional holds an element");
}

// ==== functions of the model

TEST(LocalFunctions, AreInlinedWithTheirAttributes) {
  ModelBuilder b;
  b.input("x", DType::f32, {"3"});
  b.model.add_opset_import()->set_domain("own");
  onnx_pb::Function* f = b.model.add_functions();
  f->set_name("Leak");
  f->set_domain("own");
  f->add_input("v");
  f->add_output("w");
  f->add_attribute("slope");
  f->add_opset_import()->set_version(16);
  onnx_pb::Node* n = f->add_node();
  n->set_op_type("LeakyRelu");
  n->add_input("v");
  n->add_output("w");
  onnx_pb::Attribute* a = n->add_attribute();
  a->set_name("alpha");
  a->set_ref_attr_name("slope");
  a->set_type(1);
  set_real(b.node("Leak", {"x"}, {"y"}), "slope", 0.5f);
  b.model.mutable_graph()->mutable_node(0)->set_domain("own");
  b.node("Leak", {"x"}, {"z"}).set_domain("own");  // absent: the operator's own default, 0.01
  b.output("y");
  b.output("z");
  auto out = b.run({reals({3}, {-2, 0, 2})});
  EXPECT_EQ(out[0], reals({3}, {-1, 0, 2}));
  EXPECT_EQ(out[1], reals({3}, {-0.02f, 0, 2}));
  Imported m = b.import();
  expect_contains(origins_text(m.variants[0].function.result(0)), "'Leak_0' (Leak)");
}

TEST(LocalFunctions, RecursionAndBombsAreRefused) {
  ModelBuilder b;
  b.input("x", DType::f32, {"2"});
  auto function = [&](const std::string& name, const std::vector<std::string>& calls) {
    onnx_pb::Function* f = b.model.add_functions();
    f->set_name(name);
    f->set_domain("own");
    f->add_input("v0");
    f->add_opset_import()->set_version(16);
    int i = 0;
    for (const std::string& op : calls) {
      onnx_pb::Node* n = f->add_node();
      n->set_op_type(op);
      if (op != "Relu") n->set_domain("own");
      n->add_input(cat("v", i++));
      n->add_output(cat("v", i));
    }
    f->add_output(cat("v", i));
  };
  function("Self", {"Self"});
  b.node("Self", {"x"}, {"y"}).set_domain("own");
  b.output("y");
  expect_contains(b.failure(), "nested more than 64 deep; does one call itself?");

  b.model.clear_functions();
  function("F0", {"Relu", "Relu"});
  for (int i = 1; i <= 40; ++i) function(cat("F", i), {cat("F", i - 1), cat("F", i - 1)});
  b.model.mutable_graph()->mutable_node(0)->set_op_type("F40");  // 2^41 nodes
  ImportOptions options;
  options.most_nodes = 10'000;
  expect_contains(b.failure(options), "the model has more than 10000 nodes");
}

}  // namespace
}  // namespace hone
