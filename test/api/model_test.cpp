// <hone/hone.h> as its users meet it: a program compiled, run, saved and loaded.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "api/hone.h"
#include "base/error.h"

namespace hone {
namespace {

// A file name of this process alone, removed at the end.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& name)
      : path((std::filesystem::temp_directory_path() / cat(::getpid(), ".", name)).string()) {}
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string path;
};

Array floats(std::vector<std::int64_t> dims, const std::vector<float>& numbers) {
  return Array::of<float>(DType::f32, std::move(dims), numbers);
}
Array number(double x) { return Array::scalar(x, DType::f32); }

struct LineNet : nn::Module {
  using Module::Module;
  nn::Linear fc{*this, "fc", {.in = 1, .out = 1}};
  Tensor operator()(const Tensor& x) const { return fc(x); }
};

// Learns y = 2 x + 1.
Program learned_line() {
  Program p("line", {.seed = 1});
  LineNet net(p, "net");
  nn::SGD sgd(p, "sgd", net.parameters(), {.rate = 0.1, .momentum = 0.5});
  nn::Ema ema(p, "ema", net.parameters(), 0.9);
  p.entry("train", {}, [&] {
    const Tensor x = randn(f32({32, 1}));
    const Tensor loss = mse_loss(net(x), x * 2 + 1);
    sgd.step(grad(loss, net.parameters()));
    ema.update();
    return Results{{"loss", loss}};
  });
  p.entry("serve", {{"x", f32({dim("n", 1, 64), 1})}},
          [&](Tensor x) { return Results{{"y", ema.use([&] { return net(x); })}}; });
  return p;
}

const CompileWith options{.threads = 2, .cache = false};

TEST(Model, TrainsIsSavedAndServed) {
  const Program p = learned_line();
  const Compiled compiled = compile(p, options);
  const TemporaryFile plan("line.hone"), states("line.safetensors"), served("served.hone");
  compiled.save(plan.path);
  runtime::Executable exe = compiled.load(), again(plan.path);
  runtime::State state(exe), serving(exe), loaded(again);
  runtime::Session train(exe, {.entry = "train", .states = {&state}}),
      serve(exe, {.entry = "serve", .states = {&serving}}),
      serve_again(again, {.entry = "serve", .states = {&loaded}});
  const std::vector<Array> x = {floats({3, 1}, {-1, 0, 2})};
  const Array before = run(serve, x)[0];
  for (int i = 0; i < 100; ++i) run(train, {});
  EXPECT_EQ(run(serve, x)[0], before);  // it reads a State of its own
  serving.assign(state);
  const Array y = run(serve, x)[0];
  EXPECT_NEAR(y.real(0), -1, 1e-2);
  EXPECT_NEAR(y.real(2), 5, 1e-2);
  state.save(states.path);
  loaded.load(states.path);
  EXPECT_EQ(run(serve_again, x)[0], y);
  compile(frozen(p.only({"serve"}), state), options).save(served.path);
  runtime::Session alone{runtime::Executable(served.path)};
  EXPECT_NEAR(run(alone, x)[0].real(2), y.real(2), 1e-5);
}

TEST(Model, ReadsAndWritesStates) {
  const Compiled compiled = compile(learned_line(), options);
  runtime::Executable exe = compiled.load();
  runtime::State state(exe);
  EXPECT_FLOAT_EQ(static_cast<float>(read(state, "sgd.rate").real(0)), 0.1f);
  write(state, "sgd.rate", number(0));
  const Array weight = read(state, "net.fc.weight");
  runtime::Session train(exe, {.entry = "train", .states = {&state}});
  run(train, {});
  EXPECT_EQ(read(state, "net.fc.weight"), weight);
}

// A sum for each user over one scale: a state of group "cache" each. The best of several
// continuations goes on, as in beam search.
TEST(Model, HasAStateForEachUser) {
  Program p("sums");
  Variable scale = p.variable("scale", f32({}), 10),
           sum_of = p.variable("sum", f32({}), 0, "cache");
  p.entry("add", {{"x", f32({})}}, [&](Tensor x) {
    sum_of.set(sum_of + x * scale);
    return Results{{"sum", sum_of}};
  });
  runtime::Executable exe = compile(p, options).load();
  runtime::State model(exe, {"model"}), one(exe, {"cache"}), other(exe, {"cache"});
  runtime::Session for_one(exe, {.entry = "add", .states = {&model, &one}}),
      for_other(exe, {.entry = "add", .states = {&model, &other}});
  EXPECT_EQ(run(for_one, {number(1)})[0].real(0), 10);
  EXPECT_EQ(run(for_other, {number(2)})[0].real(0), 20);
  EXPECT_EQ(run(for_one, {number(1)})[0].real(0), 20);
  one.assign(other);  // the better one replaces the worse
  EXPECT_EQ(run(for_one, {number(1)})[0].real(0), 30);
  EXPECT_EQ(run(for_other, {number(0)})[0].real(0), 20);
}

// A recurrent network learns to say at each step whether the number of ones so far is odd.
TEST(Model, LearnsThroughAScan) {
  Program p("parity", {.seed = 4});
  nn::Module net(p, "net");
  const nn::Linear in(net, "in", {.in = 2, .out = 16}), again(net, "again", {.in = 16, .out = 16}),
      head(net, "head", {.in = 16, .out = 2});
  const nn::Adam adam(p, "adam", net.parameters(), {.rate = 1e-2});
  p.entry("train", {}, [&] {
    const Tensor bits = rand(f32({64, 4})) > 0.5;
    const Tensor x = transpose(one_hot(cast(bits, DType::i64), 2), 0, 1);
    const Tensor now = cumsum(cast(transpose(bits), DType::i64), 0) & 1;
    const Scanned s =
        scan({zeros(f32({64, 16}))}, {x}, [&](const Tensors& c, const Tensors& bit) -> Stepped {
          const Tensor next = tanh(in(bit[0]) + again(c[0]));
          return {{next}, {head(next)}};
        });
    const Tensor logits = flatten(s.kept[0], 0, 1);
    const Tensor loss = cross_entropy(logits, flatten(now));
    adam.step(grad(loss, net.parameters()));
    return Results{{"loss", loss}};
  });
  runtime::Executable exe = compile(p, options).load();
  runtime::State state(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&state}});
  double loss = 1;
  for (int i = 0; i < 600 && loss > 0.05; ++i) loss = run(train, {})[0].real(0);
  EXPECT_LE(loss, 0.05);
}

TEST(Model, RefusesATargetOutOfRangeAndKeepsItsStates) {
  Program p("p");
  LineNet net(p, "net");
  const nn::Embedding table(net, "table", {.count = 4, .width = 2});
  const nn::SGD sgd(p, "sgd", {table.weight});
  p.entry("train", {{"index", i64({2})}}, [&](Tensor index) {
    sgd.step(grad(sum(square(table(index))), Variables{table.weight}));
  });
  runtime::Executable exe = compile(p, options).load();
  runtime::State state(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&state}});
  const Array before = read(state, "net.table.weight");
  try {
    run(train, {Array::from_ints(std::vector<std::int64_t>{1, 4})});
    FAIL() << "expected an error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("take: an index is 4, expected 0 to 3"), std::string::npos)
        << e.what();
  }
  EXPECT_EQ(read(state, "net.table.weight"), before);
  run(train, {Array::from_ints(std::vector<std::int64_t>{1, 3})});
  EXPECT_FALSE(read(state, "net.table.weight") == before);
}

TEST(Model, IsOptimizedWithStatesVerified) {
  CompileWith few = options;
  few.budget = 1;
  runtime::Executable exe = optimize(learned_line(), few).load();
  runtime::State state(exe);
  runtime::Session train(exe, {.entry = "train", .states = {&state}});
  for (int i = 0; i < 100; ++i) run(train, {});
  EXPECT_NEAR(read(state, "net.fc.bias").real(0), 1, 1e-2);
}

TEST(Model, ComesFromOnnx) {
  runtime::Executable exe =
      compile_onnx(HONE_SOURCE_DIR "/examples/digits/digits.onnx", options).load();
  runtime::Session session(exe);
  const Array logits = run(session, {read_array(HONE_SOURCE_DIR "/examples/digits/images.npy")})[0];
  EXPECT_EQ(logits.dims(), (std::vector<std::int64_t>{450, 10}));
}

TEST(Model, ErrorsBeginWithTheLine) {
  const auto error_of = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  const Program p = learned_line();
  for (const auto& [text, f] : std::vector<std::pair<std::string, std::function<void()>>>{
           {"nosuch", [&] { compile(p, {.device = "nosuch"}); }},
           {"multi", [&] { compile(p, {.strategy = "multi"}); }},
           {"sets state",
            [&] {
              runtime::State state(compile(p, options).load());
              frozen(p, state);
            }},
           {"/nowhere/x.npy", [] { read_array("/nowhere/x.npy"); }},
           {"/nowhere/x.onnx", [] { compile_onnx("/nowhere/x.onnx"); }},
           {"has no entry", [] { compile(Program("empty")); }}}) {
    const std::string error = error_of(f);
    EXPECT_NE(error.find(text), std::string::npos) << text << "\n  got: " << error;
    EXPECT_NE(error.find("model_test.cpp:"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace hone
