// Tensors with strides, tensors that outlive runs, and runs on a caller's stream, on the processor.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "runtime/device_tensor.h"
#include "runtime/dlpack.h"
#include "runtime/session.h"
#include "test/runtime/plans.h"

namespace hone::test {
namespace {

using Sizes = std::vector<std::int64_t>;

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

void expect_says(const std::string& text, std::string_view part, int line) {
  EXPECT_NE(text.find(part), std::string::npos) << "line " << line << ": " << text;
}
#define EXPECT_SAYS(text, part) expect_says(text, part, __LINE__)

// A memory of numbers 0, 1, ...
Memory<float> ramp(std::size_t count, std::size_t shift = 0) {
  Memory<float> m(count, shift);
  for (std::size_t i = 0; i < count; ++i) m[i] = static_cast<float>(i);
  return m;
}

float expected(float x, std::size_t i) { return x * 2 + 1 + static_cast<float>(i % 4 + 1); }

TEST(TensorRef, KnowsDenseLayouts) {
  EXPECT_TRUE(is_dense(Sizes{2, 3}, {}));
  EXPECT_TRUE(is_dense(Sizes{2, 3}, Sizes{3, 1}));
  EXPECT_TRUE(is_dense(Sizes{2, 1, 3}, Sizes{3, 77, 1})) << "one element has no step";
  EXPECT_TRUE(is_dense(Sizes{2, 0}, Sizes{9, 9})) << "nothing lies anywhere";
  EXPECT_TRUE(is_dense(Sizes{}, Sizes{}));
  EXPECT_FALSE(is_dense(Sizes{2, 3}, Sizes{1, 2}));
  EXPECT_FALSE(is_dense(Sizes{3}, Sizes{-1}));
}

TEST(TensorRef, KnowsElementsThatShareMemory) {
  EXPECT_TRUE(are_elements_apart(Sizes{2, 3}, Sizes{1, 2}));
  EXPECT_TRUE(are_elements_apart(Sizes{2, 3}, Sizes{-1, 2}));
  EXPECT_TRUE(are_elements_apart(Sizes{1, 3}, Sizes{0, 2}));
  EXPECT_FALSE(are_elements_apart(Sizes{2, 3}, Sizes{0, 1}));
  EXPECT_FALSE(are_elements_apart(Sizes{2, 3}, Sizes{1, 1}));
  EXPECT_FALSE(are_elements_apart(Sizes{3, 3}, Sizes{2, 1}));
  const OperandReach r = reach_of(DType::f32, Sizes{2, 3}, Sizes{-5, 2});
  EXPECT_EQ(r.begin, -20);
  EXPECT_EQ(r.end, 20);
  EXPECT_THROW(reach_of(DType::f32, Sizes{3}, Sizes{std::numeric_limits<std::int64_t>::max() / 2}),
               UserError);
}

TEST(Tensors, WithStridesAreReadAndWritten) {
  for (const std::int64_t step : {2, -3}) {
    Session s(load(scale_and_add()), {.threads = 1});
    const Sizes dims = {100}, in_strides = {step}, out_strides = {3};
    Memory<float> x = ramp(400), z = ramp(400, 4);
    float* first = x.data() + (step < 0 ? 399 : 0);
    const std::size_t room = step < 0 ? 1 : 400;
    s.bind_input(0, {DType::f32, dims, memory_of(first, room), in_strides});
    s.bind_output(0, {DType::f32, dims, memory_of(z.data(), 400), out_strides});
    EXPECT_EQ(s.memory().staging, 800u);
    for (int round = 0; round < 2; ++round) {
      s.run();
      for (std::size_t i = 0; i < 400; ++i) {
        const auto at = static_cast<std::int64_t>(i / 3) * step;
        const float now =
            i % 3 != 0 || i >= 300 ? static_cast<float>(i) : expected(first[at], i / 3);
        ASSERT_EQ(z[i], now) << "at " << i << " of step " << step;
      }
    }
    EXPECT_EQ(s.counters().staged_copies, 4);
    EXPECT_EQ(s.counters().uploaded_bytes, 0) << "the host's memory is the device's";
    // Other sizes, then dense memory, then the same again.
    const Sizes less = {10};
    s.bind_input(0, {DType::f32, less, memory_of(first, room), in_strides});
    s.bind_output(0, {DType::f32, less, memory_of(z.data(), 400), out_strides});
    s.run();
    EXPECT_EQ(z[27], expected(first[9 * step], 9));
    Memory<float> dense(10);
    s.bind_output(0, {DType::f32, less, dense.memory()});
    s.run();
    EXPECT_EQ(dense[9], z[27]);
  }
}

TEST(Tensors, LayoutsThatDoNotFitAreRefusedAndLeaveTheBinding) {
  Session s(load(scale_and_add()), {.threads = 1});
  Memory<float> x = ramp(40), z(40);
  const Sizes ten = {10}, two = {2}, zero = {0}, both = {1, 1};
  s.bind_input(0, {DType::f32, ten, x.memory(), two});
  s.bind_output(0, {DType::f32, ten, z.memory(), two});
  s.run();
  const auto in = [&](Strides strides, std::span<std::byte> memory) {
    return refusal([&] { s.bind_input(0, {DType::f32, ten, memory, strides}); });
  };
  const auto out = [&](Strides strides, std::span<std::byte> memory) {
    return refusal([&] { s.bind_output(0, {DType::f32, ten, memory, strides}); });
  };
  EXPECT_SAYS(in(both, x.memory()), "input 'x' has 2 strides, expected 1");
  EXPECT_SAYS(in(two, memory_of(x.data(), 18)), "72 bytes of memory, expected at least 76");
  EXPECT_SAYS(out(two, memory_of(z.data(), 18)), "output 'z' has 72 bytes");
  EXPECT_SAYS(out(zero, z.memory()), "in which elements share memory");
  EXPECT_EQ(in(zero, x.memory()), "accepted") << "an input may repeat elements";
  s.run();
  EXPECT_EQ(z[18], expected(x[0], 9));
  EXPECT_EQ(out(two, memory_of(x.data() + 1, 20)), "accepted");
  EXPECT_EQ(refusal([&] { s.run(); }), "accepted") << "x[0] lies before";
  EXPECT_EQ(in(two, x.memory()), "accepted");
  EXPECT_SAYS(refusal([&] { s.run(); }), "shares memory with input 'x'");
}

TEST(Tensors, OutliveRunsAndFeedTheNext) {
  const auto executable = load(scale_and_add());
  Session first(executable, {.threads = 1}), second(executable, {.threads = 1});
  const Sizes dims = {100};
  std::optional<DeviceTensor> between(DeviceTensor(executable->device(), DType::f32, dims));
  std::vector<float> numbers(100, -1);
  between->read(std::as_writable_bytes(std::span(numbers)));
  EXPECT_EQ(numbers, std::vector<float>(100, 0));
  Memory<float> x = ramp(100), z(100);
  first.bind_input(0, {DType::f32, dims, x.memory()});
  first.bind_output(0, *between);
  second.bind_input(0, *between);
  second.bind_output(0, {DType::f32, dims, z.memory()});
  between.reset();  // the sessions keep it
  first.run();
  second.run();
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(z[i], expected(expected(x[i], i), i));
  EXPECT_EQ(first.counters().staged_copies + second.counters().staged_copies, 0);
}

TEST(Tensors, OfReadOnlyMemoryAreNotWritten) {
  Session s(load(scale_and_add()), {.threads = 1});
  Memory<float> x = ramp(10), z(10);
  const Sizes dims = {10};
  DeviceTensor t({DType::f32, dims, x.memory()}, {nullptr, nullptr, true});
  s.bind_input(0, t);
  s.bind_output(0, {DType::f32, dims, z.memory()});
  EXPECT_SAYS(refusal([&] { s.bind_output(0, t); }),
              "output 'z' is bound to a tensor that is read-only");
  EXPECT_SAYS(refusal([&] { t.write(x.memory()); }), "is read-only");
  s.run();
  EXPECT_EQ(z[9], expected(9, 9)) << "the previous binding was kept";
  EXPECT_SAYS(refusal([&] { t.read(x.memory().first(8)); }), "has 40 bytes, but the memory has 8");
}

TEST(Tensors, RunsOnACallersStream) {
  const auto executable = load(scale_and_add());
  const std::shared_ptr<Stream> stream = executable->device()->open_stream();
  Session s(executable, {.threads = 1, .stream = stream});
  Memory<float> x = ramp(10, 4), z(10, 4);
  const Sizes dims = {10};
  s.bind_input(0, {DType::f32, dims, x.memory()});
  s.bind_output(0, {DType::f32, dims, z.memory()});
  const std::unique_ptr<Event> e = executable->device()->make_event();
  for (int i = 0; i < 3; ++i) {
    s.wait_for(*e);
    s.run();
    s.record(*e);
  }
  s.submit();
  s.wait();
  EXPECT_EQ(z[9], expected(9, 9));
  EXPECT_SAYS(refusal([&] { executable->device()->adopt_stream(nullptr); }),
              "device 'cpu' has no streams");
  EXPECT_SAYS(refusal([&] { executable->device()->adopt_event(nullptr); }),
              "device 'cpu' has no events");
}

}  // namespace
}  // namespace hone::test
