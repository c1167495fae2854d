// Memory where the caller has it: on every backend, tensors on the device, strides, streams of the
// caller and the order between them.
#include <numeric>

#include "compile/program.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "runtime/device_tensor.h"
#include "runtime/state.h"
#include "test/backend/conformance.h"
#include "test/far/far.h"
#include "test/ops/harness.h"

namespace hone::test {

namespace {

using GridSizes = std::vector<std::int64_t>;
constexpr std::int64_t rows = 6, columns = 32;
const GridSizes grid = {rows, columns};

// y = 2 x + 1 over f32[6,32].
Function twice_and_one() {
  Function f;
  const Value x = f.add_param(f32({rows, columns}), "x");
  f.add_result(x * 2.0 + 1.0, "y");
  return f;
}

std::vector<float> ascending(std::size_t count) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

std::vector<float> floats_of(const DeviceTensor& t) {
  std::vector<float> out(t.bytes() / sizeof(float));
  t.read(std::as_writable_bytes(std::span(out)));
  return out;
}

void set_floats(DeviceTensor& t, const std::vector<float>& values) {
  t.write(std::as_bytes(std::span(values)));
}

// x times 2^n plus 2^n - 1.
std::vector<float> after_runs(std::vector<float> x, int n) {
  for (; n > 0; --n)
    for (float& v : x) v = v * 2 + 1;
  return x;
}

struct Moved {
  std::int64_t bytes;
  explicit Moved(const Session& s)
      : bytes(s.counters().uploaded_bytes + s.counters().downloaded_bytes) {}
};

}  // namespace

TEST_P(BackendConformance, ResultsStayOnTheDeviceForTheNextSession) {
  const auto executable = Executable::load(compiled(twice_and_one()), device_);
  Session first(executable, {.threads = 1}), second(executable, {.threads = 1});
  DeviceTensor a(device_, DType::f32, grid), b(device_, DType::f32, grid),
      c(device_, DType::f32, grid, DeviceTensor::Start::uninitialized);
  EXPECT_EQ(floats_of(a), std::vector<float>(rows * columns, 0));
  set_floats(a, ascending(rows * columns));
  first.bind_input(0, a);
  first.bind_output(0, b);
  second.bind_input(0, b);
  second.bind_output(0, c);
  for (int i = 0; i < 5; ++i) {
    first.run();
    second.run();
  }
  EXPECT_EQ(floats_of(c), after_runs(ascending(rows * columns), 2));
  for (const Session* s : {&first, &second}) {
    EXPECT_EQ(Moved(*s).bytes, 0);
    EXPECT_EQ(s->counters().staged_copies, 0);
  }
  EXPECT_NE(refusal([&] {
              first.bind_output(0, a);
              first.run();
            }).find("output 'y' shares memory with input 'x'"),
            std::string::npos);
}

TEST_P(BackendConformance, TensorsOnTheDeviceMayHaveStridesAndBeginAnywhere) {
  const auto executable = Executable::load(compiled(twice_and_one()), device_);
  Session s(executable, {.threads = 1});
  // A transposed view, and every second element of what begins at an odd element.
  constexpr std::int64_t room = 2 * rows * columns + 1;
  DeviceTensor all(device_, DType::f32, GridSizes{room}),
      results(device_, DType::f32, GridSizes{room});
  set_floats(all, ascending(room));
  const GridSizes transposed = {1, rows}, spaced = {2 * columns, 2}, reversed = {columns, -1};
  const auto view = [&](const DeviceTensor& of, std::int64_t element, const GridSizes& strides) {
    TensorRef t{DType::f32, grid};
    t.strides = strides;
    t.device = device_.get();
    t.at = of.ref().at + element * 4;
    return t;
  };
  const auto check = [&](std::int64_t in, const GridSizes& in_strides, std::int64_t out,
                         const GridSizes& out_strides) {
    set_floats(results, std::vector<float>(room, -1));
    s.bind_input(0, view(all, in, in_strides));
    s.bind_output(0, view(results, out, out_strides));
    for (int i = 0; i < 4; ++i) s.run();
    std::vector<float> expected(room, -1);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        expected[static_cast<std::size_t>(out + i * out_strides[0] + j * out_strides[1])] =
            static_cast<float>(2 * (in + i * in_strides[0] + j * in_strides[1]) + 1);
    EXPECT_EQ(floats_of(results), expected) << in << " " << out;
  };
  const GridSizes dense = {columns, 1};
  check(0, transposed, 0, dense);
  check(1, dense, 1, spaced);
  check(columns - 1, reversed, 0, transposed);
  check(0, dense, 3, dense);
  EXPECT_EQ(Moved(s).bytes, 0) << "copied on the device";
  EXPECT_GT(s.counters().staged_copies, 0);
}

TEST_P(BackendConformance, TensorsOfTheHostMayHaveStrides) {
  const auto executable = Executable::load(compiled(twice_and_one()), device_);
  Session s(executable, {.threads = 1});
  std::vector<float> x = ascending(rows * columns), y(2 * rows * columns, -1);
  const GridSizes transposed = {1, rows}, spaced = {2 * columns, 2};
  s.bind_input(0, {DType::f32, grid, memory_of(x.data(), x.size()), transposed});
  s.bind_output(0, {DType::f32, grid, memory_of(y.data(), y.size()), spaced});
  for (int i = 0; i < 4; ++i) s.run();
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t at = 2 * (i * columns + j);
      ASSERT_EQ(y[at], static_cast<float>(2 * (j * rows + i) + 1));
      ASSERT_EQ(y[at + 1], -1);
    }
}

TEST_P(BackendConformance, AFewPlacementsAreReplayed) {
  const auto executable = Executable::load(compiled(twice_and_one()), device_);
  constexpr int first_runs = 2, rounds = 6;
  for (const int places : {1, 2, 4, 5}) {
    Session s(executable, {.threads = 1});
    std::vector<DeviceTensor> in, out;
    for (int i = 0; i < places; ++i) {
      in.emplace_back(device_, DType::f32, grid);
      out.emplace_back(device_, DType::f32, grid);
    }
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < places; ++i) {
        const auto k = static_cast<std::size_t>(i);
        set_floats(in[k], std::vector<float>(rows * columns, static_cast<float>(10 * round + i)));
        s.bind_input(0, in[k]);
        s.bind_output(0, out[k]);
        s.run();
        ASSERT_EQ(floats_of(out[k])[7], static_cast<float>(2 * (10 * round + i) + 1));
      }
    const bool records = GetParam().name == "far" || GetParam().name == "cuda";
    EXPECT_EQ(s.counters().replays, records && places <= 4 ? (rounds - first_runs) * places : 0)
        << places << " pairs of tensors";
    EXPECT_EQ(s.counters().launches % (rounds * places), 0);
  }
}

TEST_P(BackendConformance, MemoryOfADeviceThatIsNotUsedIsRefused) {
  Session s(Executable::load(compiled(twice_and_one()), device_), {.threads = 1});
  const auto other = open_far_device();
  DeviceTensor there(other, DType::f32, grid), here(device_, DType::f32, grid),
      result(device_, DType::f32, grid);
  set_floats(here, ascending(rows * columns));
  s.bind_input(0, here);
  s.bind_output(0, result);
  const std::string said = refusal([&] { s.bind_input(0, there); });
  EXPECT_NE(said.find("device 'far', but this plan uses '" + GetParam().name + "'"),
            std::string::npos)
      << said;
  s.run();
  EXPECT_EQ(floats_of(result), after_runs(ascending(rows * columns), 1)) << "the binding was kept";
  // But the host's memory is everybody's.
  const auto cpu = open_device("cpu");
  DeviceTensor of_host(cpu, DType::f32, grid), to_host(cpu, DType::f32, grid);
  set_floats(of_host, ascending(rows * columns));
  s.bind_input(0, of_host);
  s.bind_output(0, to_host);
  s.run();
  EXPECT_EQ(floats_of(to_host), after_runs(ascending(rows * columns), 1));
}

TEST_P(BackendConformance, SessionsOnOneStreamFollowEachOther) {
  const auto executable = Executable::load(compiled(twice_and_one()), device_);
  const std::shared_ptr<Stream> stream = device_->open_stream();
  Session first(executable, {.threads = 1, .stream = stream}),
      second(executable, {.threads = 1, .stream = stream});
  DeviceTensor a(device_, DType::f32, grid), b(device_, DType::f32, grid);
  set_floats(a, ascending(rows * columns));
  first.bind_input(0, a);
  first.bind_output(0, b);
  second.bind_input(0, b);
  second.bind_output(0, a);
  for (int i = 0; i < 6; ++i) {
    first.run();
    second.run();
  }
  first.wait();
  second.wait();
  EXPECT_EQ(floats_of(a), after_runs(ascending(rows * columns), 12));
  // Memory of the host: copied to and from the device in the order of the stream.
  std::vector<float> x = ascending(rows * columns), y(x.size());
  first.bind_input(0, {DType::f32, grid, memory_of(x.data(), x.size())});
  second.bind_output(0, {DType::f32, grid, memory_of(y.data(), y.size())});
  for (int i = 0; i < 3; ++i) {
    first.run();
    second.run();
  }
  second.wait();
  EXPECT_EQ(y, after_runs(x, 2));
  first.wait();
}

TEST_P(BackendConformance, EventsPutSessionsOnTwoStreamsInOrder) {
  const auto executable = Executable::load(compiled(twice_and_one()), device_);
  const std::shared_ptr<Stream> streams[] = {device_->open_stream(), device_->open_stream()};
  const std::unique_ptr<Event> done[] = {device_->make_event(), device_->make_event()};
  DeviceTensor a(device_, DType::f32, grid), b(device_, DType::f32, grid);
  set_floats(a, ascending(rows * columns));
  {
    Session first(executable, {.threads = 1, .stream = streams[0]}),
        second(executable, {.threads = 1, .stream = streams[1]});
    first.bind_input(0, a);
    first.bind_output(0, b);
    second.bind_input(0, b);
    second.bind_output(0, a);
    for (int i = 0; i < 6; ++i) {
      first.wait_for(*done[1]);
      first.run();
      first.record(*done[0]);
      second.wait_for(*done[0]);
      second.run();
      second.record(*done[1]);
    }
    second.wait();
    EXPECT_EQ(floats_of(a), after_runs(ascending(rows * columns), 12));
  }
  if (!GetParam().finds_missing_waits) return;
  Session first(executable, {.threads = 1, .stream = streams[0]}),
      second(executable, {.threads = 1, .stream = streams[1]});
  first.bind_input(0, a);
  first.bind_output(0, b);
  second.bind_input(0, b);
  DeviceTensor c(device_, DType::f32, grid);
  second.bind_output(0, c);
  first.run();
  EXPECT_NE(refusal([&] { second.run(); }).find("does not wait for it"), std::string::npos);
  first.wait();
  second.run();
  second.wait();
}

namespace {

// State "sum" += x; entry `read` gives it.
ProgramGraph accumulator() {
  ProgramGraph p{"accumulator", {}, {}};
  p.states = {{"sum", "model", f32({rows, columns})}};
  constexpr std::int32_t input = ProgramEntry::no_state;
  Function add;
  const Value sum = add.add_param(f32({rows, columns}), "sum", true),
              x = add.add_param(f32({rows, columns}), "x");
  add.add_result(sum + x, "sum", 0);
  p.entries.push_back({"add", add, {0, input}});
  Function read;
  const Value now = read.add_param(f32({rows, columns}), "sum");
  read.add_result(now + 0.0, "y");
  p.entries.push_back({"read", read, {0}});
  return p;
}

std::shared_ptr<const Executable> loaded_program(const ProgramGraph& p, const BackendCase& c,
                                                 const std::shared_ptr<Device>& device) {
  CompileOptions options{.backend = c.backend, .threads = 2, .cache = false};
  return Executable::load(std::make_shared<const Plan>(compile(p, options)), device);
}

}  // namespace

// Writers and readers on streams of their own, and one that waits for its results: the States alone
// put them in order.
TEST_P(BackendConformance, StatesPutRunsOnStreamsInOrder) {
  const auto executable = loaded_program(accumulator(), GetParam(), device_);
  State state(executable), copy(executable);
  const auto opened = [&](const char* entry, bool has_stream) {
    SessionOptions o{.threads = 1, .entry = entry, .states = {state}};
    if (has_stream) o.stream = device_->open_stream();
    return Session(executable, o);
  };
  Session add = opened("add", true), add_too = opened("add", true), get = opened("read", true),
          get_too = opened("read", true), waits = opened("read", false);
  DeviceTensor one(device_, DType::f32, grid), y(device_, DType::f32, grid),
      y_too(device_, DType::f32, grid), now(device_, DType::f32, grid);
  set_floats(one, std::vector<float>(rows * columns, 1));
  add.bind_input(0, one);
  add_too.bind_input(0, one);
  get.bind_output(0, y);
  get_too.bind_output(0, y_too);
  waits.bind_output(0, now);
  float count = 0;
  for (int i = 0; i < 8; ++i) {
    add.run();
    get.run();
    get_too.run();
    add_too.run();
    count += 2;
    if (i % 3 == 0) {
      waits.run();
      EXPECT_EQ(floats_of(now)[5], count);
    }
    if (i % 3 == 1) {
      EXPECT_EQ(state.read("sum").real(9), count);
    }
    if (i % 3 == 2) {
      copy.assign(state);
      EXPECT_EQ(copy.read("sum").real(3), count);
    }
  }
  get.wait();
  get_too.wait();
  EXPECT_EQ(floats_of(y)[0], 15);
  EXPECT_EQ(floats_of(y_too)[0], 15);
  EXPECT_EQ(state.version("model"), 16u);
  state.reset();
  add.run();
  add.wait();
  add_too.wait();
  EXPECT_EQ(state.read("sum").real(0), 1);
  EXPECT_FALSE(state.is_torn("model"));
}

// The error of a run that returned comes from the next wait, and marks the states that it wrote.
TEST(CallersStream, StatesOfARunThatFailsLateAreTorn) {
  const BackendCase far{"far", nullptr, &far_backend()};
  const auto breaks = std::make_shared<std::atomic<bool>>(false);
  FarPace pace;
  pace.launch = std::chrono::microseconds(20);
  pace.breaks = [breaks](const Kernel&) { return breaks->load(); };
  const auto device = open_far_device(1, pace);
  const auto executable = loaded_program(accumulator(), far, device);
  State state(executable), other(executable);
  Session add(executable,
              {.threads = 1, .entry = "add", .states = {state}, .stream = device->open_stream()});
  Session reads(
      executable,
      {.threads = 1, .entry = "read", .states = {other}, .stream = device->open_stream()});
  DeviceTensor one(device, DType::f32, grid), y(device, DType::f32, grid);
  add.bind_input(0, one);
  reads.bind_output(0, y);
  add.run();
  add.wait();
  EXPECT_FALSE(state.is_torn("model"));
  *breaks = true;
  add.run();
  add.run();
  reads.run();
  EXPECT_NE(refusal([&] { add.bind_input(0, one); }).find("the device failed"), std::string::npos);
  EXPECT_TRUE(state.is_torn("model"));
  EXPECT_NE(refusal([&] { state.read("sum"); }).find("are torn"), std::string::npos);
  EXPECT_NE(refusal([&] { add.run(); }).find("are torn"), std::string::npos);
  EXPECT_NE(refusal([&] { reads.wait(); }).find("the device failed"), std::string::npos);
  EXPECT_FALSE(other.is_torn("model")) << "it was only read";
}

}  // namespace hone::test
