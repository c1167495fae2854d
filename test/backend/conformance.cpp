#include "test/backend/conformance.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <utility>

#include "base/error.h"
#include "ir/measured.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ref/compare.h"
#include "ref/evaluate.h"
#include "test/ops/harness.h"

namespace hone::test {

std::vector<std::byte> counting(std::size_t count, int first) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return out;
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "accepted";
}

std::shared_ptr<const Plan> BackendConformance::compiled(const Function& f) const {
  CompileOptions options;
  options.backend = GetParam().backend;
  options.threads = 2;
  options.cache = false;
  return std::make_shared<const Plan>(compile({"conformance", {{{}, f}}, {}}, options));
}

std::unique_ptr<Session> BackendConformance::session(std::shared_ptr<const Plan> plan) const {
  return std::make_unique<Session>(Executable::load(std::move(plan), device_),
                                   SessionOptions{.threads = 2});
}

void BackendConformance::expect_as_reference(const Function& f,
                                             const std::vector<Array>& inputs) const {
  expect_accepted(session(compiled(f))->run(inputs), f, inputs);
}

Function decoding_step(DType t) {
  constexpr std::int64_t width = 128, length = 96;
  Function f;
  const Value x = f.add_param(Type(t, {1, width}), "x"), s = f.add_param(Type(t, {width}), "s"),
              b = f.add_param(Type(t, {width}), "b"),
              w = f.add_param(Type(t, {width, 3 * width}), "w"),
              keys = f.add_param(Type(t, {length, width}), "keys", true),
              values = f.add_param(Type(t, {length, width}), "values", true),
              place = f.add_param(Type(DType::i64, {2}), "place");
  const Value row = ops::layer_norm(Values{x, s, b}, {{"axis", 1}, {"epsilon", 1e-5}}),
              all = ops::matmul(row, w);
  const auto part = [&](std::int64_t i) { return slice_axis(all, 1, i * width, width); };
  const Value k = ops::dynamic_update(Values{keys, part(1), place}),
              v = ops::dynamic_update(Values{values, part(2), place});
  const Value scores = dot_general(part(0), k, {}, {{1, 1}}) * 0.1;
  f.add_result(ops::matmul(ops::softmax(scores, {{"axis", 1}}), v) + x, "y");
  f.add_result(k, "keys");
  f.add_result(v, "values");
  return f;
}

void expect_accepted(const std::vector<Array>& got, const Function& f,
                     const std::vector<Array>& inputs) {
  const std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::stepwise),
                          wide = evaluate_wide(f, inputs, Mode::wide);
  ASSERT_EQ(got.size(), strict.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Comparison c = accept(got[i], strict[i], wide[i]);
    EXPECT_TRUE(c.ok) << "result " << i << ": " << c;
  }
}

namespace {

std::vector<std::byte> downloaded(Stream& s, DeviceMemory from, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  s.download(out, from);
  s.synchronize();
  return out;
}

// y = 2 x + 1 over f32[n].
Function scaled() {
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 0, 1 << 20)}), "x");
  f.add_result(x * 2.0 + 1.0, "y");
  return f;
}

Array ramp(std::int64_t n) {
  Array a = Array::zeros(DType::f32, {n});
  for (std::int64_t i = 0; i < n; ++i) a.set_real(i, static_cast<double>(i % 100));
  return a;
}

}  // namespace

TEST_P(BackendConformance, IsNamedAndRunsItsOwnTarget) {
  EXPECT_EQ(device_->name(), GetParam().backend->name);
  EXPECT_FALSE(device_->description().empty());
  EXPECT_GT(device_->rank(device_->description()), 0);
  EXPECT_EQ(device_->rank("any"), 0);
  EXPECT_EQ(device_->rank("no-such-target"), -1);
  const std::size_t alignment = device_->limits().alignment;
  EXPECT_GE(alignment, 8u);
  EXPECT_EQ(alignment & (alignment - 1), 0u) << "a power of two";
}

TEST_P(BackendConformance, AllocationsAreAlignedAndApart) {
  const std::unique_ptr<Stream> s = device_->open_stream();
  std::vector<OwnedMemory> all;
  for (std::size_t bytes : {1, 63, 64, 65, 4096, 100'000}) all.push_back(memory(bytes));
  for (std::size_t i = 0; i < all.size(); ++i) {
    s->fill(all[i].at(), static_cast<std::byte>(i), all[i].size());
    if (!device_->shares_host_memory()) continue;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device_->host_address(all[i].at())) %
                  device_->limits().alignment,
              0u);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<std::byte> got = downloaded(*s, all[i].at(), all[i].size());
    EXPECT_EQ(std::ranges::count(got, static_cast<std::byte>(i)), std::ssize(got)) << i;
  }
}

TEST_P(BackendConformance, TheHostReachesMemoryOnlyWhereTheDeviceSaysSo) {
  const OwnedMemory m = memory(64);
  alignas(4096) static std::byte host[64];
  EXPECT_EQ(device_->host_address(m.at()) != nullptr, device_->shares_host_memory());
  EXPECT_EQ(device_->of_host(host).has_value(), device_->shares_host_memory());
  EXPECT_FALSE(device_->of_host(host + 1).has_value()) << "is not aligned";
  if (!device_->shares_host_memory()) return;
  EXPECT_EQ(device_->host_address(*device_->of_host(host) + 3), host + 3);
}

TEST_P(BackendConformance, UploadsDownloadsCopiesAndFillsAtOffsets) {
  const std::unique_ptr<Stream> s = device_->open_stream();
  const OwnedMemory a = memory(1000), b = memory(1000);
  const std::vector<std::byte> bytes = counting(300, 7);
  s->fill(a.at(), std::byte{0xee}, a.size());
  s->fill(b.at(), std::byte{0xdd}, b.size());
  s->upload(a.at() + 5, bytes);
  s->copy(b.at() + 100, a.at() + 5, bytes.size());
  s->fill(b.at() + 110, std::byte{1}, 3);
  const std::vector<std::byte> got = downloaded(*s, b.at(), b.size());
  EXPECT_EQ(got[99], std::byte{0xdd});
  EXPECT_EQ(got[100], bytes[0]);
  EXPECT_EQ(got[112], std::byte{1});
  EXPECT_EQ(got[113], bytes[13]);
  EXPECT_EQ(got[399], bytes[299]);
  EXPECT_EQ(got[400], std::byte{0xdd});
  EXPECT_EQ(downloaded(*s, a.at() + 4, 1)[0], std::byte{0xee});
  s->upload(a.at(), {});
  s->download({}, a.at());
  s->copy(b.at(), a.at(), 0);
  s->fill(a.at(), std::byte{0}, 0);
  EXPECT_EQ(downloaded(*s, a.at() + 4, 1)[0], std::byte{0xee});
}

TEST_P(BackendConformance, StridedCopiesTransposeAndRepeat) {
  const std::unique_ptr<Stream> s = device_->open_stream();
  const OwnedMemory from = memory(6), to = memory(6);
  const std::vector<std::byte> six = counting(6);
  s->upload(from.at(), six);
  // [2, 3] of bytes to [3, 2].
  const auto transpose = device_->bind(StridedCopy{1, {2, 3}, {1, 2}, {3, 1}});
  const DeviceMemory operands[] = {from.at(), to.at()};
  s->call(*transpose, operands, false);
  const int expected[] = {0, 3, 1, 4, 2, 5};
  std::vector<std::byte> got = downloaded(*s, to.at(), 6);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::to_integer<int>(got[i]), expected[i]);
  // One element pair, repeated.
  const auto repeat = device_->bind(StridedCopy{2, {3}, {2}, {0}});
  s->call(*repeat, operands, false);
  got = downloaded(*s, to.at(), 6);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(std::to_integer<int>(got[i]), static_cast<int>(i % 2));
  const auto none = device_->bind(StridedCopy{4, {5, 0}, {4, 4}, {4, 4}});
  s->call(*none, operands, false);
  s->synchronize();
}

TEST_P(BackendConformance, AStreamRunsInOrder) {
  const std::unique_ptr<Stream> s = device_->open_stream();
  const OwnedMemory a = memory(64), b = memory(64);
  for (int round = 0; round < 200; ++round) {
    s->fill(a.at(), static_cast<std::byte>(round), 64);
    s->copy(b.at(), a.at(), 64);
  }
  EXPECT_EQ(downloaded(*s, b.at(), 64), std::vector<std::byte>(64, std::byte{199}));
}

TEST_P(BackendConformance, EventsPutStreamsInOrder) {
  const std::unique_ptr<Stream> first = device_->open_stream(), second = device_->open_stream();
  const std::unique_ptr<Event> written = device_->make_event(), read = device_->make_event();
  const OwnedMemory a = memory(64), b = memory(64);
  second->wait(*written);  // never recorded: nothing to wait for
  written->synchronize();
  for (int round = 0; round < 100; ++round) {
    first->wait(*read);
    first->fill(a.at(), static_cast<std::byte>(round), 64);
    first->record(*written);
    second->wait(*written);
    second->copy(b.at(), a.at(), 64);
    second->record(*read);
    if (round % 10 != 0) continue;
    EXPECT_EQ(downloaded(*second, b.at(), 64),
              std::vector<std::byte>(64, static_cast<std::byte>(round)));
  }
  read->synchronize();
  first->synchronize();
  second->synchronize();
}

TEST_P(BackendConformance, EventsMeasureTimeWhereTheDeviceHasAClock) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<Stream> s = device_->open_stream();
  const std::unique_ptr<Event> begin = device_->make_event(true), end = device_->make_event(true),
                               other = device_->make_event();
  constexpr std::size_t bytes = 16 << 20;
  const OwnedMemory a = memory(bytes);
  for (int value = 0; value < 2; ++value) {
    const Clock::time_point start = Clock::now();
    s->record(*begin);
    s->fill(a.at(), static_cast<std::byte>(value), bytes);
    s->record(*end);
    s->record(*other);
    s->synchronize();
    const double most = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    EXPECT_FALSE(other->ms_since(*begin)) << "it was not made to have a time";
    EXPECT_FALSE(end->ms_since(*other));
    const std::optional<double> ms = end->ms_since(*begin);
    EXPECT_EQ(ms.has_value(), GetParam().has_clock);
    if (!ms) continue;
    EXPECT_GT(*ms, 0);
    EXPECT_LE(*ms, most);
  }
}

TEST_P(BackendConformance, AMissingWaitIsFound) {
  if (!GetParam().finds_missing_waits) GTEST_SKIP() << "work is finished when a call returns";
  const std::unique_ptr<Stream> first = device_->open_stream(), second = device_->open_stream();
  const OwnedMemory a = memory(64), b = memory(64);
  const auto says = [&](const std::function<void()>& f) {
    const std::string out = refusal(f);
    first->synchronize();
    second->synchronize();
    return out;
  };
  first->fill(a.at(), std::byte{1}, 64);
  EXPECT_NE(says([&] { second->copy(b.at(), a.at(), 64); }).find("does not wait"),
            std::string::npos);
  first->copy(b.at(), a.at(), 64);
  EXPECT_NE(says([&] { second->fill(a.at(), std::byte{2}, 64); }).find("does not wait"),
            std::string::npos);
  first->fill(a.at(), std::byte{1}, 32);
  EXPECT_EQ(says([&] { second->fill(a.at() + 32, std::byte{2}, 32); }), "accepted") << "apart";
}

TEST_P(BackendConformance, LaunchesReadSizesAndOperandsWhereTheyLie) {
  const std::shared_ptr<const Plan> plan = compiled(scaled());
  const Variant& v = plan->main().variants[0];
  EXPECT_EQ(v.devices[0].name, device_->name());
  ASSERT_EQ(v.steps.size(), 1u);
  const Step& step = v.steps[0];
  const PlanKernel& kernel = plan->kernels[step.index];
  const auto program = device_->load(std::array{&plan->binaries[kernel.binary]}, "test");
  EXPECT_GT(program->bytes(), 0u);
  const std::unique_ptr<Stream> s = device_->open_stream(make_thread_pool({.threads = 2}));
  for (std::int64_t n : {1, 7, 1000, 100'000}) {
    const auto value = [&](const Dim& d) {
      return d.is_number() ? d.number() : d.eval([&](std::string_view) { return n; });
    };
    const Array x = ramp(n);
    const OwnedMemory from = memory(x.bytes().size() + 128), to = memory(x.bytes().size() + 128);
    s->upload(from.at() + 128, x.bytes());
    std::vector<std::int64_t> sizes;
    for (const Dim& d : step.scalars) sizes.push_back(value(d));
    std::vector<DeviceMemory> operands;
    for (std::size_t i = 0; i < step.operands.size(); ++i)
      operands.push_back((step.written[i] ? to.at() : from.at()) + 128);
    s->reserve_scratch(static_cast<std::size_t>(value(step.scratch_bytes)));
    Launch launch{.entry = program->entry(kernel.entry), .operands = operands};
    launch.sizes = sizes.data();
    launch.chunks = value(step.chunks);
    launch.scratch_bytes = static_cast<std::size_t>(value(step.scratch_bytes));
    s->launch(launch);
    Array y = Array::zeros(DType::f32, {n});
    s->download(y.writable_bytes(), to.at() + 128);
    s->synchronize();
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(y.real(i), 2 * x.real(i) + 1) << i << " of " << n;
  }
}

// All threads copy the operand, then one of them stores to an element that another thread copied.
TEST_P(BackendConformance, AStoreFollowsTheCopyThatItChanges) {
  Function f;
  const Value x = f.add_param(f32({45}), "x"), at = f.add_param(Type(DType::i64, Shape{1}), "at");
  const Value one = scalar(f.graph(), 1000, DType::f32);
  f.add_result(ops::scatter_nd(std::vector<Value>{x, at, one}, {{"kind", "set"}}), "y");
  for (std::int64_t i : {0, 7, 41, 44, -1}) {
    Array place = Array::zeros(DType::i64, {1});
    place.set_integer(0, i);
    expect_as_reference(f, {ramp(45), place});
  }
}

TEST_P(BackendConformance, InfinitiesAreKept) {
  Function f;
  const Value x = f.add_param(f32({6}), "x");
  f.add_result(ops::gelu_tanh(x), "gelu_tanh");
  Array a = Array::zeros(DType::f32, {6});
  const double numbers[] = {-INFINITY, INFINITY, NAN, -0.0, -1e30, 2};
  for (std::int64_t i = 0; i < 6; ++i) a.set_real(i, numbers[i]);
  expect_as_reference(f, {a});
}

TEST_P(BackendConformance, RefusesByName) {
  const std::shared_ptr<const Plan> plan = compiled(scaled());
  const Binary& good = plan->binaries[0];
  const auto program = device_->load(std::array{&good}, "test");
  EXPECT_NE(refusal([&] { program->entry("nosuch"); }).find("nosuch"), std::string::npos);
  Binary renamed = good;
  renamed.entries[0].name = "another";
  const auto both = device_->load(std::array{&good, &std::as_const(renamed)}, "test");
  EXPECT_NE(both->entry(good.entries[0].name), both->entry("another"));
  Binary other = good;
  other.target = "no-such-target";
  EXPECT_NE(refusal([&] {
              device_->load(std::array{&std::as_const(other)}, "other.hone");
            }).find("other.hone"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              device_->bind(CallRequest{"nosuch.function", {}, {}});
            }).find("nosuch.function"),
            std::string::npos);
}

TEST_P(BackendConformance, TwoSessionsRunAtOnce) {
  const std::shared_ptr<const Plan> plan = compiled(scaled());
  const auto executable = Executable::load(plan, device_);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      Session s(executable, {.threads = 1});
      for (int i = 0; i < 20; ++i) {
        const Array x = ramp(100 * (i + 1) + t);
        const Array y = s.run(std::span(&x, 1))[0];
        wrong += y.real(x.count() - 1) != 2 * x.real(x.count() - 1) + 1;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// A session may record its steps, or its one step (0 layers), after some runs, with the addresses
// of that time.
TEST_P(BackendConformance, RunsAgainWithOtherNumbersAndPlaces) {
  for (const int layers : {0, 3}) {
    Function f;
    const Value x = f.add_param(f32({8, 16}), "x"), w = f.add_param(f32({16, 16}), "w");
    Value y = layers > 0 ? x : reshape_to(w, {2, 8, 16}) * broadcast_to(x, {2, 8, 16});
    for (int i = 0; i < layers; ++i) y = ops::softmax(ops::matmul(y, w), {{"axis", 1}}) + x;
    f.add_result(y, "y");
    const std::unique_ptr<Session> s = session(compiled(f));
    std::vector<Array> kept;
    for (int round = 0; round < 8; ++round) {
      const std::vector<Array> inputs = {
          harness::filled(x.type(), [&](DType) { return 0.01 * (round + 1); }),
          harness::filled(w.type(),
                          [&, i = 0](DType) mutable { return 0.1 * ((i += 7) % 11) - round; })};
      // The same addresses for some rounds, then others.
      if (round % 4 == 0) kept = inputs;
      for (std::size_t i = 0; i < 2; ++i)
        std::ranges::copy(inputs[i].bytes(), kept[i].writable_bytes().begin());
      expect_accepted(s->run(kept), f, kept);
    }
    EXPECT_EQ(s->counters().runs, 8);
    EXPECT_EQ(s->counters().launches % 8, 0);
  }
}

// compute() copies only newly bound inputs; fetch() copies the results.
TEST_P(BackendConformance, ComputesAgainWithoutCopies) {
  Function f;
  const Value x = f.add_param(f32({64}), "x"), w = f.add_param(f32({64}), "w");
  f.add_result(x * w + 1.0, "y");
  const std::unique_ptr<Session> s = session(compiled(f));
  std::vector<Array> inputs = {ramp(64), ramp(64)};
  Array y = Array::zeros(DType::f32, {64});
  for (std::size_t i = 0; i < 2; ++i) s->bind_input(i, as_input(inputs[i]));
  s->bind_output(0, {DType::f32, y.dims(), y.writable_bytes()});
  EXPECT_NE(refusal([&] { s->fetch(); }).find("no results"), std::string::npos);
  const std::int64_t one = device_->shares_host_memory() ? 0 : 1;
  for (int round = 0; round < 5; ++round) {
    s->compute();
    EXPECT_EQ(s->counters().staged_copies, 2 * one);
  }
  s->fetch();
  EXPECT_EQ(s->counters().staged_copies, 3 * one);
  expect_accepted({y}, f, inputs);
  // Only inputs that are bound again are copied.
  std::ranges::copy(Array::zeros(DType::f32, {64}).bytes(), inputs[1].writable_bytes().begin());
  s->bind_input(1, as_input(inputs[1]));
  s->compute();
  s->fetch();
  EXPECT_EQ(s->counters().staged_copies, 5 * one);
  expect_accepted({y}, f, inputs);
  // trim() discards staged inputs, so they are copied again; run() copies everything.
  s->trim();
  s->compute();
  EXPECT_EQ(s->counters().staged_copies, 7 * one);
  s->run();
  EXPECT_EQ(s->counters().staged_copies, 10 * one);
  expect_accepted({y}, f, inputs);
}

// Sizes that are multiples of the tiles, and others. Rows of more elements than one GPU block
// holds, and many rows that are read in vectors.
TEST_P(BackendConformance, LongRowsAreAsTheReferenceSays) {
  const char* set = std::getenv("HONE_CONFORMANCE");
  const bool is_full = set && std::string_view(set) == "full";
  const auto wave = [](const Type& t, int step) {
    return harness::filled(
        t, [i = 0, step](DType) mutable { return 0.01 * ((i += step) % 1009) - 5; });
  };
  std::vector<Type> types = {f32({2, 65536}), Type(DType::bf16, {600, 2048})};
  if (is_full)
    for (DType t : {DType::f32, DType::f16, DType::bf16})
      for (std::int64_t row : {32768, 49152, 65536, 131072, 262144})
        types.push_back(Type(t, {3, row}));
  for (const Type& t : types) {
    SCOPED_TRACE(cat(t));
    Function softmax, norm;
    softmax.add_result(ops::softmax(softmax.add_param(t, "x"), {{"axis", 1}}), "y");
    expect_as_reference(softmax, {wave(t, 7)});
    const Value x = norm.add_param(t, "x");
    const Type row(t.dtype, {t.shape[1]});
    norm.add_result(ops::layer_norm(Values{x, norm.add_param(row, "s"), norm.add_param(row, "b")},
                                    {{"axis", 1}, {"epsilon", 1e-5}}),
                    "y");
    expect_as_reference(norm, {wave(t, 5), wave(row, 3), wave(row, 11)});
  }
  // Rows that are -infinity in most places, in all, and rows with infinity and NaN.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Type special = f32({4, 65536});
  Array x = wave(special, 7);
  for (std::int64_t i = 0; i < 65536; ++i) {
    if (i % 4096 != 100) x.set_real(i, -infinity);
    x.set_real(65536 + i, -infinity);
  }
  x.set_real(2 * 65536 + 5000, infinity);
  x.set_real(3 * 65536 + 5000, std::numeric_limits<double>::quiet_NaN());
  Function f;
  f.add_result(ops::softmax(f.add_param(special, "x"), {{"axis", 1}}), "y");
  expect_as_reference(f, {x});
}

// All loops of a softmax must see the same rounded elements. If the maximum is taken over unrounded
// ones, x - max is positive for large numbers and exp overflows. The slice prevents the loops from
// sharing the whole product: they share only the logarithm.
TEST_P(BackendConformance, RowsOfLargeHalvesAreAsTheReferenceSays) {
  for (const std::int64_t row : {2, 40, 3000}) {
    const Type t(DType::bf16, {5, row}), place(DType::i32, {2});
    Function f;
    const Value x = f.add_param(t, "x"), by = f.add_param(t, "by"), at = f.add_param(place, "at");
    const Value one = ops::dynamic_slice(Values{by, at}, {{"sizes", Dims{1, row}}});
    f.add_result(ops::softmax(ops::log(x) * broadcast_to(one, t.shape), {{"axis", 1}}), "y");
    expect_as_reference(
        f, {harness::filled(t, [i = 0](DType) mutable { return 1.1 + ++i % 997; }),
            harness::filled(t, [](DType) { return 1e9; }), Array::zeros(DType::i32, {2})});
  }
}

// Both conversions are in one kernel and the number stays in a register. 1e30 is infinite in f16,
// and 1.0004 is rounded to 1.
TEST_P(BackendConformance, NumbersThatBecomeHalvesAreRounded) {
  for (const DType half : {DType::f16, DType::bf16}) {
    const Type t(DType::f32, {40, 64});
    Function f;
    const Value x = cast_to(cast_to(f.add_param(t, "x"), half), DType::f32);
    f.add_result(ops::abs(x), "y");
    f.add_result(ops::softmax(cast_to(x, half), {{"axis", 1}}), "z");
    expect_as_reference(f, {harness::filled(t, [i = 0](DType) mutable {
                          constexpr double all[] = {1e30, 1.0004, -65519, 65520, 3e-6, 1e-8, 2};
                          return all[++i % std::size(all)];
                        })});
  }
}

// With a stride of 2 there is one window, and it does not contain the only element.
TEST_P(BackendConformance, AWindowMayLieInThePaddingAlone) {
  Function f;
  const Value x = f.add_param(f32({1, 1, 1}), "x"), w = f.add_param(f32({2, 1, 1}), "w");
  const auto padded = [&](std::int64_t low, std::int64_t high) {
    return ops::conv(Values{x, w}, {{"strides", Dims{2}},
                                    {"dilations", Dims{1}},
                                    {"pads_low", Dims{low}},
                                    {"pads_high", Dims{high}},
                                    {"groups", std::int64_t{1}},
                                    {"channels_last", std::int64_t{0}}});
  };
  f.add_result(padded(1, 0), "before");
  f.add_result(padded(2, 1), "both");
  expect_as_reference(f, {harness::filled(f32({1, 1, 1}), [](DType) { return 3.0; }),
                          harness::filled(f32({2, 1, 1}), [](DType) { return 0.5; })});
}

// The product of an f16 constant and an f64 number needs all digits of the constant.
TEST_P(BackendConformance, ConstantsOfNarrowTypesAreExact) {
  Function f;
  const Type t(DType::f16, {2, 5, 1});
  const Value x = f.add_param(t, "x");
  const Array weight = harness::filled(Type(DType::f16, {1, 1, 1}), [](DType) { return -1.2051; });
  f.add_result(
      ops::conv(Values{x, constant(f.graph(), weight)}, {{"dtype", DType::f64},
                                                         {"strides", Dims{1}},
                                                         {"dilations", Dims{1}},
                                                         {"pads_low", Dims{2}},
                                                         {"pads_high", Dims{1}},
                                                         {"groups", std::int64_t{1}},
                                                         {"channels_last", std::int64_t{1}}}),
      "y");
  expect_as_reference(f, {harness::filled(t, [i = 0](DType) mutable { return 0.9 + 0.1 * ++i; })});
}

TEST_P(BackendConformance, ProductsOfHalvesAreAsTheReferenceSays) {
  const auto wave = [](const Type& t, int step) {
    return harness::filled(t,
                           [i = 0, step](DType) mutable { return 0.1 * ((i += step) % 13) - 0.6; });
  };
  for (DType t : {DType::f16, DType::bf16})
    for (const auto& [m, n, k] : {std::array{64, 128, 96}, {33, 19, 21}, {16, 256, 512}}) {
      Function f;
      const Type left(t, {m, k}), right(t, {k, n});
      const Value a = f.add_param(left, "a"), b = f.add_param(right, "b");
      f.add_result(ops::gelu_tanh(ops::matmul(a, b)), "y");
      expect_as_reference(f, {wave(left, 5), wave(right, 7)});
    }
  for (const std::int64_t window : {1, 3}) {
    Function f;
    const Type x(DType::f16, {2, 16, 12, 12}), w(DType::f16, {24, 16, window, window});
    const Dims pads = {window / 2, window / 2}, ones = {1, 1};
    const Value image = f.add_param(x, "x"), weights = f.add_param(w, "w");
    f.add_result(ops::relu(ops::conv(Values{image, weights}, {{"strides", ones},
                                                              {"dilations", ones},
                                                              {"pads_low", pads},
                                                              {"pads_high", pads},
                                                              {"groups", std::int64_t{1}},
                                                              {"channels_last", std::int64_t{0}}})),
                 "y");
    expect_as_reference(f, {wave(x, 5), wave(w, 7)});
  }
}

TEST_P(BackendConformance, ADecodingStepIsAsTheReferenceSays) {
  for (const DType t : {DType::f32, DType::f16}) {
    SCOPED_TRACE(t);
    const Function f = decoding_step(t);
    std::vector<Array> inputs;
    for (std::size_t i = 0; i + 1 < f.params().size(); ++i)
      inputs.push_back(harness::filled(f.param(i).type(), [n = static_cast<int>(i)](DType) mutable {
        return 0.02 * ((n += 37) % 101) - 1;
      }));
    inputs.push_back(Array::zeros(DType::i64, {2}));
    inputs.back().set_integer(0, 41);
    expect_as_reference(f, inputs);
  }
}

// A long epilogue of a product is applied to a thread's tile row by row.
TEST_P(BackendConformance, LongFunctionsOfProductsAreAsTheReferenceSays) {
  for (const auto& [m, n, k] : {std::array{64, 128, 96}, {33, 19, 21}, {2, 70, 5}}) {
    Function f;
    const Type left(DType::f32, {m, k}), right(DType::f32, {k, n});
    const Value a = f.add_param(left, "a"), b = f.add_param(right, "b"), y = ops::matmul(a, b);
    f.add_result(ops::gelu(y) * ops::tanh(ops::sin(y)), "y");
    const auto wave = [](const Type& t, int step) {
      return harness::filled(
          t, [i = 0, step](DType) mutable { return 0.1 * ((i += step) % 13) - 0.6; });
    };
    expect_as_reference(f, {wave(left, 5), wave(right, 7)});
  }
}

TEST_P(BackendConformance, ConstantsArePreparedAndReadOnTheDevice) {
  Function f;
  const Value x = f.add_param(f32({3, 40}), "x");
  Array w = Array::zeros(DType::f32, {40, 50});
  for (std::int64_t i = 0; i < w.count(); ++i) w.set_real(i, static_cast<double>(i % 17) - 8);
  f.add_result(ops::matmul(x, constant(f.graph(), w)), "y");
  Array input = Array::zeros(DType::f32, {3, 40});
  for (std::int64_t i = 0; i < input.count(); ++i) input.set_real(i, static_cast<double>(i % 5));
  expect_as_reference(f, {input});
}

// Decisions of the host while a function runs: a branch and a data-dependent size, also in a loop.
TEST_P(BackendConformance, TheHostReadsWhatItDecidesBy) {
  auto go = std::make_shared<Function>(), next = std::make_shared<Function>();
  for (Function* f : {go.get(), next.get()})
    f->add_param(i64({}), "round"), f->add_param(f32({}), "sum"), f->add_param(f32({5}), "x");
  const auto number = [](Function& f, std::int64_t n) {
    return constant(f.graph(), Array::scalar_int(n, DType::i64));
  };
  go->add_result(ops::lt(go->param(0), number(*go, 5)));
  const Dim s = Dim::symbol("round.n", 0, 5);
  ops::measure(next->param(0), {{"symbol", Dims{s}}, {"high", Dims{5}}});
  const Value part = reduce_axes(ops::reduce_sum, slice_axis(next->param(2), 0, 0, s) * 3, {0});
  next->add_result(ops::add(next->param(0), number(*next, 1)));
  next->add_result(next->param(1) + part);
  Function f;
  const Value x = f.add_param(f32({5}), "x");
  f.add_result(
      ops::while_loop(std::vector<Value>{number(f, 0), scalar(f.graph(), 0, DType::f32), x},
                      {{"condition", FunctionRef(go)}, {"body", FunctionRef(next)}})
          .result(1),
      "sum");
  expect_as_reference(f, {ramp(5)});
}

TEST_P(BackendConformance, SizesThatDataDecidesAreReadTogether) {
  Function f;
  const Value x = f.add_param(f32({8}), "x"), a = f.add_param(i64({}), "a"),
              b = f.add_param(i64({}), "b");
  const Dim m = Dim::symbol("m", 0, 8), n = Dim::symbol("n", 0, 8);
  ops::measure(a, {{"symbol", Dims{m}}, {"high", Dims{8}}});
  ops::measure(b, {{"symbol", Dims{n}}, {"high", Dims{8}}});
  f.add_result(slice_axis(x + x, 0, 0, m), "front");
  f.add_result(slice_axis(x * 3.0, 0, 0, n), "other");
  const std::shared_ptr<const Plan> plan = compiled(f);
  const std::unique_ptr<Session> run = session(plan);
  for (auto [first, second] : {std::pair(3, 8), std::pair(0, 1), std::pair(3, 2)}) {
    const std::vector<Array> got = run->run(std::vector<Array>{
        ramp(8), Array::scalar_int(first, DType::i64), Array::scalar_int(second, DType::i64)});
    EXPECT_EQ(got[0].dims(), std::vector<std::int64_t>{first});
    EXPECT_EQ(got[1].dims(), std::vector<std::int64_t>{second});
    if (second > 1) {
      EXPECT_EQ(got[1].real(1), 3);
    }
  }
  EXPECT_NE(refusal([&] {
              run->run(std::vector<Array>{ramp(8), Array::scalar_int(2, DType::i64),
                                          Array::scalar_int(9, DType::i64)});
            }).find("for these inputs"),
            std::string::npos);
}

}  // namespace hone::test
