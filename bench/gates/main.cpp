// The floors that generated code must not fall below, as ratios within one run: contraction against
// the multiply-add rate, rows and activations against copying, UltraFace against oneDNN, `auto`
// against every single strategy. Prints one JSON line for each; exit status 1 when one is missed in
// all of three attempts.
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "api/hone.h"
#include "backend/cpu/target/measure.h"
#include "compile/sample.h"
#include "compile/stats.h"

namespace {

using namespace hone;

int missed = 0;

// Repeats a measurement that falls short: the machine may have been busy.
void gate(const char* name, double floor, const std::function<double()>& ratio) {
  double best = 0;
  int attempts = 0;
  while (attempts < 3 && best < floor) {
    best = std::max(best, ratio());
    ++attempts;
  }
  const bool ok = best >= floor;
  missed += !ok;
  std::printf(
      "{\"gate\": \"%s\", \"ratio\": %.3f, \"floor\": %.2f, \"attempts\": %d, \"ok\": %s}\n", name,
      best, floor, attempts, ok ? "true" : "false");
  std::fflush(stdout);
}

struct Runnable {
  std::unique_ptr<Session> session;
  std::vector<Array> inputs, outputs;

  Runnable(const Source& s, const std::string& strategy) {
    CompileOptions options;
    options.strategy = strategy;
    options.measure = strategy == "auto";
    options.threads = 1;
    Plan plan = compile(s, options);
    if (!s.samples.empty()) {
      inputs = s.samples[0];
    } else {
      for (const Type& t : s.variants[0].function.param_types())
        inputs.push_back(sample_array(t, {}, Fill::random, inputs.size() + 1));
    }
    library_calls = 0;
    for (const Variant& v : plan.variants)
      for (const Step& step : v.steps) library_calls += step.kind == Step::Kind::library;
    session = open_session(plan, {.threads = 1});
    session->run(inputs);
  }
  void run() { session->run(inputs); }
  int library_calls = 0;
};

double median_ms(const std::function<void()>& f) {
  return median_interval(race(std::span(&f, 1), {.rounds = 15, .least_sample_ms = 2})[0]).median;
}

double contraction_share() {
  Builder b;
  Value x = b.input(f32({512, 512}), "x"), w = b.input(f32({512, 512}), "w");
  b.output(ops::matmul(x, w), "y");
  Runnable r(source(b.function()), "cpu");
  const double peak = cpu::measure_fma_gflops(10);
  const double ms = median_ms([&] { r.run(); });
  return 2.0 * 512 * 512 * 512 / (ms * 1e6) / peak;
}

// Bytes read and written against a copy of as many.
double copy_share(const std::function<Value(Builder&, const Shape&)>& build) {
  const Shape shape{128, 768};
  Builder b;
  b.output(build(b, shape), "y");
  Runnable r(source(b.function()), "cpu");
  const double bytes = 2.0 * 128 * 768 * 4;
  const double rate = cpu::measure_copy_gbytes(128 * 768 * 4, 10);
  return bytes / (median_ms([&] { r.run(); }) * 1e6) / rate;
}

double time_ratio(const Source& s, const std::string& numerator, const std::string& denominator) {
  Runnable a(s, numerator), b(s, denominator);
  std::function<void()> runs[] = {[&] { a.run(); }, [&] { b.run(); }};
  auto times = race(runs, {.rounds = 21, .least_sample_ms = 2});
  return paired_ratio(times[0], times[1]).median;
}

Source model(const std::filesystem::path& directory) {
  Source s = source(import_onnx(directory / "model.onnx"));
  std::vector<Array> inputs;
  for (int i = 0; std::filesystem::exists(directory / cat("test_data_set_0/input_", i, ".pb")); ++i)
    inputs.push_back(read_tensor_pb(directory / cat("test_data_set_0/input_", i, ".pb")));
  s.samples.push_back(inputs);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path models = argc > 1 ? argv[1] : "../shared/models";
  gate("contraction 512^3 / multiply-add rate", 0.60, contraction_share);
  gate("softmax 128x768 / copy", 0.60, [] {
    return copy_share([](Builder& b, const Shape& s) {
      return ops::softmax(b.input(f32(s), "x"), {{"axis", 1}});
    });
  });
  gate("layer_norm 128x768 / copy", 0.60, [] {
    return copy_share([](Builder& b, const Shape& s) {
      Value x = b.input(f32(s), "x"), scale = b.input(f32({768}), "scale"),
            bias = b.input(f32({768}), "bias");
      return ops::layer_norm(std::vector<Value>{x, scale, bias}, {{"axis", 1}, {"epsilon", 1e-5}});
    });
  });
  gate("gelu(x*w+b) 128x768 / copy", 0.60, [] {
    return copy_share([](Builder& b, const Shape& s) {
      Value x = b.input(f32(s), "x"), w = b.input(f32({768}), "w"), c = b.input(f32({768}), "b");
      return ops::gelu(x * broadcast_to(w, s) + broadcast_to(c, s));
    });
  });
  if (!std::filesystem::is_directory(models)) {
    std::printf("{\"models\": \"not at %s; give their directory\"}\n", models.c_str());
    return 1;
  }
  Source ultraface = model(models / "ultraface_rfb_320");
  gate("UltraFace: onednn time / cpu time", 0.5,
       [&] { return time_ratio(ultraface, "onednn", "cpu"); });
  for (const char* name : {"ultraface_rfb_320", "squeezenet_fp16", "magika_v3_3", "silero_vad"}) {
    Source s = model(models / name);
    for (const char* single : {"cpu", "onednn"})
      gate(cat(name, ": ", single, " time / auto time").c_str(), 1 / 1.03,
           [&] { return time_ratio(s, single, "auto"); });
  }
  return missed > 0;
}
