// The digits network trained by one entry of a program and asked by another: convolution, batch
// norm with running statistics, cross-entropy, AdamW. On every backend.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "base/random.h"
#include "compile/program.h"
#include "grad/gradients.h"
#include "import/tensor_file.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "plan/plan_file.h"
#include "runtime/state.h"
#include "test/backend/conformance.h"

namespace hone::test {

namespace {

constexpr std::int32_t input = ProgramEntry::no_state;
constexpr std::int64_t channels = 32, features = channels * 4 * 4, classes = 10;

Array random_normal(std::vector<std::int64_t> dims, double deviation, std::uint64_t seed) {
  SplitMix64 random(seed);
  Array out = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < out.count(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
    out.set_real(i, deviation * radius * std::cos(2 * M_PI * random.unit()));
  }
  return out;
}

Array filled(std::vector<std::int64_t> dims, double x) {
  Array out = Array::zeros(DType::f32, std::move(dims));
  for (std::int64_t i = 0; i < out.count(); ++i) out.set_real(i, x);
  return out;
}

// Along the channels of [n, channels, h, w].
Value of_channels(Value v, const Shape& shape) {
  return broadcast_to(reshape_to(v, {channels, 1, 1}), shape);
}

// The parameters that are trained, in the order of the program's states.
enum Parameter : std::size_t { conv, scale, shift, head, bias, parameters };

ProgramGraph digits() {
  ProgramGraph p{"digits", {}, {}};
  p.states = {{"conv.weight", "model", f32({channels, 1, 3, 3}),
               random_normal({channels, 1, 3, 3}, 0.4, 1)},
              {"norm.weight", "model", f32({channels}), filled({channels}, 1)},
              {"norm.bias", "model", f32({channels})},
              {"head.weight", "model", f32({features, classes}),
               random_normal({features, classes}, 0.06, 2)},
              {"head.bias", "model", f32({classes})},
              {"norm.running_mean", "model", f32({channels})},
              {"norm.running_var", "model", f32({channels}), filled({channels}, 1)}};
  for (const char* moment : {"mean", "variance"})
    for (std::size_t i = 0; i < parameters; ++i)
      p.states.push_back(
          {cat("adam.", p.states[i].name, ".", moment), "optimizer", p.states[i].type});
  p.states.push_back({"adam.step", "optimizer", Type(DType::f32, {})});
  return p;
}

Value images(Function& f, const Dim& n) { return f.add_param(f32({n, 1, 8, 8}), "image"); }

Value convolved(Value x, Value w) {
  return ops::conv(Values{x, w}, {{"strides", Dims{1, 1}},
                                  {"dilations", Dims{1, 1}},
                                  {"pads_low", Dims{1, 1}},
                                  {"pads_high", Dims{1, 1}},
                                  {"groups", 1},
                                  {"channels_last", 0}});
}

// From the normalised channels on.
Value logits(Value y, Value scale, Value shift, Value head, Value bias) {
  y = ops::relu(y * of_channels(scale, y.shape()) + of_channels(shift, y.shape()));
  y = max_pool(y, {.size = {2, 2},
                   .strides = {2, 2},
                   .dilations = {1, 1},
                   .pads_low = {0, 0},
                   .pads_high = {0, 0}});
  y = ops::matmul(reshape_to(y, {y.shape()[0], features}), head);
  return y + broadcast_to(bias, y.shape());
}

Value normalised(Value y, Value mean, Value variance) {
  const Value deviation = ops::sqrt(variance + 1e-5);
  return (y - of_channels(mean, y.shape())) / of_channels(deviation, y.shape());
}

// The mean over everything but the channels.
Value mean_of_channels(Value y) {
  const Value count = size_value(y.graph(), y.shape()[0] * Dim(64), DType::f32);
  const Value sum = reduce_axes(ops::reduce_sum, y, {0, 2, 3});
  return sum / broadcast_to(count, sum.shape());
}

ProgramEntry train(const ProgramGraph& p) {
  const Dim n = Dim::symbol("batch", 1, 512);
  Function f;
  Values state;
  ProgramEntry e{"train", {}, {}};
  for (std::size_t i = 0; i < p.states.size(); ++i) {
    state.push_back(f.add_param(p.states[i].type, p.states[i].name, true));
    e.states.push_back(static_cast<std::int32_t>(i));
  }
  const Value image = images(f, n), label = f.add_param(Type(DType::i64, {n}), "label"),
              rate = f.add_param(f32({}), "rate");
  e.states.insert(e.states.end(), {input, input, input});

  const Value y = convolved(image, state[conv]);
  const Value mean = mean_of_channels(y), off = y - of_channels(mean, y.shape());
  const Value variance = mean_of_channels(off * off);
  const Value out =
      logits(normalised(y, mean, variance), state[scale], state[shift], state[head], state[bias]);
  const Value chosen = ops::eq(iota_value(f.graph(), DType::i64, out.shape(), 1),
                               broadcast_to(reshape_to(label, {n, 1}), out.shape()));
  const Value log_p = ops::log_softmax(out, {{"axis", 1}});
  const Value picked = ops::select(Values{chosen, log_p, constant_like(log_p, 0)});
  const Value loss =
      -reduce_axes(ops::reduce_sum, picked, {0, 1}) / size_value(f.graph(), n, DType::f32);

  const Values trained(state.begin(), state.begin() + parameters);
  const Value one = constant_like(loss, 1);
  const Values g = gradients(std::span(&loss, 1), std::span(&one, 1), trained);
  f.add_result(loss, "loss");
  const auto store = [&](Value v, std::size_t i) {
    f.add_result(v, cat("next ", p.states[i].name), static_cast<std::uint32_t>(i));
  };
  // AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
  const std::size_t first = parameters + 2, second = first + parameters,
                    count = second + parameters;
  const Value step = state[count] + 1.0;
  const Value to_mean = 1.0 - ops::exp(step * std::log(0.9)),
              to_variance = 1.0 - ops::exp(step * std::log(0.999));
  for (std::size_t i = 0; i < parameters; ++i) {
    const Value m = state[first + i] * 0.9 + g[i] * 0.1,
                v = state[second + i] * 0.999 + g[i] * g[i] * 0.001;
    store(m, first + i);
    store(v, second + i);
    const Value change = (m / to_mean) / (ops::sqrt(v / to_variance) + 1e-8);
    store(state[i] - rate * (change + state[i] * 1e-2), i);
  }
  store(step, count);
  store(state[parameters] * 0.9 + mean * 0.1, parameters);
  store(state[parameters + 1] * 0.9 + variance * 0.1, parameters + 1);
  e.function = f;
  return e;
}

ProgramEntry classify(const ProgramGraph& p) {
  Function f;
  ProgramEntry e{"classify", {}, {input}};
  const Value image = images(f, Dim::symbol("batch", 1, 512));
  Values state;
  for (std::size_t i = 0; i < parameters + 2; ++i) {
    state.push_back(f.add_param(p.states[i].type, p.states[i].name));
    e.states.push_back(static_cast<std::int32_t>(i));
  }
  const Value y =
      normalised(convolved(image, state[conv]), state[parameters], state[parameters + 1]);
  f.add_result(logits(y, state[scale], state[shift], state[head], state[bias]), "logits");
  e.function = f;
  return e;
}

struct Digits {
  Array images, labels;  // f32[n,1,8,8], ink from 0 to 1; i64[n]
};

Digits digits_in(const std::string& images, const std::string& labels, double ink) {
  const std::filesystem::path folder = std::filesystem::path(HONE_SOURCE_DIR) / "examples/digits";
  const Array pixels = read_npy(folder / images), numbers = read_npy(folder / labels);
  Digits out{Array::zeros(DType::f32, pixels.dims()), Array::zeros(DType::i64, numbers.dims())};
  const bool is_float_image = is_float(pixels.dtype());
  for (std::int64_t i = 0; i < pixels.count(); ++i)
    out.images.set_real(
        i, (is_float_image ? pixels.real(i) : static_cast<double>(pixels.integer(i))) / ink);
  for (std::int64_t i = 0; i < numbers.count(); ++i) out.labels.set_integer(i, numbers.integer(i));
  return out;
}

Digits chosen(const Digits& all, std::span<const std::int64_t> which) {
  const auto n = static_cast<std::int64_t>(which.size());
  Digits out{Array::zeros(DType::f32, {n, 1, 8, 8}), Array::zeros(DType::i64, {n})};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t from = which[static_cast<std::size_t>(i)];
    for (std::int64_t k = 0; k < 64; ++k)
      out.images.set_real(i * 64 + k, all.images.real(from * 64 + k));
    out.labels.set_integer(i, all.labels.integer(from));
  }
  return out;
}

int right(const Array& logits, const Array& labels) {
  int n = 0;
  for (std::int64_t i = 0; i < labels.count(); ++i) {
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c)
      if (logits.real(i * classes + c) > logits.real(i * classes + best)) best = c;
    n += best == labels.integer(i);
  }
  return n;
}

std::vector<std::byte> bytes_of(const Array& a) { return {a.bytes().begin(), a.bytes().end()}; }

}  // namespace

// Devices that are no hardware take minutes for the whole: they take few steps, unless
// HONE_WHOLE_TRAINING is set.
TEST_P(BackendConformance, TrainsTheDigitsNetwork) {
  const bool is_whole = device_->shares_host_memory() || std::getenv("HONE_WHOLE_TRAINING");
  ProgramGraph program = digits();
  program.entries = {train(program), classify(program)};
  CompileOptions options{.backend = GetParam().backend, .threads = 2, .cache = false};
  const auto plan = std::make_shared<const Plan>(compile(program, options));
  const auto executable = Executable::load(plan, device_);
  State state(executable);
  Session train(executable, {.threads = 2, .entry = "train", .states = {state}}),
      classify(executable, {.threads = 2, .entry = "classify", .states = {state}});
  const Digits all = digits_in("training_images.npy", "training_labels.npy", 16),
               held = digits_in("images.npy", "labels.npy", 1);
  const std::int64_t size = 64, epochs = is_whole ? 20 : 2, count = all.labels.count();
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  SplitMix64 random(3);
  int steps = 0;
  const DeviceMemory before = state.group("model")->memory.at();
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.next() % i]);
    for (std::int64_t at = 0; at < count; at += size) {
      const auto from = static_cast<std::size_t>(at);
      const Digits batch = chosen(
          all, std::span(order).subspan(from, std::min<std::size_t>(size, order.size() - from)));
      const double rate = 4e-3 * (1 - static_cast<double>(epoch) / epochs);
      const std::vector<Array> got =
          train.run(std::vector{batch.images, batch.labels, Array::scalar(rate, DType::f32)});
      ASSERT_TRUE(std::isfinite(got[0].real(0))) << "step " << steps;
      if (++steps % (is_whole ? 50 : 40) != 0) continue;
      // The saved State in a plan loaded again computes the same bits.
      const std::filesystem::path file =
          std::filesystem::temp_directory_path() / cat("digits.", GetParam().name, ".", ::getpid());
      state.save(file);
      const auto again = Executable::load(plan, GetParam().open());
      State loaded(again);
      loaded.load(file);
      Session other(again, {.threads = 2, .entry = "classify", .states = {loaded}});
      const std::vector<Array> in = {held.images};
      EXPECT_EQ(bytes_of(classify.run(in)[0]), bytes_of(other.run(in)[0])) << "step " << steps;
      std::filesystem::remove(file);
    }
  }
  const int got = right(classify.run(std::vector{held.images})[0], held.labels);
  EXPECT_GE(got, is_whole ? 437 : 350) << "of 450";  // 97 %
  RecordProperty("right", got);
  EXPECT_EQ(state.group("model")->memory.at(), before);
  EXPECT_EQ(state.read("adam.step").real(0), steps);
  EXPECT_EQ(state.version("model"), static_cast<std::uint64_t>(steps));
  if (device_->shares_host_memory()) return;
  // Only the batch, the rate and the loss cross between host and device.
  const RunCounters start = train.counters();
  const Digits batch = chosen(all, std::span(order).first(64));
  train.run(std::vector{batch.images, batch.labels, Array::scalar(1e-3, DType::f32)});
  EXPECT_EQ(train.counters().uploaded_bytes - start.uploaded_bytes, 64 * 64 * 4 + 64 * 8 + 4);
  EXPECT_EQ(train.counters().downloaded_bytes - start.downloaded_bytes, 4);
}

}  // namespace hone::test
