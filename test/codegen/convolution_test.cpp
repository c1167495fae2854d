// Convolutions of all tunings, at sizes around the tile.
#include "kernel/tiles/convolution.h"

#include <gtest/gtest.h>

#include <set>

#include "anchored_cases.h"

namespace hone::test {

namespace {

using llvm::targets;
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

Function function_of(const Case& c) {
  Function f;
  Dims x = {c.images}, w = dims_of(c.window);
  // The size of the first spatial axis may be known only at run time.
  for (std::size_t i = 0; i < c.axes(); ++i)
    x.push_back(c.symbolic && i == 0 ? Dim::symbol("in", 1, 500) : Dim(c.in[i]));
  x.push_back(c.in_channels);
  w.push_back(c.in_channels / c.groups);
  w.push_back(c.out_channels);
  const Value input = f.add_param(Type(DType::f32, Shape(x)), "x");
  const Value weights = f.add_param(Type(DType::f32, Shape(w)), "w");
  const Value y = ops::conv(Values{input, weights}, {{"strides", dims_of(c.strides)},
                                                     {"dilations", dims_of(c.dilations)},
                                                     {"groups", c.groups},
                                                     {"pads_low", dims_of(c.low)},
                                                     {"pads_high", dims_of(c.high)},
                                                     {"channels_last", 1}});
  f.add_result(y * 2.0 + 1.0);
  return f;
}

// Coordinates of a flat index.
Sizes unflatten(std::int64_t at, const Sizes& dims) {
  Sizes out(dims.size());
  for (std::size_t i = dims.size(); i-- > 0; at /= dims[i]) out[i] = at % dims[i];
  return out;
}

double expected(const Case& c, const Array& x, const Array& w, std::int64_t image,
                const Sizes& pixel, std::int64_t o) {
  const std::int64_t depth = c.in_channels / c.groups, group = o / (c.out_channels / c.groups);
  double sum = 0;
  for (std::int64_t t = 0; t < volume(c.window); ++t) {
    const Sizes tap = unflatten(t, c.window);
    std::int64_t at = image;
    bool inside = true;
    for (std::size_t i = 0; i < c.axes(); ++i) {
      const std::int64_t p = pixel[i] * c.strides[i] + tap[i] * c.dilations[i] - c.low[i];
      inside = inside && p >= 0 && p < c.in[i];
      at = at * c.in[i] + p;
    }
    for (std::int64_t i = 0; inside && i < depth; ++i)
      sum += x.real(at * c.in_channels + group * depth + i) *
             w.real((t * depth + i) * c.out_channels + o);
  }
  return 2 * sum + 1;
}

void expect_result(const Case& c, const std::vector<Array>& inputs, const Array& got) {
  Sizes out;
  for (std::size_t i = 0; i < c.axes(); ++i) out.push_back(c.out(i));
  ASSERT_EQ(got.count(), c.images * volume(out) * c.out_channels);
  const double terms = static_cast<double>(volume(c.window) * c.in_channels / c.groups);
  for (std::int64_t i = 0; i < got.count(); ++i) {
    const std::int64_t at = i / c.out_channels;
    const Sizes pixel = unflatten(at % volume(out), out);
    ASSERT_NEAR(got.real(i),
                expected(c, inputs[0], inputs[1], at / volume(out), pixel, i % c.out_channels),
                1e-6 * (terms + 4))
        << i;
  }
}

void check(const Case& c, const std::string& isa, Guard guard) {
  SCOPED_TRACE(::testing::Message() << c << " on " << isa);
  const Function f = function_of(c);
  const GroupSpec spec = spec_of(f, !c.dense);
  const std::vector<Array> inputs = random_inputs(f, {{"in", c.in[0]}});
  const auto candidate =
      convolution_candidate(spec, cpu::target_info(isa), {{"in_place", c.in_place}});
  ASSERT_TRUE(candidate);
  const CompiledCandidate compiled(*candidate, isa);
  RunOptions options{.target = isa, .guard = guard};
  const Array got = compiled.run(spec, inputs, options)[0];
  expect_result(c, inputs, got);
  // Chunks one by one, last first: the same bits.
  options.chunks_per_call = 1;
  options.backwards = true;
  const Array parts = compiled.run(spec, inputs, options)[0];
  ASSERT_TRUE(std::ranges::equal(got.bytes(), parts.bytes()));
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
  c.low = {4, 1};  // rows that read only padding
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

TEST(Convolution, EveryTuningOfTheSpace) {
  Case depthwise = square(20, 3, 1, 1, 32, 32);
  depthwise.groups = 32;
  const std::string isa = targets().back();
  const TargetInfo target = cpu::target_info(isa);
  for (const Case& c : {square(20, 3, 1, 1, 8, 40), depthwise}) {
    const Function f = function_of(c);
    const GroupSpec spec = spec_of(f);
    const std::vector<Array> inputs = random_inputs(f, {});
    const std::vector<Tuning> space = convolution_space(spec, target);
    EXPECT_GE(space.size(), 3u);
    std::set<std::string> kernels;
    for (const Tuning& t : space) {
      const auto candidate = convolution_candidate(spec, target, t);
      ASSERT_TRUE(candidate);
      kernels.insert(print(std::get<Kernel>(candidate->steps.back().what)));
      const CompiledCandidate compiled(*candidate, isa);
      expect_result(c, inputs, compiled.run(spec, inputs, {.target = isa})[0]);
    }
    EXPECT_EQ(kernels.size(), space.size());
  }
}

}  // namespace

}  // namespace hone::test
