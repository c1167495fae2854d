// Steps of training, each with AdamW, which train.py runs in turn with the same steps in PyTorch.
// It compiles the network NAME, writes the states before the first step and the two inputs to
// DIR/*.npy, then reads how many steps to take, again and again, and prints for each line:
// milliseconds per step, those of all its threads together, and the loss of the last. usage:
// bench_train NAME DIR [--threads N] [--compile] [--plan FILE]
#include <hone/hone.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>

using namespace hone;

namespace {

// relu between layers of these widths.
struct Mlp : nn::Module {
  Mlp(Module& parent, std::string name, const std::vector<std::int64_t>& widths)
      : Module(parent, std::move(name)) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i)
      layers.emplace_back(*this, "fc" + std::to_string(i),
                          nn::LinearOptions{.in = widths[i], .out = widths[i + 1]});
  }
  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < layers.size(); ++i)
      x = i + 1 < layers.size() ? relu(layers[i](x)) : layers[i](x);
    return x;
  }
  std::vector<nn::Linear> layers;
};

// LeCun et al., "Gradient-based learning applied to document recognition", 1998, with relu and
// max pooling.
struct LeNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv1{*this, "conv1", {.in = 1, .out = 6, .kernel = 5, .padding = 2}},
      conv2{*this, "conv2", {.in = 6, .out = 16, .kernel = 5}};
  Mlp head{*this, "head", {400, 120, 84, 10}};
  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(conv1(x)), 2);
    return head(flatten(max_pool2d(relu(conv2(x)), 2), 1));
  }
};

// He et al., "Deep residual learning for image recognition", 2016: the basic block.
struct Block : nn::Module {
  Block(Module& parent, std::string name, std::int64_t in, std::int64_t out, std::int64_t stride)
      : Module(parent, std::move(name)),
        conv1(*this, "conv1", convolution(in, out, 3, stride)),
        conv2(*this, "conv2", convolution(out, out, 3, 1)),
        bn1(*this, "bn1", out),
        bn2(*this, "bn2", out) {
    if (in == out && stride == 1) return;
    down = std::make_unique<nn::Conv2d>(*this, "down", convolution(in, out, 1, stride));
    bn_down = std::make_unique<nn::BatchNorm2d>(*this, "bn_down", out);
  }
  static nn::ConvOptions convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                     std::int64_t stride) {
    return {.in = in,
            .out = out,
            .kernel = kernel,
            .stride = stride,
            .padding = kernel / 2,
            .bias = false};
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (down ? (*bn_down)((*down)(x)) : x));
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  std::unique_ptr<nn::Conv2d> down;
  std::unique_ptr<nn::BatchNorm2d> bn_down;
};

struct ResNet : nn::Module {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", Block::convolution(3, 16, 3, 1)};
  nn::BatchNorm2d bn{*this, "bn", 16};
  Block block1{*this, "block1", 16, 16, 1}, block2{*this, "block2", 16, 32, 2};
  nn::Linear head{*this, "head", {.in = 32, .out = 10}};
  Tensor operator()(const Tensor& x) const {
    return head(mean(block2(block1(relu(bn(conv(x))))), {2, 3}));
  }
};

struct Case {
  std::vector<std::int64_t> dims;
  std::int64_t classes;
  std::function<std::function<Tensor(Tensor)>(nn::Module& root)> make;
};

template <class M, class... Options>
std::function<Tensor(Tensor)> module_of(nn::Module& root, const Options&... options) {
  return [m = std::make_shared<M>(root, "m", options...)](const Tensor& x) { return (*m)(x); };
}

const std::map<std::string, Case>& cases() {
  using Widths = std::vector<std::int64_t>;
  static const std::map<std::string, Case> all = {
      {"tiny_mlp",
       {{32, 4}, 3, [](nn::Module& r) { return module_of<Mlp>(r, Widths{4, 32, 32, 3}); }}},
      {"mlp",
       {{128, 784}, 10, [](nn::Module& r) { return module_of<Mlp>(r, Widths{784, 512, 10}); }}},
      {"lenet", {{64, 1, 28, 28}, 10, [](nn::Module& r) { return module_of<LeNet>(r); }}},
      {"block",
       {{32, 16, 32, 32},
        10,
        [](nn::Module& r) {
          struct Net : nn::Module {
            using Module::Module;
            Block block{*this, "block", 16, 16, 1};
            nn::Linear head{*this, "head", {.in = 16, .out = 10}};
            Tensor operator()(const Tensor& x) const { return head(mean(block(x), {2, 3})); }
          };
          return module_of<Net>(r);
        }}},
      {"resnet", {{32, 3, 32, 32}, 10, [](nn::Module& r) { return module_of<ResNet>(r); }}},
  };
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || !cases().contains(arguments[1])) {
    std::fprintf(stderr, "usage: bench_train NAME DIR [--threads N] [--compile] [--plan FILE]\n");
    for (const auto& [name, _] : cases()) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  const Case& c = cases().at(arguments[1]);
  const std::filesystem::path folder = arguments[2];
  std::int32_t threads = 1;
  bool measures = true;
  std::string plan;
  for (int i = 3; i < count; ++i) {
    const std::string option = arguments[i];
    if (option == "--compile") measures = false;
    if (option == "--threads" && i + 1 < count) threads = std::atoi(arguments[++i]);
    if (option == "--plan" && i + 1 < count) plan = arguments[++i];
  }
  Program p("train", {.seed = 5});
  nn::Module root(p, "net");
  const auto net = c.make(root);
  const nn::AdamW adam(p, "adam", root.parameters(), {.rate = 1e-3});
  p.entry("train", {{"x", f32(Shape(Dims(c.dims.begin(), c.dims.end())))}, {"y", i64({c.dims[0]})}},
          [&](Tensor x, Tensor y) {
            const Tensor loss = cross_entropy(net(x), y);
            adam.step(grad(loss, root.parameters()));
            return Results{{"loss", loss}};
          },
          {.training = true});
  const Compiled compiled = measures ? optimize(p) : compile(p);
  if (!plan.empty()) compiled.save(plan);
  const runtime::Executable exe = compiled.load();
  runtime::State state(exe);
  for (const Variable& v : root.states())
    write_array((folder / (v.name() + ".npy")).string(), read(state, v.name()));

  std::mt19937 random(3);
  Array x = Array::zeros(DType::f32, c.dims), y = Array::zeros(DType::i64, {c.dims[0]});
  for (std::int64_t i = 0; i < x.count(); ++i)
    x.set_real(i, static_cast<double>(random() % 2001) / 1000 - 1);
  for (std::int64_t i = 0; i < y.count(); ++i)
    y.set_real(i, static_cast<double>(random() % static_cast<unsigned>(c.classes)));
  write_array((folder / "x.npy").string(), x);
  write_array((folder / "y.npy").string(), y);
  runtime::Session session(exe, {.threads = threads, .entry = "train", .states = {&state}});
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < x.count(); ++i) pixels.push_back(static_cast<float>(x.real(i)));
  for (std::int64_t i = 0; i < y.count(); ++i) labels.push_back(y.integer(i));
  float loss = 0;
  session.bind_input(0, c.dims, pixels);
  session.bind_input(1, {c.dims[0]}, labels);
  session.bind_output(0, {}, std::span(&loss, 1));
  std::printf("ready\n");
  std::fflush(stdout);
  using Clock = std::chrono::steady_clock;
  int steps = 0;
  while (std::scanf("%d", &steps) == 1 && steps > 0) {
    const auto start = Clock::now();
    const std::clock_t busy = std::clock();
    for (int i = 0; i < steps; ++i) session.run();
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    const double used = 1e3 * static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC;
    std::printf("%.6f %.6f %.8g\n", took.count() / steps, used / steps, static_cast<double>(loss));
    std::fflush(stdout);
  }
}
