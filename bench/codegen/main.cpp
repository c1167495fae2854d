// Measures how long LLVM takes to compile a small fused kernel, y = gelu(x * w + b) by columns, and
// how fast the code is compared with memcpy of the same bytes, interleaved. Prints medians of
// processor time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cpu/device/loader.h"
#include "backend/cpu/target/processor.h"
#include "codegen/llvm/blob.h"
#include "codegen/llvm/math.h"
#include "codegen/llvm/object.h"
#include "ops/ops.h"

namespace hone::bench {
namespace {

constexpr std::int64_t columns = 1024;

// Processor time, not wall time, because other programs also run.
double milliseconds(const std::function<void()>& run) {
  std::clock_t start = std::clock();
  run();
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

using Body = llvm::Value (*)(llvm::Value);

llvm::Value gelu_erf(llvm::Value x) {
  return x * 0.5 * (llvm::real_function(ops::erf)(x * std::sqrt(0.5)) + 1.0);
}
llvm::Value gelu_tanh(llvm::Value x) {
  return x * 0.5 *
         (llvm::real_function(ops::tanh)((x * x * x * 0.044715 + x) * std::sqrt(2 / M_PI)) + 1.0);
}
llvm::Value as_is(llvm::Value x) { return x; }

struct Entry {
  const char* name;
  Body body;
};
const Entry entries[] = {{"mul-add", as_is},
                         {"gelu (erf)", gelu_erf},
                         {"gelu (tanh)", gelu_tanh},
                         {"sigmoid", llvm::real_function(ops::sigmoid)},
                         {"exp", llvm::real_function(ops::exp)}};

// Rows [begin, end) of x, two registers per iteration.
void build(llvm::Module& m, Body f, bool nontemporal) {
  std::vector<llvm::Buffer> buffers(4);
  llvm::KernelArguments k = m.begin_kernel("kernel", buffers);
  const int lanes = m.target().lanes();
  m.loop(k.begin, k.end, 1, [&](llvm::Value row) {
    m.loop(m.index(0), m.index(columns), 2 * lanes, [&](llvm::Value column) {
      for (int half = 0; half < 2; ++half) {
        llvm::Value j = column + half * lanes, i = row * columns + j;
        auto at = [&](std::size_t b, llvm::Value at) {
          return load(DType::f32, offset(k.buffers[b], DType::f32, at), lanes);
        };
        store(DType::f32, offset(k.buffers[3], DType::f32, i), f(at(0, i) * at(1, j) + at(2, j)),
              {.align = nontemporal ? 4 * lanes : 4, .nontemporal = nontemporal});
      }
    });
  });
  m.end_kernel();
}

struct Stages {
  std::map<std::string, std::vector<double>> ms;
  template <class F>
  void time(const char* stage, F f) {
    ms[stage].push_back(milliseconds(f));
  }
};

LoadedBinary compile(Body f, const llvm::TargetSpec& spec, llvm::Effort effort, bool nontemporal,
                     Stages& stages) {
  static std::map<std::string, std::unique_ptr<llvm::Emitter>> emitters;
  auto& emitter = emitters[spec.name + (effort == llvm::Effort::quick ? "q" : "n")];
  if (!emitter) emitter = std::make_unique<llvm::Emitter>(spec, effort);
  std::unique_ptr<llvm::Module> m;
  llvm::Object object;
  Binary binary;
  LoadedBinary code;
  stages.time("build", [&] {
    m = std::make_unique<llvm::Module>("bench", spec);
    build(*m, f, nontemporal);
  });
  stages.time("verify", [&] { m->verify(); });
  stages.time("optimize", [&] { emitter->optimize(*m); });
  stages.time("emit", [&] { object = emitter->emit(*m); });
  stages.time("link", [&] { binary = llvm::link_objects(std::span(&object, 1), spec.name); });
  stages.time("load", [&] { code = load(binary); });
  return code;
}

void print_latency(const Entry& e, const llvm::TargetSpec& spec, llvm::Effort effort) {
  Stages stages;
  for (int i = 0; i < 15; ++i) compile(e.body, spec, effort, false, stages);
  double total = 0;
  std::printf("%-12s %-10s %-7s", e.name, spec.name.c_str(),
              effort == llvm::Effort::quick ? "quick" : "normal");
  for (const char* stage : {"build", "verify", "optimize", "emit", "link", "load"}) {
    double ms = median(stages.ms[stage]);
    total += ms;
    std::printf("  %s %.2f", stage, ms);
  }
  std::printf("  total %.2f ms\n", total);
}

float* memory(std::int64_t count) {
  auto* p = static_cast<float*>(std::aligned_alloc(4096, static_cast<std::size_t>(count) * 4));
  for (std::int64_t i = 0; i < count; ++i) p[i] = static_cast<float>(i % 61 - 30) / 8;
  return p;
}

void print_speed(const Entry& e, const llvm::TargetSpec& spec, llvm::Effort effort,
                 bool nontemporal, std::int64_t bytes) {
  Stages unused;
  LoadedBinary code = compile(e.body, spec, effort, nontemporal, unused);
  const std::int64_t rows = bytes / (4 * columns);
  float *x = memory(rows * columns), *y = memory(rows * columns), *w = memory(columns),
        *b = memory(columns);
  void* buffers[] = {x, w, b, y};
  const int times = static_cast<int>(std::max<std::int64_t>(1, (8 << 20) / bytes));
  KernelFunction kernel = code.entry("kernel");
  std::vector<double> ours, copies, ratios;
  for (int round = 0; round < 31; ++round) {
    ours.push_back(milliseconds([&] {
      for (int i = 0; i < times; ++i) kernel(buffers, nullptr, 0, rows, nullptr);
    }));
    copies.push_back(milliseconds([&] {
      for (int i = 0; i < times; ++i) std::memcpy(y, x, static_cast<std::size_t>(bytes));
    }));
    ratios.push_back(copies.back() / ours.back());
  }
  const double moved = 2.0 * static_cast<double>(bytes) * times / 1e6;
  std::printf("%-12s %-10s %-7s%s %5.1f MB: %6.1f GB/s, memcpy %6.1f, ratio %.2f\n", e.name,
              spec.name.c_str(), effort == llvm::Effort::quick ? "quick" : "normal",
              nontemporal ? " nt" : "   ", static_cast<double>(bytes) / (1 << 20),
              moved / median(ours), moved / median(copies), median(ratios));
  for (float* p : {x, y, w, b}) std::free(p);
}

}  // namespace

int run() {
  std::vector<llvm::TargetSpec> specs = {cpu::target_spec("x86-64-v3")};
  if (cpu::target_spec("native").name != specs[0].name) specs.push_back(cpu::target_spec("native"));
  for (const llvm::TargetSpec& spec : specs)
    for (const Entry& e : entries)
      for (llvm::Effort effort : {llvm::Effort::normal, llvm::Effort::quick})
        print_latency(e, spec, effort);
  for (std::int64_t bytes : {std::int64_t{256} << 10, std::int64_t{32} << 20})
    for (const llvm::TargetSpec& spec : specs)
      for (const Entry& e : entries) {
        print_speed(e, spec, llvm::Effort::normal, false, bytes);
        if (bytes > (16 << 20)) print_speed(e, spec, llvm::Effort::normal, true, bytes);
        if (e.body == gelu_erf) print_speed(e, spec, llvm::Effort::quick, false, bytes);
      }
  return 0;
}

}  // namespace hone::bench

int main() { return hone::bench::run(); }
