// Contraction and convolution kernels against the multiply-add rate of this machine and against
// oneDNN, one thread each, interleaved. Prints medians.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include "backend/cpu/target/measure.h"
#include "base/cpu.h"
#include "codegen/llvm/blob.h"
#include "codegen/llvm/object.h"
#include "codegen/llvm/skeleton.h"
#include "kernel/contraction.h"
#include "kernel/convolution.h"
#include "onednn_peer.h"
#include "runtime/loader.h"

namespace hone::bench {
namespace {

using Run = std::function<void()>;

// Time of this thread alone, so that other work on the machine disturbs less.
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

// The kernel compiled, over memory of its own: buffers x, packed weights, y.
Run compiled(const Kernel& kernel, const llvm::TargetSpec& spec, std::int64_t x, std::int64_t w,
             std::int64_t y,
             const std::function<void(llvm::Module&, const llvm::KernelArguments&)>& body) {
  llvm::Module m("bench", spec);
  std::vector<llvm::Buffer> buffers(3, llvm::Buffer{.align = 4});
  llvm::KernelArguments in = m.begin_kernel("kernel", buffers);
  body(m, in);
  m.end_kernel();
  llvm::Object objects[] = {llvm::Emitter(spec).compile(m)};
  auto loaded = std::make_shared<LoadedBinary>(load(llvm::link_objects(objects, spec.name)));
  std::vector<std::shared_ptr<float>> data = {memory(x), memory(w), memory(y)};
  auto scratch = memory(kernel.scratch_bytes.number() / 4 + 16);
  std::int64_t chunks = kernel.chunks.number();
  return [=] {
    void* pointers[] = {data[0].get(), data[1].get(), data[2].get()};
    loaded->entry("kernel")(pointers, nullptr, 0, chunks, scratch.get());
  };
}

llvm::StoreHole dense_store(const llvm::KernelArguments& in,
                            std::function<llvm::Value(std::span<const llvm::Value>)> at) {
  return [=](std::span<const llvm::Value> v, llvm::Value x, std::optional<llvm::Value> mask) {
    llvm::Pointer p = offset(in.buffers[2], DType::f32, at(v));
    mask ? store_masked(DType::f32, p, x, *mask) : store(DType::f32, p, x);
  };
}

Run our_contraction(std::int64_t m, std::int64_t n, std::int64_t k, const TargetInfo& info,
                    const llvm::TargetSpec& spec) {
  Contraction c;
  c.m = m;
  c.n = n;
  c.k = k;
  c.packed_b = 1;
  choose_blocking(c, {true, k, 1}, info);
  Kernel kernel;
  kernel.chunks = chunks_of(c);
  kernel.scratch_bytes = scratch_bytes(c);
  kernel.body = c;
  return compiled(kernel, spec, m * k, packed_type(c).shape.count().number(), m * n,
                  [&](llvm::Module& module, const llvm::KernelArguments& in) {
                    llvm::LoadHole a;
                    a.address = [&](std::span<const llvm::Value> v) {
                      return offset(in.buffers[0], DType::f32, v[1] * k + v[2]);
                    };
                    a.elements = [&](std::span<const llvm::Value> v, int, int lanes,
                                     std::optional<llvm::Value> mask) {
                      return mask ? load_masked(DType::f32, a.address(v), *mask)
                                  : load(DType::f32, a.address(v), lanes);
                    };
                    emit_contraction(module, kernel, in, a, {},
                                     dense_store(in, [&](auto v) { return v[1] * n + v[2]; }));
                  });
}

std::int64_t volume(const std::vector<std::int64_t>& s) {
  std::int64_t n = 1;
  for (std::int64_t x : s) n *= x;
  return n;
}

Run our_convolution(const ConvShape& s, const TargetInfo& info, const llvm::TargetSpec& spec) {
  Convolution c;
  for (std::size_t i = 0; i < s.in.size(); ++i) {
    c.in_size.push_back(s.in[i]);
    c.out_size.push_back(s.out(i));
    c.pads_low.push_back(s.pads[i]);
  }
  c.window = s.window;
  c.strides = s.strides;
  c.dilations = s.dilations;
  c.groups = s.groups;
  c.in_channels = s.in_channels;
  c.out_channels = s.out_channels;
  c.packed_weights = 1;
  c.input_is_dense = true;
  c.in_place_strides.resize(s.in.size());
  std::int64_t stride = s.in_channels;
  for (std::size_t i = s.in.size(); i-- > 0; stride *= s.in[i]) c.in_place_strides[i] = stride;
  choose_blocking(c, info);
  Kernel kernel;
  kernel.chunks = chunks_of(c);
  kernel.scratch_bytes = scratch_bytes(c);
  kernel.body = c;
  auto place = [](std::span<const llvm::Value> v, const Dims& size, std::int64_t channels) {
    llvm::Value at = v[1];
    for (std::size_t i = 1; i < size.size(); ++i) at = at * size[i].number() + v[i + 1];
    return at * channels + v.back();
  };
  std::int64_t y = s.out_channels;
  for (std::size_t i = 0; i < s.in.size(); ++i) y *= s.out(i);
  return compiled(kernel, spec, volume(s.in) * s.in_channels, packed_type(c).shape.count().number(),
                  y, [&](llvm::Module& module, const llvm::KernelArguments& in) {
                    llvm::LoadHole input;
                    input.address = [&](std::span<const llvm::Value> v) {
                      return offset(in.buffers[0], DType::f32, place(v, c.in_size, s.in_channels));
                    };
                    emit_convolution(module, kernel, in, input, dense_store(in, [&](auto v) {
                                       return place(v, c.out_size, s.out_channels);
                                     }));
                  });
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

// Of UltraFace (RFB-320), squeezenet and magika.
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
  const std::string isa(isa_name(allowed_isa()));
  const TargetInfo info = cpu_target_info(isa);
  const llvm::TargetSpec spec = llvm::target_spec("native");
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
