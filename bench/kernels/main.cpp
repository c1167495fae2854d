// Contraction and convolution kernels against the multiply-add rate of this machine and against
// oneDNN, one thread each, interleaved. Prints medians.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include "backend/cpu/device/loader.h"
#include "backend/cpu/isa/isa.h"
#include "backend/cpu/target/measure.h"
#include "backend/cpu/target/processor.h"
#include "codegen/llvm/blob.h"
#include "codegen/llvm/nest.h"
#include "codegen/llvm/object.h"
#include "kernel/tiles/contraction.h"
#include "kernel/tiles/convolution.h"
#include "onednn_peer.h"
#include "ops/common.h"

namespace hone::bench {
namespace {

using Run = std::function<void()>;

// Time of this thread alone, so that other work on the machine matters less.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds_of(const Run& run, int times) {
  const double start = now();
  for (int i = 0; i < times; ++i) run();
  return (now() - start) / times;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

std::shared_ptr<float> memory(std::int64_t count) {
  auto n = static_cast<std::size_t>(count);
  auto* p = static_cast<float*>(std::aligned_alloc(4096, (n * 4 + 4095) / 4096 * 4096 + 4096));
  std::fill_n(p, n, 0.25f);
  return {p, std::free};
}

// The kernel of an unprepared candidate, compiled, on its own memory.
Run compiled(const Candidate& candidate, const llvm::TargetSpec& spec) {
  const Kernel& kernel = std::get<Kernel>(candidate.steps.back().what);
  llvm::Module m("bench", spec);
  llvm::emit_kernel(m, kernel, "kernel");
  llvm::Object objects[] = {llvm::Emitter(spec).compile(m)};
  auto loaded = std::make_shared<LoadedBinary>(load(llvm::link_objects(objects, spec.name)));
  std::vector<std::shared_ptr<float>> data;
  for (const KernelParam& p : kernel.params) data.push_back(memory(product(p.dims).number()));
  auto scratch = memory(kernel.scratch_bytes.number() / 4 + 16);
  const std::int64_t chunks = kernel.chunks.number();
  return [=] {
    std::vector<void*> pointers;
    for (const auto& p : data) pointers.push_back(p.get());
    loaded->entry("kernel")(pointers.data(), nullptr, 0, chunks, scratch.get());
  };
}

// The second parameter is a weight.
GroupSpec group_of(Function f) {
  GroupSpec spec;
  for (const Type& t : f.param_types()) spec.param_strides.push_back(dense_strides(t.shape));
  spec.result_strides = {dense_strides(f.result(0).shape())};
  spec.param_is_weight = {false, true};
  spec.function = std::move(f);
  return spec;
}

Run our_contraction(std::int64_t m, std::int64_t n, std::int64_t k, const TargetInfo& info,
                    const llvm::TargetSpec& spec) {
  Function f;
  const Value x = f.add_param(f32({m, k}), "x"), w = f.add_param(f32({k, n}), "w");
  f.add_result(ops::matmul(x, w));
  return compiled(*contraction_candidate(group_of(std::move(f)), info), spec);
}

std::int64_t volume(const std::vector<std::int64_t>& s) {
  std::int64_t n = 1;
  for (std::int64_t x : s) n *= x;
  return n;
}

Run our_convolution(const ConvShape& s, const TargetInfo& info, const llvm::TargetSpec& spec) {
  Function f;
  Dims x = {1}, w = dims_of(s.window);
  for (std::int64_t n : s.in) x.push_back(n);
  x.push_back(s.in_channels);
  w.push_back(s.in_channels / s.groups);
  w.push_back(s.out_channels);
  const Value input = f.add_param(Type(DType::f32, Shape(x)), "x"),
              weights = f.add_param(Type(DType::f32, Shape(w)), "w");
  f.add_result(ops::conv(Values{input, weights}, {{"strides", dims_of(s.strides)},
                                                  {"dilations", dims_of(s.dilations)},
                                                  {"groups", s.groups},
                                                  {"pads_low", dims_of(s.pads)},
                                                  {"pads_high", dims_of(s.pads)},
                                                  {"channels_last", 1}}));
  return compiled(*convolution_candidate(group_of(std::move(f)), info), spec);
}

void compare(const std::string& name, double flops, const Run& ours, const Run& peer) {
  const int times = std::max(1, static_cast<int>(3e7 / flops));
  ours();
  if (peer) peer();
  std::vector<double> own, other, share, ratio;
  for (int round = 0; round < 15; ++round) {
    double peak = cpu::measure_fma_gflops(1);
    double mine = seconds_of(ours, times);
    own.push_back(flops / mine / 1e9);
    share.push_back(own.back() / peak);
    if (!peer) continue;
    double theirs = seconds_of(peer, times);
    other.push_back(flops / theirs / 1e9);
    ratio.push_back(theirs / mine);
  }
  std::printf("%-44s %8.1f us %7.1f GFLOP/s %5.1f %% of peak", name.c_str(),
              flops / median(own) / 1e3, median(own), 100 * median(share));
  if (peer) std::printf("   oneDNN %7.1f GFLOP/s, ours is %.2fx", median(other), median(ratio));
  std::printf("\n");
  std::fflush(stdout);
}

std::string text(const ConvShape& s) {
  auto list = [](const std::vector<std::int64_t>& v) {
    std::string out;
    for (std::int64_t x : v) out += (out.empty() ? "" : "x") + std::to_string(x);
    return out;
  };
  return "conv " + list(s.in) + "x" + std::to_string(s.in_channels) + " " + list(s.window) + "/" +
         list(s.strides) + " d" + list(s.dilations) + " to " + std::to_string(s.out_channels) +
         (s.groups > 1 ? " g" + std::to_string(s.groups) : "");
}

ConvShape square(std::int64_t h, std::int64_t w, std::int64_t in, std::int64_t out,
                 std::int64_t window, std::int64_t stride = 1, std::int64_t pad = 0,
                 std::int64_t groups = 1, std::int64_t dilation = 1) {
  return {{h, w}, {window, window}, {stride, stride}, {dilation, dilation}, {pad, pad}, groups, in,
          out};
}

// Shapes from UltraFace (RFB-320), squeezenet and magika.
const ConvShape shapes[] = {
    square(240, 320, 3, 16, 3, 2, 1),
    square(120, 160, 16, 16, 3, 1, 1, 16),
    square(120, 160, 16, 32, 1),
    square(120, 160, 32, 32, 3, 2, 1, 32),
    square(60, 80, 32, 32, 3, 1, 1, 32),
    square(30, 40, 64, 64, 3, 1, 1, 64),
    square(30, 40, 64, 64, 1),
    square(30, 40, 64, 8, 1),
    square(30, 40, 8, 16, 3, 1, 1),
    square(30, 40, 16, 16, 3, 1, 5, 1, 5),
    square(15, 20, 128, 128, 3, 1, 1, 128),
    square(15, 20, 128, 128, 1),
    square(8, 10, 256, 256, 1),
    square(4, 5, 256, 12, 3, 1, 1),
    square(224, 224, 3, 64, 3, 2),
    square(55, 55, 16, 64, 3, 1, 1),
    square(27, 27, 32, 128, 3, 1, 1),
    square(13, 13, 64, 256, 3, 1, 1),
    square(13, 13, 512, 1000, 1),
    {{512, 1}, {5, 1}, {1, 1}, {1, 1}, {0, 0}, 1, 256, 512},
};

int main_with(const std::string& filter) {
  const std::string isa(cpu::isa_name(cpu::allowed_isa()));
  const TargetInfo info = cpu::target_info(isa);
  const llvm::TargetSpec spec = cpu::target_spec("native");
  std::optional<OneDnnPeer> peer = OneDnnPeer::open();
  std::printf("%s, one thread, multiply-add peak %.1f GFLOP/s%s\n", isa.c_str(),
              cpu::measure_fma_gflops(), peer ? "" : "; oneDNN is not installed");
  for (std::int64_t n : {64, 128, 256, 384, 512, 768, 1024}) {
    std::string name = "contraction " + std::to_string(n);
    if (name.find(filter) == std::string::npos) continue;
    double size = static_cast<double>(n);
    compare(name, 2 * size * size * size, our_contraction(n, n, n, info, spec),
            peer ? peer->matmul(n, n, n) : Run());
  }
  for (const ConvShape& s : shapes) {
    if (text(s).find(filter) == std::string::npos) continue;
    bool is_contraction = volume(s.window) == 1 && s.groups == 1;
    Run ours = is_contraction
                   ? our_contraction(volume(s.in), s.out_channels, s.in_channels, info, spec)
                   : our_convolution(s, info, spec);
    compare(text(s), s.flops(), ours, peer ? peer->convolution(s) : Run());
  }
  return 0;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::main_with(argc > 1 ? argv[1] : ""); }
