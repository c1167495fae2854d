// Sessions over several devices: plans made by hand, whose steps are copies, events and waits; and
// the scratch memory that CPU threads get.
#include <cstring>
#include <set>

#include "backend/cpu/device/cpu_device.h"
#include "backend/cpu/device/kernel_abi.h"
#include "compile/spread.h"
#include "plan/audit.h"
#include "plan/plan_file.h"
#include "runtime/device_tensor.h"
#include "test/backend/conformance.h"
#include "test/far/far.h"

namespace hone::test {
namespace {

constexpr std::int64_t count = 1000, bytes = count * 4;

View whole(std::uint32_t buffer) { return {buffer, 0, DType::f32, {count}, {1}}; }

Step copy(std::uint16_t device, std::uint16_t stream, std::uint32_t from, std::uint32_t to) {
  Step s{.kind = Step::Kind::copy, .device = device, .stream = stream, .name = cat("to ", to)};
  s.operands = {whole(from), whole(to)};
  s.written = {false, true};
  return s;
}
Step event(Step::Kind kind, std::uint16_t device, std::uint16_t stream, std::uint32_t index) {
  Step s{.kind = kind, .device = device, .stream = stream};
  s.index = index;
  return s;
}

// y = x through both far devices and two streams of the first: each copy waits for the previous
// one.
Plan round_trip() {
  using Buffer = PlanBuffer::Kind;
  using Kind = Step::Kind;
  const Type type = f32({count});
  Plan p;
  p.name = "round-trip";
  p.main().params = {{"x", type}};
  p.main().results = {{"y", type}};
  p.main().result_alias = {-1};
  Variant& v = p.main().variants.emplace_back();
  v.devices = {{device_names().front(), "any", 1, 2 * 4032, 4032},
               {"far", "far-1", 2, 2 * 4032, 4032},
               {"far", "far-1", 1, 4032, 4032}};
  v.events = 4;
  v.results = {type};
  v.buffers = {{Buffer::param, 0, 0, bytes, 0},    {Buffer::arena, 0, 0, bytes, 1},
               {Buffer::arena, 0, 4032, bytes, 1}, {Buffer::arena, 0, 4032, bytes, 0},
               {Buffer::arena, 0, 0, bytes, 2},    {Buffer::arena, 0, 0, bytes, 0},
               {Buffer::result, 0, 0, bytes, 0}};
  v.steps = {copy(1, 0, 0, 1),
             event(Kind::record, 1, 0, 0),
             event(Kind::wait, 1, 1, 0),
             copy(1, 1, 1, 2),
             copy(1, 1, 2, 3),  // to the first device
             event(Kind::record, 1, 1, 1),
             event(Kind::wait, 2, 0, 1),
             copy(2, 0, 3, 4),
             copy(2, 0, 4, 5),  // to the first device
             event(Kind::record, 2, 0, 2),
             event(Kind::wait, 0, 0, 2),
             copy(0, 0, 5, 6)};
  return p;
}

void audited(const Plan& p) {
  audit(p, p.main(), p.main().variants[0], [](const Dim& d) { return d.number(); });
}

Array numbers() {
  Array x = Array::zeros(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) x.set_real(i, static_cast<double>(i));
  return x;
}

std::vector<Array> run(const Plan& p) {
  const auto plan = std::make_shared<const Plan>(p);
  Session s(Executable::load(plan, open_devices(*plan)), {.threads = 1});
  const Array x = numbers();
  s.run(std::span(&x, 1));
  return s.run(std::span(&x, 1));
}

TEST(SeveralDevices, CopiesAndEventsCarryDataBetweenThem) {
  const Plan p = round_trip();
  audited(p);
  EXPECT_EQ(run(p)[0], numbers());
}

// y = x, read on one far device and written on the other, by way of the host.
Plan from_far_to_far() {
  using Buffer = PlanBuffer::Kind;
  Plan p = round_trip();
  Variant& v = p.main().variants[0];
  v.devices[1].streams = 1;
  v.events = 1;
  v.buffers = {{Buffer::param, 0, 0, bytes, 1},
               {Buffer::arena, 0, 0, bytes, 1},
               {Buffer::arena, 0, 0, bytes, 0},
               {Buffer::result, 0, 0, bytes, 2}};
  v.steps = {copy(1, 0, 0, 1), copy(1, 0, 1, 2), event(Step::Kind::record, 1, 0, 0),
             event(Step::Kind::wait, 2, 0, 0), copy(2, 0, 2, 3)};
  return p;
}

TEST(SeveralDevices, TensorsMayBeOnAnyOfThem) {
  std::vector<std::int64_t> dims = {count}, room = {2 * count}, spaced = {2};
  const Array x = numbers();
  for (const Plan& p : {round_trip(), from_far_to_far()})
    for (const bool is_on_stream : {false, true}) {
      const auto plan = std::make_shared<const Plan>(p);
      const auto executable = Executable::load(plan, open_devices(*plan));
      SessionOptions options{.threads = 1};
      if (is_on_stream) options.stream = executable->device(0)->open_stream();
      Session s(executable, options);
      for (std::size_t in = 0; in < 3; ++in)
        for (std::size_t out = 0; out < 3; ++out)
          for (const bool has_strides : {false, true}) {
            DeviceTensor from(executable->device(in), DType::f32, has_strides ? room : dims),
                to(executable->device(out), DType::f32, has_strides ? room : dims);
            const auto ref = [&](const DeviceTensor& t) {
              TensorRef r = t.ref();
              r.dims = dims;
              if (has_strides) r.strides = spaced;
              return r;
            };
            std::vector<float> given(has_strides ? 2 * count : count, -1), got(given.size());
            const std::size_t step = has_strides ? 2 : 1;
            for (std::size_t i = 0; i < count; ++i) given[i * step] = static_cast<float>(i);
            from.write(std::as_bytes(std::span(given)));
            const std::vector<float> before(given.size(), -1);
            to.write(std::as_bytes(std::span(before)));
            s.bind_input(0, ref(from));
            s.bind_output(0, ref(to));
            for (int i = 0; i < 3; ++i) s.run();
            s.wait();
            to.read(std::as_writable_bytes(std::span(got)));
            EXPECT_EQ(got, given) << in << " to " << out << (has_strides ? ", with strides" : "");
          }
    }
}

TEST(SeveralDevices, SurviveAPlanFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "several.hone";
  write_plan(path, round_trip());
  const Plan read = read_plan(path);
  EXPECT_EQ(read.main().variants[0].devices.size(), 3u);
  EXPECT_EQ(run(read)[0], numbers());
}

// Every wait of the plan is needed: without it both the audit and the device refuse the plan.
TEST(SeveralDevices, AMissingWaitIsFoundBeforeAndDuringTheRun) {
  const Plan p = round_trip();
  int found = 0, refused = 0, waits = 0;
  for (std::size_t i = 0; i < p.main().variants[0].steps.size(); ++i) {
    if (p.main().variants[0].steps[i].kind != Step::Kind::wait) continue;
    Plan spoilt = p;
    auto& steps = spoilt.main().variants[0].steps;
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
    found += refusal([&] { audited(spoilt); }).find("without waiting") != std::string::npos;
    const std::string said = refusal([&] { run(spoilt); });
    refused += said.find("does not wait") != std::string::npos;
    ++waits;
  }
  EXPECT_EQ(waits, 3);
  EXPECT_EQ(found, waits);
  EXPECT_GE(refused, 1) << "far memory is watched; the host's is not";
}

// Machines with groups of threads prefer other groups, except where plans are joined.
TEST(SeveralDevices, PlansToBeJoinedHaveTheSameGroups) {
  const auto compiled = [](const Backend& on, bool is_joined) {
    CompileOptions o{.strategy = "auto", .backend = &on};
    o.verification = Verification::none;
    o.cache = false;
    o.is_joined = is_joined;
    return compile({"test", {{{}, decoding_step(DType::f32)}}, {}}, o);
  };
  const Plan cpu = compiled(backend("cpu"), true), far = compiled(far_backend(), true),
             alone = compiled(far_backend(), false);
  const Plan* same[] = {&cpu, &far};
  EXPECT_EQ(movable_groups(same, 0).size(), cpu.main().variants[0].groups.size());
  EXPECT_LT(alone.main().variants[0].groups.size(), far.main().variants[0].groups.size());
  const Plan* other[] = {&cpu, &alone};
  EXPECT_THROW(movable_groups(other, 0), UserError);
}

TEST(SeveralDevices, MemoryIsReportedForEach) {
  const auto plan = std::make_shared<const Plan>(round_trip());
  Session s(Executable::load(plan, open_devices(*plan)), {.threads = 1});
  const Array x = numbers();
  s.run(std::span(&x, 1));
  const MemoryReport m = s.memory();
  ASSERT_EQ(m.devices.size(), 3u);
  EXPECT_EQ(m.devices[1].name, "far");
  EXPECT_EQ(m.devices[1].arena, 2 * 4032u);
  EXPECT_EQ(m.arena, 5 * 4032u);
}

TEST(SeveralDevices, PlansThatNameWhatIsNotThereAreRefused) {
  const auto says = [](void (*spoil)(Variant&)) {
    Plan p = round_trip();
    spoil(p.main().variants[0]);
    return refusal([&] { run(p); });
  };
  const auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(says([](Variant& v) { v.devices[2].name = "nosuch"; }), "is compiled for");
  expect(says([](Variant& v) { v.devices[2].target = "far-9"; }), "is compiled for");
  expect(says([](Variant& v) { v.devices.pop_back(); }), "device 2 of 2");
  expect(says([](Variant& v) { v.devices.clear(); }), "0 devices");
  expect(says([](Variant& v) { v.devices[1].streams = 1; }), "stream 1 of 1");
  expect(says([](Variant& v) { v.events = 1; }), "event 1 of 1");
  expect(says([](Variant& v) { v.steps[9].device = v.steps[9].stream = 0, v.steps[9].index = 1; }),
         "two devices");
  expect(says([](Variant& v) { v.steps[0].operands[0].strides = {2}; }), "another device");
  expect(says([](Variant& v) { v.steps[3].operands[0].buffer = 4; }), "copies from far to far");
  expect(says([](Variant& v) { v.buffers.push_back({PlanBuffer::Kind::result, 0, 0, bytes, 1}); }),
         "is on two devices");
}

constexpr std::int64_t many_chunks = 4096;
constexpr std::size_t scratch_bytes = 256;

// Each chunk of a launch writes the address of its scratch and fills the scratch.
void note_scratch(void* const* buffers, const std::int64_t*, std::int64_t begin, std::int64_t end,
                  void* scratch) {
  auto* found = static_cast<void**>(buffers[0]);
  for (std::int64_t i = begin; i < end; ++i) found[i] = scratch;
  std::memset(scratch, 1, scratch_bytes);
}

// With a real pool, two threads that share scratch would be detected only occasionally.
TEST(CpuStream, EveryThreadHasScratchOfItsOwn) {
  for (const int threads : {1, 2, 9, 16}) {
    // Runs with every thread number, one after the other, which a pool on a busy machine does not
    // guarantee.
    class EveryThread final : public ThreadPool {
     public:
      explicit EveryThread(int count) : count_(count) {}
      int threads() const override { return count_; }
      void run(std::int64_t chunks, Body body, void* context) override {
        for (std::int64_t i = 0; i < chunks; ++i)
          body(context, i, i + 1, static_cast<int>(i % count_));
      }

     private:
      int count_;
    };
    const std::shared_ptr<Device> device = open_cpu_device();
    const auto stream = device->open_stream(std::make_shared<EveryThread>(threads));
    std::vector<void*> found(many_chunks);
    const DeviceMemory at{reinterpret_cast<std::uintptr_t>(found.data()), 0};
    stream->reserve_scratch(scratch_bytes);
    Launch launch{.entry = KernelHandle{reinterpret_cast<std::uintptr_t>(&note_scratch)},
                  .operands = std::span(&at, 1)};
    launch.chunks = many_chunks;
    launch.scratch_bytes = scratch_bytes;
    stream->launch(launch);
    const std::set<void*> pieces(found.begin(), found.end());
    EXPECT_EQ(pieces.size(), static_cast<std::size_t>(threads));
    std::uintptr_t before = 0;
    for (void* piece : pieces) {
      const auto here = reinterpret_cast<std::uintptr_t>(piece);
      EXPECT_TRUE(before == 0 || here - before >= scratch_bytes) << threads;
      before = here;
    }
  }
}

}  // namespace
}  // namespace hone::test
