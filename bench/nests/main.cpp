// Loop nests against memcpy of as many bytes as they read and write, one thread each, interleaved.
// Prints medians of the ratio; 1 means as fast as copying.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>

#include "backend/cpu/device/loader.h"
#include "backend/cpu/target/processor.h"
#include "codegen/llvm/blob.h"
#include "codegen/llvm/nest.h"
#include "codegen/llvm/object.h"
#include "kernel/nest/nest_candidate.h"
#include "ops/common.h"

namespace hone::bench {
namespace {

using Run = std::function<void()>;
using Bytes = std::shared_ptr<std::byte>;

Bytes memory(std::size_t n) {
  auto* p = static_cast<std::byte*>(std::aligned_alloc(4096, (n + 4095) / 4096 * 4096 + 4096));
  std::memset(p, 0, n);
  return {p, std::free};
}

Bytes numbers(const Type& t) {
  auto n = static_cast<std::size_t>(t.shape.count().number());
  Bytes data = memory(n * static_cast<std::size_t>(byte_size(t.dtype)));
  for (std::size_t i = 0; i < n; ++i) {
    float x = static_cast<float>(i % 1009) / 504 - 1;
    if (t.dtype == DType::f32) std::memcpy(data.get() + 4 * i, &x, 4);
    std::uint16_t half = f32_to_f16(x);
    if (t.dtype == DType::f16) std::memcpy(data.get() + 2 * i, &half, 2);
  }
  return data;
}

struct Compiled {
  Run run;
  std::size_t bytes = 0, kernels = 0;
  double lower_ms = 0, compile_ms = 0;  // processor time
};

// Time of this thread alone, so that other work on the machine matters less.
double processor_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

Compiled compile(const Function& f, const llvm::TargetSpec& spec, bool is_printed) {
  GroupSpec group{f, {}, {}, std::vector<bool>(f.params().size(), false)};
  for (const Type& t : f.param_types()) group.param_strides.push_back(dense_strides(t.shape));
  for (const Type& t : f.result_types()) group.result_strides.push_back(dense_strides(t.shape));
  llvm::Emitter emitter(spec);
  Compiled out;
  double start = processor_ms();
  Candidate c = nest_candidate(group, cpu::target_info(spec.name));
  out.lower_ms = processor_ms() - start;
  start = processor_ms();
  std::vector<llvm::Object> objects;
  for (std::size_t i = 0; i < c.steps.size(); ++i) {
    llvm::Module m("bench", spec);
    llvm::emit_kernel(m, std::get<Kernel>(c.steps[i].what), cat("k", i));
    if (is_printed) std::puts(print(std::get<Kernel>(c.steps[i].what)).c_str());
    m.verify();
    emitter.optimize(m);
    if (is_printed) std::puts(emitter.assembly(m).c_str());
    objects.push_back(emitter.emit(m));
  }
  auto code = std::make_shared<LoadedBinary>(load(llvm::link_objects(objects, spec.name)));
  out.compile_ms = processor_ms() - start;
  out.kernels = c.steps.size();
  std::vector<Bytes> params, results, temporaries;
  for (const Type& t : f.param_types()) {
    params.push_back(numbers(t));
    out.bytes += static_cast<std::size_t>(byte_count(t).number());
  }
  for (const Type& t : f.result_types()) {
    results.push_back(numbers(t));
    out.bytes += static_cast<std::size_t>(byte_count(t).number());
  }
  for (const auto& t : c.temporaries) temporaries.push_back(numbers(t.type));
  struct Launch {
    KernelFunction function;
    std::vector<void*> buffers;
    std::int64_t chunks;
    Bytes scratch;
  };
  std::vector<Launch> launches;
  for (std::size_t i = 0; i < c.steps.size(); ++i) {
    const Kernel& k = std::get<Kernel>(c.steps[i].what);
    auto scratch = memory(static_cast<std::size_t>(k.scratch_bytes.number()) + 64);
    Launch l{code->entry(cat("k", i)), {}, k.chunks.number(), scratch};
    for (const auto& o : c.steps[i].operands) {
      using Kind = Candidate::Operand::Kind;
      auto& list = o.kind == Kind::param ? params : o.kind == Kind::result ? results : temporaries;
      l.buffers.push_back(list[static_cast<std::size_t>(o.index)].get());
    }
    launches.push_back(std::move(l));
  }
  out.run = [launches, code, held = std::vector{params, results, temporaries}] {
    for (const Launch& l : launches)
      l.function(l.buffers.data(), nullptr, 0, l.chunks, l.scratch.get());
  };
  return out;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void report(const std::string& name, const Compiled& c) {
  Bytes from = memory(c.bytes / 2), to = memory(c.bytes / 2);
  int times = static_cast<int>(std::max<std::size_t>(1, (4u << 20) / c.bytes));
  auto copy = [&] {
    std::memcpy(to.get(), from.get(), c.bytes / 2);
    asm volatile("" ::: "memory");
  };
  auto timed = [&](const Run& run) {
    const double start = processor_ms();
    for (int i = 0; i < times; ++i) run();
    return (processor_ms() - start) / times;
  };
  timed(c.run), timed(copy);
  std::vector<double> ratios, ours;
  for (int i = 0; i < 25; ++i) {
    double a = timed(c.run), b = timed(copy);
    ratios.push_back(b / a);
    ours.push_back(a);
  }
  std::printf(
      "%-34s %8.2f KB %9.4f ms %6.1f GB/s  %5.2f of copy, %zu kernel, %.2f + %.1f ms to compile\n",
      name.c_str(), static_cast<double>(c.bytes) / 1024, median(ours),
      static_cast<double>(c.bytes) / median(ours) / 1e6, median(ratios), c.kernels, c.lower_ms,
      c.compile_ms);
}

struct Subject {
  std::string name;
  std::function<std::vector<Type>(std::int64_t rows)> params;
  std::function<Value(std::span<const Value>)> build;
};

std::vector<Subject> subjects() {
  using In = std::span<const Value>;
  auto rows = [](std::int64_t r) { return std::vector<Type>{f32({r, 1024})}; };
  auto rows16 = [](std::int64_t r) { return std::vector<Type>{f16({r, 1024})}; };
  auto rows_and_two = [](std::int64_t r) {
    return std::vector<Type>{f32({r, 1024}), f32({1024}), f32({1024})};
  };
  auto images = [](std::int64_t r) { return std::vector<Type>{f32({1, 64, r, 16})}; };
  auto images_last = [](std::int64_t r) { return std::vector<Type>{f32({1, r, 16, 64})}; };
  auto sum = [](int axis) {
    return [axis](In x) { return reduce_axes(ops::reduce_sum, x[0], {axis}); };
  };
  auto pool = [](bool last) {
    return [last](In x) { return max_pool(x[0], {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, last}); };
  };
  auto softmax = [](In x) { return ops::softmax(x[0], {{"axis", 1}}); };
  return {
      {"x * x + 1", rows, [](In x) { return x[0] * x[0] + 1.0; }},
      {"x * x + 1, f16", rows16, [](In x) { return x[0] * x[0] + 1.0; }},
      {"gelu(x * w + b)", rows_and_two,
       [](In x) {
         Value w = broadcast_to(x[1], x[0].shape()), b = broadcast_to(x[2], x[0].shape());
         return ops::gelu(x[0] * w + b);
       }},
      {"sigmoid", rows, [](In x) { return ops::sigmoid(x[0]); }},
      {"silu", rows, [](In x) { return ops::silu(x[0]); }},
      {"softplus", rows, [](In x) { return ops::softplus(x[0]); }},
      {"gelu_tanh", rows, [](In x) { return ops::gelu_tanh(x[0]); }},
      {"softmax", rows, softmax},
      {"softmax, f16", rows16, softmax},
      {"layer_norm", rows_and_two,
       [](In x) {
         return ops::layer_norm(Values{x[0], x[1], x[2]}, {{"axis", 1}, {"epsilon", 1e-5}});
       }},
      {"sums of rows", rows, sum(1)},
      {"sums of columns", rows, sum(0)},
      {"sum of all", rows, [](In x) { return reduce_axes(ops::reduce_sum, x[0], {0, 1}); }},
      {"argmax of rows", rows,
       [](In x) { return ops::argmax(x[0], {{"axis", 1}, {"dtype", DType::i64}}); }},
      {"transpose", rows, [](In x) { return transpose_matrix(x[0]); }},
      {"channels to the end", images, [](In x) { return transpose_by(x[0], Axes{0, 2, 3, 1}); }},
      {"channels to the front", images_last,
       [](In x) { return transpose_by(x[0], Axes{0, 3, 1, 2}); }},
      {"3x3 pool, channels first", images, pool(false)},
      {"3x3 pool, channels last", images_last, pool(true)},
      {"softmax over channels", images, softmax},
  };
}

}  // namespace
}  // namespace hone::bench

// Arguments: part of a subject's name; "print" to show kernels and assembly, or a number of rows to
// use instead of those below.
int main(int argc, char** argv) {
  using namespace hone;
  const std::string wanted = argc > 1 ? argv[1] : "";
  const bool is_printed = argc > 2 && std::string_view(argv[2]) == "print";
  const std::int64_t asked = argc > 2 ? std::atoll(argv[2]) : 0;
  llvm::TargetSpec spec = cpu::target_spec("native");
  for (const bench::Subject& s : bench::subjects()) {
    if (s.name.find(wanted) == std::string::npos) continue;
    for (std::int64_t rows : asked ? std::vector{asked} : std::vector<std::int64_t>{64, 4096}) {
      Function f;
      Values params;
      for (const Type& t : s.params(rows)) params.push_back(f.add_param(t, "x"));
      f.add_result(s.build(params), "y");
      bench::report(s.name, bench::compile(f, spec, is_printed));
    }
  }
}
