// Times functions on a GPU with inputs and outputs in device memory, and prints a line of JSON for
// each: medians of whole runs, from the call until the device is idle. tools/gpu-check runs it for
// comparison with other programs.
// usage: bench_gpu [--backend B] [--strategy S] [--measure] [--form FORM:NAME=NUMBER,...] [CASE...]
//        --form: computes each group that allows it with this form and tuning
//        bench_gpu --backend B --start PLAN SET   from the plan file to the first outputs of a
//        directory's input_0.pb, input_1.pb, ...
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <random>

#include "api/compiler.h"
#include "backend/backend.h"
#include "base/json.h"
#include "compile/precision.h"
#include "decode.h"
#include "one_form.h"
#include "ops/common.h"
#include "runtime/prepare.h"

namespace {

using namespace hone;

struct GpuCase {
  std::string name;
  std::function<void(Builder&)> build;
  double bytes = 0, flops = 0;  // per run, counting inputs and outputs once
  std::optional<Precision> precision = {};
  int in_a_row =
      1;  // how often one run computes it, on inputs of its own; reported times are of one
};

std::string cased(std::string_view name, DType t, std::int64_t rows, std::int64_t columns) {
  return cat(name, "_", t, "_", rows, "x", columns);
}

// Reads and writes `tensors` tensors of [rows, columns] in total.
GpuCase rows_case(std::string_view name, DType t, std::int64_t rows, std::int64_t columns,
                  const std::function<Value(Builder&, Value)>& f, int tensors = 2) {
  GpuCase c;
  c.name = cased(name, t, rows, columns);
  c.bytes = static_cast<double>(tensors) * static_cast<double>(rows * columns * byte_size(t));
  c.build = [=](Builder& b) { b.output(f(b, b.input(Type(t, Shape{rows, columns}), "x")), "y"); };
  return c;
}

// In tf32, with constant weights and bias, so that they are rounded only once.
GpuCase tf32_case(std::int64_t m, std::int64_t n, std::int64_t k) {
  GpuCase c;
  c.name = cat("linear_gelu_tf32_", m, "x", n, "x", k);
  c.bytes = static_cast<double>((m * k + k * n + m * n + n) * 4);
  c.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  c.precision = Precision::tf32;
  c.build = [=](Builder& b) {
    std::mt19937_64 random(7);
    const Value x = b.input(f32({m, k}), "x"),
                w = b.weight(random_weight(DType::f32, {k, n}, random)),
                bias = b.weight(random_weight(DType::f32, {n}, random));
    const Value y = ops::matmul(x, w);
    b.output(ops::gelu_tanh(y + broadcast_to(bias, y.shape())), "y");
  };
  return c;
}

// A single short product mostly measures the launch and the wait for its end; several in a row do
// not.
GpuCase linear_case(DType t, std::int64_t m, std::int64_t n, std::int64_t k, int in_a_row = 1) {
  GpuCase c;
  c.name = cat("linear_gelu_", t, "_", m, "x", n, "x", k);
  if (in_a_row > 1) c.name += cat("_in_a_row_", in_a_row);
  c.in_a_row = in_a_row;
  c.bytes = static_cast<double>((m * k + k * n + m * n + n) * byte_size(t));
  c.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  c.build = [=](Builder& b) {
    for (int i = 0; i < in_a_row; ++i) {
      const Value x = b.input(Type(t, Shape{m, k}), cat("x", i)),
                  w = b.input(Type(t, Shape{k, n}), cat("w", i)),
                  bias = b.input(Type(t, Shape{n}), cat("bias", i));
      const Value y = ops::matmul(x, w);
      b.output(ops::gelu_tanh(y + broadcast_to(bias, y.shape())), cat("y", i));
    }
  };
  return c;
}

// A single contraction.
GpuCase matmul_case(DType t, std::int64_t m, std::int64_t n, std::int64_t k) {
  GpuCase c;
  c.name = cat("matmul_", t, "_", m, "x", n, "x", k);
  c.bytes = static_cast<double>((m * k + k * n + m * n) * byte_size(t));
  c.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  c.build = [=](Builder& b) {
    b.output(ops::matmul(b.input(Type(t, Shape{m, k}), "x"), b.input(Type(t, Shape{k, n}), "w")),
             "y");
  };
  return c;
}

// Attention over `heads` matrices. A query may see every key, no later key (`is_causal`), or only
// the last `window` keys up to its own position.
GpuCase attention_case(DType t, std::int64_t heads, std::int64_t length, std::int64_t row,
                       bool is_causal, std::int64_t window = 0) {
  GpuCase c;
  c.name = cat("attention_",
               is_causal    ? "causal_"
               : window > 0 ? cat("window", window, "_")
                            : "",
               t, "_", heads, "x", length, "x", row);
  const auto n = static_cast<double>(length), all = static_cast<double>(heads * row);
  const double seen = is_causal ? n / 2 : window > 0 ? static_cast<double>(window) : n;
  c.bytes = 4 * n * all * static_cast<double>(byte_size(t));
  c.flops = 4 * n * seen * all;
  c.build = [=](Builder& b) {
    const Type type(t, Shape{heads, length, row});
    Values in = {b.input(type, "q"), b.input(type, "k"), b.input(type, "v")};
    Attrs attrs = {{"scale", 1 / std::sqrt(static_cast<double>(row))}};
    if (is_causal) attrs.set("causal", Dims{0});
    if (window > 0) {
      const Shape scores{length, length};
      const Value query = iota_value(in[0].graph(), DType::i64, scores, 0),
                  key = iota_value(in[0].graph(), DType::i64, scores, 1);
      in.push_back(
          ops::bit_and(ops::le(key, query), ops::lt(query - static_cast<double>(window), key)));
    }
    b.output(ops::attention(in, attrs), "y");
  };
  return c;
}

// `half`: the 16-bit type.
std::vector<GpuCase> all_cases(DType half) {
  std::vector<GpuCase> out;
  const auto weight = [](Builder& b, Value x, const char* name) {
    return b.input(Type(x.dtype(), Shape{x.shape()[-1]}), name);
  };
  const auto softmax = [](Builder&, Value x) { return ops::softmax(x, {{"axis", 1}}); };
  const auto rms_norm = [weight](Builder& b, Value x) {
    return ops::rms_norm(std::vector<Value>{x, weight(b, x, "w")},
                         {{"axis", 1}, {"epsilon", 1e-5}});
  };
  for (DType t : {DType::f32, half}) {
    constexpr std::int64_t m = 8192, n = 16384;
    out.push_back(rows_case("gelu", t, m, n, [](Builder&, Value x) { return ops::gelu(x); }));
    out.push_back(rows_case(
        "swiglu", t, m, n,
        [](Builder& b, Value x) { return ops::silu(x) * b.input(x.type(), "g"); }, 3));
    out.push_back(rows_case("layer_norm", t, m, n, [weight](Builder& b, Value x) {
      return ops::layer_norm(std::vector<Value>{x, weight(b, x, "w"), weight(b, x, "b")},
                             {{"axis", 1}, {"epsilon", 1e-5}});
    }));
    out.push_back(rows_case("rms_norm", t, m, n, rms_norm));
    out.push_back(rows_case("softmax", t, m, n, softmax));
    // 512 MB in and out.
    for (const std::int64_t row : {256, 1024, 4096, 16384, 32768, 65536, 131072, 262144})
      out.push_back(rows_case("sweep_softmax", t, (1 << 29) / byte_size(t) / row, row, softmax));
  }
  out.push_back(
      rows_case("gelu", DType::f32, 4096, 1024, [](Builder&, Value x) { return ops::gelu(x); }));
  out.push_back(linear_case(DType::f32, 512, 1024, 2048));
  out.push_back(tf32_case(512, 1024, 2048));
  out.push_back(linear_case(half, 2048, 2048, 2048));
  out.push_back(linear_case(half, 8192, 4096, 16384));
  out.push_back(linear_case(half, 16, 4096, 4096));
  out.push_back(linear_case(half, 16, 4096, 4096, 20));
  out.push_back(matmul_case(half, 4096, 4096, 4096));
  out.push_back(matmul_case(half, 16, 4096, 4096));
  for (const bool is_causal : {false, true}) {
    out.push_back(attention_case(half, 96, 2048, 64, is_causal));
    out.push_back(attention_case(half, 64, 8192, 128, is_causal));
    out.push_back(attention_case(half, 12, 128, 64, is_causal));
  }
  out.push_back(attention_case(half, 8, 16384, 64, false));
  out.push_back(attention_case(half, 8, 16384, 64, false, 256));
  out.push_back(attention_case(DType::f32, 16, 2048, 64, false));
  GpuCase small{"small_ops_200", {}, 0, 0};
  small.build = [](Builder& b) {
    Value x = b.input(f32({64, 256}), "x");
    const Value w = b.input(f32({256, 256}), "w");
    for (int i = 0; i < 40; ++i) {
      x = ops::tanh(ops::matmul(x, w)) * 0.5 + x;
      x = x - ops::relu(x) * 0.1;
    }
    b.output(x, "y");
  };
  out.push_back(small);
  out.push_back({cat("gpt2_decode_", half), [half](Builder& b) { build_decode(b, half); }, 0, 0});
  return out;
}

// A tensor on the device with random contents: a block of random numbers, repeated.
class Tensor {
 public:
  Tensor(const std::shared_ptr<Device>& device, Stream& stream, const Type& type)
      : dtype_(type.dtype) {
    std::int64_t count = 1;
    for (const Dim& d : type.shape.dims) count *= d.number(), dims_.push_back(d.number());
    const auto bytes = static_cast<std::size_t>(count * byte_size(dtype_));
    memory_ = OwnedMemory(device, bytes);
    std::mt19937_64 random(7);
    std::normal_distribution<double> number;
    const std::int64_t few = std::min<std::int64_t>(count, 1 << 18);
    Array piece = Array::zeros(dtype_, {few});
    for (std::int64_t i = 0; i < few; ++i) piece.set_real(i, 0.1 * number(random));
    stream.upload(memory_.at(), piece.bytes());
    for (std::size_t done = piece.bytes().size(); done < bytes; done *= 2)
      stream.copy(memory_.at() + static_cast<std::int64_t>(done), memory_.at(),
                  std::min(done, bytes - done));
    stream.synchronize();
  }
  TensorRef ref() const {
    const DeviceMemory at = memory_.at();
    return {
        dtype_, dims_,
        memory_of(reinterpret_cast<std::byte*>(at.handle + static_cast<std::uint64_t>(at.offset)),
                  memory_.size())};
  }

 private:
  DType dtype_;
  std::vector<std::int64_t> dims_;
  OwnedMemory memory_;
};

double us(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// Runs for half a second and at least ten times.
double median_us(const std::function<void()>& f) {
  for (int i = 0; i < 5; ++i) f();
  std::vector<double> all;
  double total = 0;
  while (all.size() < 10 || (total < 0.5e6 && all.size() < 2000)) {
    all.push_back(us(f));
    total += all.back();
  }
  std::ranges::nth_element(all, all.begin() + std::ssize(all) / 2);
  return all[all.size() / 2];
}

// The time of all steps by the device's clock, each step alone; 0 without a clock.
double device_us(Session traced, const double& us, const std::vector<TensorRef>& inputs,
                 const std::vector<TensorRef>& outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) traced.bind_input(i, inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) traced.bind_output(i, outputs[i]);
  std::vector<double> all(20);
  for (double& one : all) {
    const double before = us;
    traced.run();
    one = us - before;
  }
  std::ranges::nth_element(all, all.begin() + std::ssize(all) / 2);
  return all[all.size() / 2];
}

struct Request {
  std::string backend = "cuda", strategy = "auto", form, start, set;
  bool measures = false;
  const Backend* used = nullptr;
};

void run(const GpuCase& c, const Request& request, double copy_gbytes) {
  const bool measures = request.measures;
  Json line = Json::Object{{"case", c.name}};
  try {
    Builder b;
    c.build(b);
    CompileOptions options{.strategy = request.strategy, .backend = request.used};
    options.verification = Verification::none;
    options.measure = options.tune = measures;
    options.cache = false;
    Source made = source(b.function(), c.name);
    if (c.precision) made = at_precision(made, *c.precision);
    Plan compiled_plan;
    const double compile_us = us([&] { compiled_plan = compile(made, options); });
    const auto plan = std::make_shared<const Plan>(std::move(compiled_plan));
    const auto executable = Executable::load(plan, open_devices(*plan));
    const std::shared_ptr<Device>& device = executable->device();
    Session session(executable, {.max_memory = std::int64_t{1} << 40});
    const std::unique_ptr<Stream> stream = device->open_stream();
    std::vector<Tensor> tensors;
    std::vector<TensorRef> inputs, outputs;
    for (std::size_t i = 0; i < plan->main().params.size(); ++i) {
      tensors.emplace_back(device, *stream, plan->main().params[i].type);
      session.bind_input(i, inputs.emplace_back(tensors.back().ref()));
    }
    // The next value of a donated input uses the input's memory.
    for (std::size_t i = 0; i < plan->main().results.size(); ++i) {
      const auto before = std::ranges::find_if(plan->main().params, [&](const PlanParam& p) {
        return p.donated && p.name + "_next" == plan->main().results[i].name;
      });
      if (before != plan->main().params.end()) {
        const auto number = static_cast<std::size_t>(before - plan->main().params.begin());
        session.bind_output(i, outputs.emplace_back(tensors[number].ref()));
        continue;
      }
      tensors.emplace_back(device, *stream, plan->main().results[i].type);
      session.bind_output(i, outputs.emplace_back(tensors.back().ref()));
    }
    const double took = median_us([&] { session.run(); }) / c.in_a_row;
    std::string chosen;
    for (const GroupRecord& g : plan->main().variants[0].groups) {
      if (chosen.size() > 200) break;
      chosen += cat(chosen.empty() ? "" : ", ", g.name, ": ", g.chosen);
    }
    line.add("us", took);
    // The processor's part of a run.
    constexpr int runs = 20;
    const std::chrono::nanoseconds before = session.counters().submitting;
    for (int i = 0; i < runs; ++i) session.run();
    line.add(
        "submit_us",
        std::chrono::duration<double, std::micro>(session.counters().submitting - before).count() /
            runs);
    double by_clock = 0;
    SessionOptions tracing{.max_memory = std::int64_t{1} << 40};
    tracing.trace = [&](const StepEvent& e) { by_clock += e.device_ms.value_or(0) * 1000; };
    if (const double us =
            device_us(Session(executable, std::move(tracing)), by_clock, inputs, outputs) /
            c.in_a_row;
        us > 0) {
      line.add("device_us", us);
      if (c.bytes > 0) line.add("device_of_copy", c.bytes / us / 1e3 / copy_gbytes);
    }
    line.add("compile_ms", compile_us / 1000);
    line.add("steps", static_cast<std::int64_t>(plan->main().variants[0].steps.size()));
    if (c.bytes > 0) line.add("gbytes_per_s", c.bytes / took / 1e3);
    if (c.bytes > 0) line.add("of_copy", c.bytes / took / 1e3 / copy_gbytes);
    if (c.flops > 0) line.add("tflops", c.flops / took / 1e6);
    line.add("staged_copies", session.counters().staged_copies);
    line.add("chosen", chosen);
    if (!request.form.empty()) line.add("form", request.form);
    Json others = Json::Array{};
    if (measures && !plan->main().variants[0].groups.empty())
      for (const CandidateRecord& r : plan->main().variants[0].groups[0].candidates())
        others.push(cat(r.name, ": ", r.refused.empty() ? cat(r.ms, " ms") : r.refused));
    if (measures) line.add("candidates", others);
  } catch (const std::exception& e) {
    line.add("failure", e.what());
  }
  std::printf("%s\n", line.text().c_str());
  std::fflush(stdout);
}

// The time to start a plan, in parts: everything that a process needs except opening the device.
void start(const Request& request) {
  const std::shared_ptr<Device> device = open_device(request.backend);
  std::vector<Array> inputs;
  for (std::size_t i = 0;; ++i) {
    const std::string file = cat(request.set, "/input_", i, ".pb");
    if (!std::filesystem::exists(file)) break;
    inputs.push_back(read_tensor_pb(file));
  }
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Executable> executable;
  const double read = us([&] { plan = std::make_shared<const Plan>(read_plan(request.start)); });
  const double loaded = us([&] { executable = load_plan(plan, {device}); });
  const double ran =
      us([&] { Session(executable, {.max_memory = std::int64_t{1} << 40}).run(inputs); });
  std::printf("%s\n", Json(Json::Object{{"case", "start"},
                                        {"plan", request.start},
                                        {"ms", (read + loaded + ran) / 1000},
                                        {"read_ms", read / 1000},
                                        {"load_ms", loaded / 1000},
                                        {"run_ms", ran / 1000}})
                          .text()
                          .c_str());
}

// GB/s of a copy on the device, between addresses that are multiples of `alignment`.
double copy_rate(const std::string& backend, std::int64_t alignment) {
  const std::shared_ptr<Device> device = open_device(backend);
  const std::unique_ptr<Stream> stream = device->open_stream();
  constexpr std::size_t bytes = std::size_t{1} << 29;
  const OwnedMemory a(device, bytes + 256), b(device, bytes + 256);
  const double took = median_us([&] {
    stream->copy(b.at() + alignment % 256, a.at() + alignment % 256, bytes);
    stream->synchronize();
  });
  return 2.0 * static_cast<double>(bytes) / took / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Request request;
    std::vector<std::string> wanted;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--strategy" && i + 1 < argc)
        request.strategy = argv[++i];
      else if (word == "--backend" && i + 1 < argc)
        request.backend = argv[++i];
      else if (word == "--form" && i + 1 < argc)
        request.form = argv[++i];
      else if (word == "--start" && i + 2 < argc)
        request.start = argv[++i], request.set = argv[++i];
      else if (word == "--measure")
        request.measures = true;
      else
        wanted.push_back(word);
    }
    if (!request.start.empty()) return start(request), 0;
    const Backend& usual = backend(request.backend);
    const Backend used = request.form.empty() ? usual : with_one_form(usual, request.form);
    request.used = &used;
    // Backends copy aligned and unaligned memory in different ways; the better rate counts.
    const double aligned = copy_rate(request.backend, 256), other = copy_rate(request.backend, 4),
                 copy = std::max(aligned, other);
    std::printf("%s\n", Json(Json::Object{{"case", "copy"},
                                          {"gbytes_per_s", copy},
                                          {"unaligned_gbytes_per_s", other}})
                            .text()
                            .c_str());
    const DType half = request.backend == "cuda" ? DType::bf16 : DType::f16;
    for (const GpuCase& c : all_cases(half))
      if (wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& w) {
            return c.name.find(w) != std::string::npos;
          }))
        run(c, request, copy);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_gpu: %s\n", e.what());
    return 1;
  }
}
