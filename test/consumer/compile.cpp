// Compiles a function, runs it, saves it, loads it; imports a model; triggers errors of both
// libraries. usage: compile MODEL.onnx PLAN
#include <hone/compiler.h>
#include <hone/runtime.h>

#include <cstdio>

namespace {

using hone::Array, hone::DType, hone::Value;

// y = relu(x w), with the inputs and outputs of the digits network, so that load.cpp runs its plan
// too.
hone::Function linear() {
  std::vector<float> numbers(64 * 10);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i % 13) / 8 - 0.5f;
  hone::Builder b;
  Value x = b.input(hone::f32({1, 1, 8, 8}), "x");
  Value w = b.weight(Array::of<float>(DType::f32, {64, 10}, numbers));
  b.output(hone::ops::relu(hone::ops::matmul(hone::reshape_to(x, {1, 64}), w)), "y");
  return b.function();
}

void print_user_error(const char* what, const std::function<void()>& f) {
  try {
    f();
    std::printf("%s: no error\n", what);
  } catch (const hone::UserError& e) {
    std::printf("%s: %s\n", what, e.what());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  std::vector<float> image(64);
  for (int i = 0; i < 64; ++i) image[i] = static_cast<float>(i % 17) / 16;

  const hone::Plan plan = hone::compile(hone::source(linear(), "linear"), {.strategy = "cpu"});
  const Array x = Array::of<float>(DType::f32, {1, 1, 8, 8}, image);
  const Array y = hone::open_session(plan)->run(std::span(&x, 1))[0];
  for (float value : y.as<float>()) std::printf("%.9g\n", static_cast<double>(value));
  hone::write_plan(argv[2], plan);

  hone::runtime::Executable executable(argv[2]);
  hone::runtime::Session session(executable);
  std::vector<float> again(10);
  session.bind_input(0, {1, 1, 8, 8}, image);
  session.bind_output(0, {1, 10}, again);
  session.run();
  std::printf("loaded: %s\n", std::ranges::equal(again, y.as<float>()) ? "equal" : "different");

  const hone::Imported model = hone::import_onnx(argv[1]);
  std::printf("imported: %s, %zu inputs\n", model.name.c_str(),
              model.variants[0].function.params().size());

  print_user_error("graph", [] {
    hone::Builder b;
    hone::ops::matmul(b.input(hone::f32({2, 3}), "a"), b.input(hone::f32({4, 5}), "b"));
  });
  print_user_error("file", [] { hone::read_plan("/nowhere/model.hone"); });
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
