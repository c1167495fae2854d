// The bounds that generated code and choices must meet, as ratios within one run: contractions
// against the multiply-add rate, rows and activations against copying the same number of bytes,
// attention against its three steps, UltraFace against oneDNN, `auto` against every single
// strategy, the C of `hone aot` against the plan, checks against the compilation they are part of.
// Prints one JSON line for the machine and one for each gate; the exit status is 1 if a gate fails
// in all its attempts.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "api/compiler.h"
#include "backend/cpu/target/measure.h"
#include "c_program.h"
#include "gate.h"
#include "ref/compare.h"
#include "runtime/device.h"
#include "verify/sample.h"

namespace {

using namespace hone;
using gates::at_least;
using gates::at_most;

struct Runnable {
  std::unique_ptr<Session> session;
  std::vector<Array> inputs, outputs;

  Runnable(const Source& s, const std::string& strategy, std::vector<Array> given,
           std::shared_ptr<ThreadPool> pool, const std::vector<std::string>& passes_off = {})
      : inputs(std::move(given)) {
    CompileOptions options;
    options.strategy = strategy;
    options.measure = strategy == "auto";
    options.threads = pool->threads();
    options.passes.off = passes_off;
    session = open_session(compile(s, options), {.pool = std::move(pool)});
    for (std::size_t i = 0; i < inputs.size(); ++i) session->bind_input(i, as_input(inputs[i]));
    outputs = session->run(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = Array::zeros(outputs[i].dtype(), outputs[i].dims());
      session->bind_output(i, {outputs[i].dtype(), outputs[i].dims(), outputs[i].writable_bytes()});
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) session->bind_input(i, as_input(inputs[i]));
  }
  void run() { session->run(); }
};

std::shared_ptr<ThreadPool> pool_of(int threads) {
  return make_thread_pool({.threads = threads, .affinity = {}});
}

// Normally distributed numbers, which resemble activations, including their tails.
Array normal(std::vector<std::int64_t> dims, float mean, float deviation, unsigned seed) {
  Array x = Array::zeros(DType::f32, std::move(dims));
  std::mt19937 rng(seed);
  std::normal_distribution<float> d(mean, deviation);
  for (float& v : x.writable<float>()) v = d(rng);
  return x;
}

gates::Ratio contraction_share() {
  constexpr std::int64_t n = 512;
  Builder b;
  Value x = b.input(f32({n, n}), "x"), w = b.input(f32({n, n}), "w");
  b.output(ops::matmul(x, w), "y");
  Runnable r(source(b.function()), "cpu", {normal({n, n}, 0, 1, 1), normal({n, n}, 0, 1, 2)},
             pool_of(1));
  // The peak rate is measured again in each round, which lasts a millisecond.
  std::vector<double> shares;
  for (int round = 0; round < gates::rounds; ++round) {
    const double peak = cpu::measure_fma_gflops(1);
    const std::function<void()> f = [&] { r.run(); };
    const double ms = time_interleaved(std::span(&f, 1), {.rounds = 1, .least_sample_ms = 1})[0][0];
    shares.push_back(2.0 * n * n * n / (ms * 1e6) / peak);
  }
  return {median_interval(shares), std::ranges::max(shares)};
}

using Build = std::function<Value(Builder&, const Shape&)>;

// Time to copy as many bytes as the result has, on the same threads, divided by the time of the
// function.
gates::Ratio copy_share(const Build& build, std::int64_t rows, std::int64_t columns, int threads) {
  Builder b;
  b.output(build(b, {rows, columns}), "y");
  std::vector<Array> inputs = {normal({rows, columns}, 0, 1, 1)};
  if (b.function().params().size() > 1) {
    inputs.push_back(normal({columns}, 1, 0.1f, 2));
    inputs.push_back(normal({columns}, 0, 0.1f, 3));
  }
  std::shared_ptr<ThreadPool> pool = pool_of(threads);
  Runnable r(source(b.function()), "cpu", std::move(inputs), pool);
  Array from = normal({rows, columns}, 0, 1, 4), to = Array::zeros(DType::f32, {rows, columns});
  const std::span<std::byte> target = to.writable_bytes();
  const std::size_t part = target.size() / static_cast<std::size_t>(threads);
  auto copy = [&] {
    parallel_for(*pool, threads, [&](std::int64_t i) {
      const std::size_t at = part * static_cast<std::size_t>(i);
      std::memcpy(target.data() + at, from.bytes().data() + at, part);
    });
  };
  return gates::ratio_of({copy, [&] { r.run(); }, threads});
}

void row_gates() {
  struct Size {
    std::int64_t rows, columns;
    int threads;
  };
  const Size sizes[] = {
      {128, 768, 1}, {4096, 1024, 1}, {8192, 4096, 1}, {4096, 1024, 2}, {8192, 4096, 2}};
  const std::pair<const char*, Build> functions[] = {
      {"softmax", [](Builder& b,
                     const Shape& s) { return ops::softmax(b.input(f32(s), "x"), {{"axis", 1}}); }},
      {"layer_norm",
       [](Builder& b, const Shape& s) {
         Value x = b.input(f32(s), "x"), scale = b.input(f32({s[1]}), "scale"),
               bias = b.input(f32({s[1]}), "bias");
         return ops::layer_norm(std::vector<Value>{x, scale, bias},
                                {{"axis", 1}, {"epsilon", 1e-5}});
       }},
      {"gelu(x*w+b)", [](Builder& b, const Shape& s) {
         Value x = b.input(f32(s), "x"), w = b.input(f32({s[1]}), "w"),
               c = b.input(f32({s[1]}), "b");
         return ops::gelu(x * broadcast_to(w, s) + broadcast_to(c, s));
       }}};
  for (const auto& [name, build] : functions)
    for (const Size& s : sizes)
      at_least(
          cat(name, " ", s.rows, "x", s.columns, ", threads ", s.threads, ": copy time / its time"),
          0.60, [&] { return copy_share(build, s.rows, s.columns, s.threads); });
}

// Compares with scores, softmax and mixture as separate steps, each over all of memory.
gates::Ratio attention_ratio(std::int64_t length, int threads) {
  const Shape shape{8, length, 64};
  Builder b;
  Value q = b.input(f32(shape), "q"), k = b.input(f32(shape), "k"), v = b.input(f32(shape), "v");
  Value scores = ops::matmul(q, transpose_matrix(k)) * 0.125;
  b.output(ops::matmul(ops::softmax(scores, {{"axis", 2}}), v), "y");
  std::vector<Array> inputs;
  for (unsigned seed : {1u, 2u, 3u}) inputs.push_back(normal({8, length, 64}, 0, 1, seed));
  std::shared_ptr<ThreadPool> pool = pool_of(threads);
  Runnable whole(source(b.function()), "cpu", inputs, pool),
      steps(source(b.function()), "cpu", inputs, pool, {"raise"});
  return gates::ratio_of({[&] { whole.run(); }, [&] { steps.run(); }, threads});
}

void attention_gates() {
  for (std::int64_t length : {32, 128, 512, 2048})
    for (int threads : {1, 2})
      at_most(cat("attention 8x", length, "x64, threads ", threads, ": its time / three steps"),
              length < 512 ? 1.05 : 1.0, [&] { return attention_ratio(length, threads); });
}

struct Model {
  Source source;
  std::vector<Array> inputs;
};

Model model(const std::filesystem::path& directory) {
  Model m{source(import_onnx(directory / "model.onnx")), {}};
  for (int i = 0; std::filesystem::exists(directory / cat("test_data_set_0/input_", i, ".pb")); ++i)
    m.inputs.push_back(read_tensor_pb(directory / cat("test_data_set_0/input_", i, ".pb")));
  m.source.samples.push_back(m.inputs);
  return m;
}

gates::Ratio time_ratio(const Model& m, const std::string& numerator,
                        const std::string& denominator) {
  Runnable a(m.source, numerator, m.inputs, pool_of(1));
  Runnable b(m.source, denominator, m.inputs, pool_of(1));
  return gates::ratio_of({[&] { a.run(); }, [&] { b.run(); }, 1});
}

// The generated C of a model, with all sizes fixed, against its plan. Their outputs are compared
// first.
gates::Ratio c_ratio(const std::filesystem::path& file, const ImportOptions& options,
                     const std::string& cc) {
  const Source s = source(import_onnx(file, options));
  std::vector<Array> inputs;
  for (const Type& t : s.variants.at(0).function.param_types())
    inputs.push_back(sample_array(t, {}, Fill::random, inputs.size() + 1));
  gates::CProgram program(s, inputs, cc);
  Runnable plan(s, "cpu", std::move(inputs), pool_of(1));
  program.run();
  plan.run();
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    double most = 0;
    for (std::int64_t k = 0; k < plan.outputs[i].count(); ++k)
      most = std::max(most, std::abs(plan.outputs[i].real(k)));
    if (!within(program.outputs()[i], plan.outputs[i], 1e-4 * most, 1e-3).ok)
      throw UserError(file.string(), " as C gives other numbers than its plan");
  }
  return gates::ratio_of({[&] { program.run(); }, [&] { plan.run(); }, 1});
}

void c_gates(const std::filesystem::path& models) {
  struct Case {
    const char* name;
    std::filesystem::path file;
    ImportOptions options;
  };
  const Case cases[] = {
      {"digits, 450 images",
       HONE_SOURCE_DIR "/examples/digits/digits.onnx",
       {.dims = {{"batch", {450, 450}}}}},
      {"ultraface_rfb_320", models / "ultraface_rfb_320/model.onnx", {}},
      {"magika_v3_3, batch 8", models / "magika_v3_3/model.onnx", {.dims = {{"unk__214", {8, 8}}}}},
  };
  for (const char* cc : {"gcc", "clang-19"})
    for (const Case& c : cases)
      at_most(cat(c.name, ", threads 1: C by ", cc, " -O3 -march=native / cpu time"), 1.5,
              [&] { return c_ratio(c.file, c.options, cc); });
}

// Checks may take a fifth of a first compilation, so it may take 1.25 times as long as without
// checks; a later compilation reuses the verdicts.
void verification_gates(const std::vector<std::pair<std::string, Source>>& sources) {
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() / cat("hone_gates_cache_", ::getpid());
  ::setenv("HONE_CACHE_DIR", cache.c_str(), 1);
  for (bool is_first : {true, false})
    for (const auto& [name, source] : sources) {
      const auto compiles = [&](Verification level) {
        return [&source = source, level, is_first] {
          CompileOptions options;
          options.verification = level;
          options.threads = 1;
          options.cache = !is_first;
          compile(source, options);
        };
      };
      at_most(cat(name, ", threads 1: time of ", is_first ? "a first" : "another",
                  " compilation / without checks"),
              is_first ? 1.25 : 1.10, [&] {
                return gates::ratio_of(
                    {compiles(Verification::kernels), compiles(Verification::none), 1});
              });
    }
  std::filesystem::remove_all(cache);
}

}  // namespace

// Arguments: the directory of the models, and optionally part of the names of the gates to run.
int main(int argc, char** argv) {
  const std::filesystem::path models = argc > 1 ? argv[1] : "../shared/models";
  if (argc > 2) gates::only(argv[2]);
  gates::print_machine();
  at_least("contraction 512^3, threads 1: share of the multiply-add rate", 0.60, contraction_share);
  row_gates();
  attention_gates();
  if (!std::filesystem::is_directory(models)) {
    std::printf("{\"models\": \"not at %s; give their directory\"}\n", models.c_str());
    return 1;
  }
  const Model ultraface = model(models / "ultraface_rfb_320");
  at_most("ultraface_rfb_320, threads 1: cpu time / onednn time", 2.0,
          [&] { return time_ratio(ultraface, "cpu", "onednn"); });
  std::vector<std::pair<std::string, Source>> sources = {
      {"digits", source(import_onnx(HONE_SOURCE_DIR "/examples/digits/digits.onnx"))}};
  for (const char* name : {"ultraface_rfb_320", "squeezenet_fp16", "magika_v3_3", "silero_vad"}) {
    const Model m = model(models / name);
    sources.emplace_back(name, m.source);
    for (const char* single : {"cpu", "onednn"})
      at_most(cat(name, ", threads 1: auto time / ", single, " time"), 1.03,
              [&] { return time_ratio(m, "auto", single); });
  }
  c_gates(models);
  verification_gates(sources);
  return gates::missed() > 0;
}
