// The names that a file gives to input axes are labels only: whatever they are, the model is
// imported, compiled, run, saved and loaded.
#include "plan/plan_file.h"
#include "test/compile/models.h"
#include "test/import/support.h"

namespace hone {
namespace {

using namespace test;

Imported import_of(ModelBuilder& b) {
  TempDirectory directory;
  std::string bytes;
  b.model.SerializeToString(&bytes);
  return import_onnx(directory.write("model.onnx", bytes), {});
}

Source source_of(Imported imported) {
  return {"names", {{{}, std::move(imported.variants.at(0).function)}}, {}};
}

Array counted(std::vector<std::int64_t> dims) {
  Array a = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i % 7 - 3));
  return a;
}

// Compiled and read back from a file, the model gives the same results as the interpreter.
void expect_runs(const Source& source, const std::vector<std::vector<Array>>& inputs) {
  EmptyCache cache;
  const fs::path file = cache.directory() / "names.hone";
  const Plan compiled = compile(source, {.strategy = "cpu"});
  write_plan(file, compiled);
  for (bool from_file : {false, true}) {
    auto plan = std::make_shared<const Plan>(from_file ? read_plan(file) : compiled);
    std::unique_ptr<Session> session = session_of(plan);
    for (const std::vector<Array>& x : inputs)
      expect_close(session->run(x), evaluate(source.variants[0].function, x), "output");
  }
}

// Loops over both axes, sums over each, and positions divided by the second axis.
void fill(ModelBuilder& b, const std::string& first, const std::string& second) {
  b.input("x", DType::f32, {first, second});
  b.ints("flat", {-1});
  b.ints("zero", {0});
  b.ints("one", {1});
  b.node("Transpose", {"x"}, {"t"});
  b.node("MatMul", {"x", "t"}, {"product"});
  b.node("Softmax", {"t"}, {"soft"});
  b.node("ReduceSum", {"x", "zero"}, {"columns"});
  b.node("ReduceSum", {"x", "one"}, {"rows"});
  b.node("Reshape", {"soft", "flat"}, {"list"});
  for (const char* name : {"product", "columns", "rows", "list"}) b.output(name);
}

TEST(Names, OfAxesMaySpellAnything) {
  const std::string names[][2] = {{"loop.0", "reg.0"},
                                  {"reg.1", "loop.1"},
                                  {"loop:0", "reg:0"},
                                  {"a b", "a+b*2"},
                                  {"min(n,4)", "max"},
                                  {"", "n.m.0"},
                                  {"\"\\\n", "%0"},
                                  {"caf\xc3\xa9", "../../n"},
                                  {std::string(10240, 'n'), std::string(10240, '.')}};
  for (const auto& [first, second] : names) {
    SCOPED_TRACE(first.substr(0, 20) + " and " + second.substr(0, 20));
    ModelBuilder b;
    fill(b, first, second);
    expect_runs(source_of(import_of(b)), {{counted({3, 5})}, {counted({17, 2})}});
  }
}

// Data-dependent sizes are named after their node.
TEST(Names, OfMeasuredSizesDoNotMeetThoseOfAxes) {
  for (const char* node : {"loop.0", "reg.0", "loop", ""}) {
    SCOPED_TRACE(node);
    ModelBuilder b;
    b.input("x", DType::f32, {cat(node, ".n")});
    b.node("NonZero", {"x"}, {"where"}).set_name(node);
    b.node("GatherND", {"x", "pairs"}, {"y"});
    onnx_pb::Graph& g = *b.model.mutable_graph();
    ModelBuilder::add(g, "Transpose", {"where"}, {"pairs"});
    std::swap(*g.mutable_node(1), *g.mutable_node(2));
    b.output("y");
    expect_runs(source_of(import_of(b)), {{counted({9})}, {counted({40})}});
  }
}

}  // namespace
}  // namespace hone
