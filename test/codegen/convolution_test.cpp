#include "kernel/convolution.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "codegen/llvm/skeleton.h"
#include "guarded.h"
#include "jit.h"

namespace hone {
namespace {

using llvm::targets;
using test::Guard;
using test::GuardedBuffer;
using Sizes = std::vector<std::int64_t>;

// y = 2 * conv(x, w) + 1, channels last, w [window..., in / groups, out].
struct Case {
  std::int64_t images = 1;
  Sizes in, window, strides, dilations, low, high;
  std::int64_t groups = 1, in_channels = 1, out_channels = 1;
  bool dense = true, symbolic = false, in_place = true;

  std::size_t axes() const { return in.size(); }
  std::int64_t out(std::size_t i) const {
    return (in[i] + low[i] + high[i] - (window[i] - 1) * dilations[i] - 1) / strides[i] + 1;
  }
};

std::int64_t volume(const Sizes& s) {
  std::int64_t n = 1;
  for (std::int64_t x : s) n *= x;
  return n;
}

std::ostream& operator<<(std::ostream& out, const Case& c) {
  auto list = [&](const char* name, const Sizes& s) {
    out << " " << name;
    for (std::int64_t x : s) out << " " << x;
  };
  out << c.images << " images";
  list("in", c.in);
  list("window", c.window);
  list("strides", c.strides);
  list("dilations", c.dilations);
  list("low", c.low);
  list("high", c.high);
  return out << " groups " << c.groups << " channels " << c.in_channels << " to " << c.out_channels
             << (c.dense ? "" : " not dense") << (c.in_place ? "" : " copied")
             << (c.symbolic ? " symbolic" : "");
}

void fill(std::span<float> out, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> in(-1, 1);
  for (float& x : out) x = in(random);
}

class Compiled {
 public:
  Compiled(const Case& c, const std::string& isa) : case_(c) {
    Convolution body;
    body.images = c.images;
    for (std::size_t i = 0; i < c.axes(); ++i) {
      // Sizes known at run time: in and out of the first spatial axis.
      bool symbol = c.symbolic && i == 0;
      body.in_size.push_back(symbol ? Dim::symbol("in", 1, 500) : Dim(c.in[i]));
      body.out_size.push_back(symbol ? Dim::symbol("out", 1, 500) : Dim(c.out(i)));
      body.pads_low.push_back(c.low[i]);
    }
    body.window = c.window;
    body.strides = c.strides;
    body.dilations = c.dilations;
    body.groups = c.groups;
    body.in_channels = c.in_channels;
    body.out_channels = c.out_channels;
    body.packed_weights = 1;
    body.input_is_dense = c.dense;
    if (c.dense && c.in_place) {
      std::int64_t stride = c.in_channels;
      for (std::size_t i = c.axes(); i-- > 0; stride *= c.in[i])
        body.in_place_strides.insert(body.in_place_strides.begin(), stride);
    }
    choose_blocking(body, cpu_target_info(isa));
    kernel_.name = "convolution";
    if (c.symbolic) kernel_.sizes = {body.in_size[0], body.out_size[0]};
    kernel_.chunks = chunks_of(body);
    kernel_.body = body;
    build(llvm::target_spec(isa));
  }

  const Convolution& body() const { return std::get<Convolution>(kernel_.body); }
  std::int64_t chunks() const {
    return kernel_.chunks.eval(
        [&](std::string_view name) { return name == "in" ? case_.in[0] : case_.out(0); });
  }
  std::vector<float> packed(std::span<const float> w) const;
  void operator()(void* x, void* w, void* y, std::int64_t begin, std::int64_t end) const {
    void* buffers[] = {x, w, y};
    std::int64_t sizes[] = {case_.in[0], case_.out(0)};
    GuardedBuffer scratch(static_cast<std::size_t>((scratch_bytes(body()) + 63) / 64 * 64),
                          Guard::behind);
    loaded_.entry("convolution")(buffers, sizes, begin, end, scratch.data());
  }

 private:
  void build(const llvm::TargetSpec& spec) {
    using namespace llvm;
    Module m("test", spec);
    std::vector<Buffer> buffers(3, Buffer{.align = 4});
    KernelArguments in = m.begin_kernel("convolution", buffers);
    auto place = [&](int buffer, std::span<const llvm::Value> v, const Dims& space,
                     std::int64_t channels) {
      llvm::Value at = v[0];
      for (std::size_t i = 0; i < space.size(); ++i)
        at = at * size_of(m, in, kernel_.sizes, space[i]) + v[i + 1];
      return offset(in.buffers[static_cast<std::size_t>(buffer)], DType::f32,
                    at * channels + v.back());
    };
    LoadHole input;
    input.address = [&](auto v) { return place(0, v, body().in_size, case_.in_channels); };
    input.elements = [&](auto v, int, int lanes, auto mask) {
      EXPECT_FALSE(case_.dense);
      return mask ? load_masked(DType::f32, input.address(v), *mask)
                  : load(DType::f32, input.address(v), lanes);
    };
    StoreHole epilogue = [&](auto v, llvm::Value x, auto mask) {
      Pointer p = place(2, v, body().out_size, case_.out_channels);
      x = x * 2.0 + 1.0;
      mask ? store_masked(DType::f32, p, x, *mask) : store(DType::f32, p, x);
    };
    emit_convolution(m, kernel_, in, input, epilogue);
    m.end_kernel();
    Object objects[] = {Emitter(spec).compile(m)};
    loaded_ = load(link_objects(objects, spec.name));
  }

  Case case_;
  Kernel kernel_;
  LoadedBinary loaded_;
};

std::vector<float> Compiled::packed(std::span<const float> w) const {
  const Convolution& c = body();
  std::vector<float> out(static_cast<std::size_t>(packed_type(c).shape.count().number()));
  const std::int64_t taps = volume(c.window), depth = c.in_channels / c.groups;
  const std::int64_t in_group = c.is_depthwise() ? c.out_channels : c.out_channels / c.groups;
  const std::int64_t panels = (in_group + c.block - 1) / c.block;
  for (std::int64_t t = 0; t < taps; ++t)
    for (std::int64_t i = 0; i < depth; ++i)
      for (std::int64_t o = 0; o < c.out_channels; ++o) {
        std::int64_t panel = o / in_group * panels + o % in_group / c.block;
        std::int64_t at = ((panel * taps + t) * depth + i) * c.block + o % in_group % c.block;
        out[static_cast<std::size_t>(at)] =
            w[static_cast<std::size_t>((t * depth + i) * c.out_channels + o)];
      }
  return out;
}

// Coordinates of a flat index.
Sizes unflatten(std::int64_t at, const Sizes& dims) {
  Sizes out(dims.size());
  for (std::size_t i = dims.size(); i-- > 0; at /= dims[i]) out[i] = at % dims[i];
  return out;
}

float expected(const Case& c, std::span<const float> x, std::span<const float> w,
               std::int64_t image, const Sizes& pixel, std::int64_t o) {
  const std::int64_t depth = c.in_channels / c.groups, group = o / (c.out_channels / c.groups);
  double sum = 0;
  for (std::int64_t t = 0; t < volume(c.window); ++t) {
    Sizes tap = unflatten(t, c.window);
    std::int64_t at = image;
    bool inside = true;
    for (std::size_t i = 0; i < c.axes(); ++i) {
      std::int64_t p = pixel[i] * c.strides[i] + tap[i] * c.dilations[i] - c.low[i];
      inside = inside && p >= 0 && p < c.in[i];
      at = at * c.in[i] + p;
    }
    for (std::int64_t i = 0; inside && i < depth; ++i)
      sum += double{x[static_cast<std::size_t>(at * c.in_channels + group * depth + i)]} *
             w[static_cast<std::size_t>((t * depth + i) * c.out_channels + o)];
  }
  return static_cast<float>(2 * sum + 1);
}

std::size_t bytes_of(std::int64_t count) { return static_cast<std::size_t>(count) * 4; }

void check(const Case& c, const std::string& isa, Guard guard) {
  SCOPED_TRACE(::testing::Message() << c << " on " << isa);
  Compiled run(c, isa);
  Sizes out;
  for (std::size_t i = 0; i < c.axes(); ++i) out.push_back(c.out(i));
  GuardedBuffer x(bytes_of(c.images * volume(c.in) * c.in_channels), guard);
  GuardedBuffer y(bytes_of(c.images * volume(out) * c.out_channels), guard);
  std::vector<float> w(
      static_cast<std::size_t>(volume(c.window) * c.in_channels / c.groups * c.out_channels));
  fill(x.as<float>(), 1);
  fill(w, 2);
  std::vector<float> packed = run.packed(w);
  GuardedBuffer right(packed.size() * 4, guard);
  std::copy(packed.begin(), packed.end(), right.as<float>().begin());
  run(x.data(), right.data(), y.data(), 0, run.chunks());
  std::span<float> got = y.as<float>();
  const double terms = static_cast<double>(w.size()) / static_cast<double>(c.out_channels);
  for (std::size_t i = 0; i < got.size(); ++i) {
    auto at = static_cast<std::int64_t>(i) / c.out_channels;
    float want = expected(c, x.as<float>(), w, at / volume(out), unflatten(at % volume(out), out),
                          static_cast<std::int64_t>(i) % c.out_channels);
    ASSERT_NEAR(got[i], want, 1e-6 * (terms + 4)) << i;
  }
  std::vector<float> whole(got.begin(), got.end());
  fill(got, 3);
  for (std::int64_t i = run.chunks(); i > 0; --i) run(x.data(), right.data(), y.data(), i - 1, i);
  ASSERT_TRUE(std::equal(whole.begin(), whole.end(), got.begin()));
}

void check(Case c) {
  for (const std::string& isa : targets())
    for (bool in_place : {true, false}) {
      c.in_place = in_place;
      check(c, isa, Guard::behind);
    }
  c.in_place = true;
  check(c, targets().back(), Guard::before);
}

Case square(std::int64_t size, std::int64_t window, std::int64_t stride, std::int64_t dilation,
            std::int64_t in_channels, std::int64_t out_channels) {
  std::int64_t pad = (window - 1) * dilation / 2;
  return {.in = {size, size + 3},
          .window = {window, window},
          .strides = {stride, stride},
          .dilations = {dilation, dilation},
          .low = {pad, pad},
          .high = {pad, pad},
          .in_channels = in_channels,
          .out_channels = out_channels};
}

TEST(Convolution, WindowsAndStrides) {
  for (std::int64_t window : {1, 3, 5, 7})
    for (std::int64_t stride : {1, 2}) check(square(13, window, stride, 1, 6, 17));
}

TEST(Convolution, Dilations) {
  for (std::int64_t dilation : {2, 3, 5}) check(square(14, 3, 1, dilation, 6, 16));
}

TEST(Convolution, Channels) {
  constexpr std::int64_t channels[] = {1, 3, 6, 16, 17, 64};
  for (std::int64_t in : channels)
    for (std::int64_t out : channels) {
      Case c = square(9, 3, 1, 1, in, out);
      check(c, targets()[static_cast<std::size_t>(in + out) % targets().size()], Guard::behind);
    }
}

TEST(Convolution, AsymmetricPadding) {
  Case c = square(10, 3, 2, 1, 5, 20);
  c.low = {0, 2};
  c.high = {1, 0};
  check(c);
  c.low = {4, 1};  // rows that see nothing but padding
  check(c);
}

TEST(Convolution, NotDenseInput) {
  Case c = square(9, 3, 1, 1, 19, 8);
  c.dense = false;
  check(c);
}

TEST(Convolution, Groups) {
  for (std::int64_t groups : {2, 4}) {
    Case c = square(9, 3, 1, 1, 8, 24);
    c.groups = groups;
    check(c);
  }
}

TEST(Convolution, Depthwise) {
  for (std::int64_t channels : {3, 16, 17, 40})
    for (std::int64_t stride : {1, 2}) {
      Case c = square(11, 3, stride, 1, channels, channels);
      c.groups = channels;
      check(c);
    }
  Case c = square(11, 5, 1, 2, 20, 20);
  c.groups = 20;
  check(c);
}

TEST(Convolution, OneAxis) {
  for (std::int64_t stride : {1, 2})
    check({.in = {100},
           .window = {7},
           .strides = {stride},
           .dilations = {1},
           .low = {3},
           .high = {2},
           .in_channels = 5,
           .out_channels = 33});
}

TEST(Convolution, ThreeAxes) {
  check({.images = 2,
         .in = {5, 6, 7},
         .window = {3, 2, 3},
         .strides = {1, 2, 1},
         .dilations = {1, 1, 2},
         .low = {1, 0, 2},
         .high = {1, 1, 2},
         .in_channels = 4,
         .out_channels = 18});
}

TEST(Convolution, SizeKnownAtRunTime) {
  for (std::int64_t size : {3, 8, 20}) {
    Case c = square(size, 3, 1, 1, 6, 16);
    c.symbolic = true;
    check(c);
  }
}

TEST(Convolution, ChunksCoverLargeShapes) {
  Case c = square(60, 3, 1, 1, 32, 40);
  c.images = 2;
  check(c, targets().back(), Guard::behind);
  check(square(6, 3, 1, 1, 150, 200), targets().back(), Guard::behind);
}

}  // namespace
}  // namespace hone
