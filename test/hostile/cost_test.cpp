// Reading takes time proportional to the file size, whatever is wrong with the file: a file four
// times as large takes about four times as long; quadratic cost would take sixteen times. Best of
// three, so that a busy machine does not decide. test/cost counts instructions per node of good
// graphs.
#include <ctime>

#include "test/hostile/hostile.h"

namespace hone::hostile {
namespace {

constexpr double most_growth = 9;

double processor_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Shape {
  const char* name;
  void (*fill)(ModelBuilder&, int n);
  int size;
};

double seconds_of(const Shape& shape, int n) {
  const TempDirectory directory;
  ModelBuilder b;
  shape.fill(b, n);
  const fs::path file = directory.write("m.onnx", b.bytes());
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = processor_seconds();
    try {
      import_onnx(file);
    } catch (const UserError&) {
    }
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

void initializers(ModelBuilder& b, int n) {
  b.input("x", DType::f32, {"2"});
  for (int i = 0; i < n; ++i) b.constant(cat("w", i), reals({1}, {static_cast<float>(i)}));
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
}
void in_reverse(ModelBuilder& b, int n) {
  b.input("x0", DType::f32, {"2"});
  for (int i = n; i > 0; --i) b.node("Relu", {cat("x", i - 1)}, {cat("x", i)});
  b.output(cat("x", n));
}
void one_ring(ModelBuilder& b, int n) {
  for (int i = 0; i < n; ++i) b.node("Relu", {cat("x", i)}, {cat("x", (i + 1) % n)});
  b.output("x0");
}
void undefined(ModelBuilder& b, int n) {
  for (int i = 0; i < n; ++i) b.node("Relu", {cat("u", i)}, {cat("y", i)});
  b.output("y0");
}
void unknown_operators(ModelBuilder& b, int n) {
  b.input("x", DType::f32, {"2"});
  for (int i = 0; i < n; ++i) b.node(cat("Operator", i), {"x"}, {cat("y", i)});
  b.output("y0");
}
void inputs_of_own_sizes(ModelBuilder& b, int n) {
  for (int i = 0; i < n; ++i) b.input(cat("x", i), DType::f32, {cat("n", i)});
  b.node("Relu", {"x0"}, {"y"});
  b.output("y");
}
void outputs(ModelBuilder& b, int n) {
  b.input("x", DType::f32, {"2"});
  for (int i = 0; i < n; ++i) {
    b.node("Relu", {"x"}, {cat("y", i)});
    b.output(cat("y", i));
  }
}
void operands_of_one_node(ModelBuilder& b, int n) {
  b.input("x", DType::f32, {"2"});
  set_int(b.node("Concat", std::vector<std::string>(static_cast<std::size_t>(n), "x"), {"y"}),
          "axis", 0);
  b.output("y");
}
void attributes_of_one_node(ModelBuilder& b, int n) {
  b.input("x", DType::f32, {"2"});
  onnx_pb::Node& node = b.node("Relu", {"x"}, {"y"});
  for (int i = 0; i < n; ++i) set_int(node, cat("a", i), i);
  b.output("y");
}
void functions(ModelBuilder& b, int n) {
  b.input("x", DType::f32, {"2"});
  for (int i = 0; i < n; ++i) {
    onnx_pb::Function* f = b.model.add_functions();
    f->set_name("f");
    f->set_overload(cat(i));
    f->set_domain("local");
    f->add_input("a");
    f->add_output("a");
    b.node("f", {"x"}, {cat("y", i)}).set_domain("local");
    b.model.mutable_graph()->mutable_node(i)->set_overload(cat(i));
  }
  b.output("y0");
}

class Cost : public testing::TestWithParam<Shape> {};

TEST_P(Cost, IsLinearInTheFile) {
  const Shape& shape = GetParam();
  const double small = seconds_of(shape, shape.size), large = seconds_of(shape, 4 * shape.size);
  std::printf("%s: %.1f ms at %d, x%.1f at %d\n", shape.name, 1e3 * small, shape.size,
              large / small, 4 * shape.size);
  EXPECT_LT(large, most_growth * small);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Cost,
    testing::Values(Shape{"initializers", initializers, 5'000},
                    Shape{"in_reverse", in_reverse, 3'000}, Shape{"one_ring", one_ring, 5'000},
                    Shape{"undefined", undefined, 3'000},
                    Shape{"unknown_operators", unknown_operators, 3'000},
                    Shape{"inputs_of_own_sizes", inputs_of_own_sizes, 3'000},
                    Shape{"outputs", outputs, 5'000},
                    Shape{"operands_of_one_node", operands_of_one_node, 5'000},
                    Shape{"attributes_of_one_node", attributes_of_one_node, 5'000},
                    Shape{"functions", functions, 3'000}),
    [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace hone::hostile
