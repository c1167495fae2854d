// Devices with faults that only several sizes, or several sessions, show. The check of repeated
// runs must find each.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>

#include "ops/common.h"
#include "ops/ops.h"
#include "test/compile/models.h"
#include "test/fault/child.h"
#include "verify/model/repeat.h"
#include "verify/sample.h"

namespace hone::test {
namespace {

// The processor; a fault overrides a part.
class FaultyDevice : public Device, public std::enable_shared_from_this<FaultyDevice> {
 public:
  std::string_view name() const override { return good_->name(); }
  std::string description() const override { return good_->description(); }
  const DeviceLimits& limits() const override { return good_->limits(); }
  int rank(std::string_view target) const override { return good_->rank(target); }
  bool shares_host_memory() const override { return true; }
  std::byte* host_address(DeviceMemory m) const override { return good_->host_address(m); }
  std::optional<DeviceMemory> of_host(const void* data) const override {
    return good_->of_host(data);
  }
  bool shares_memory_with(const Device& d) const override { return good_->shares_memory_with(d); }
  DeviceMemory comparable(DeviceMemory m) const override { return good_->comparable(m); }
  std::optional<RawMemory> address_of(DeviceMemory m) const override {
    return good_->address_of(m);
  }
  std::optional<DeviceMemory> of_address(const RawMemory& m) const override {
    return good_->of_address(m);
  }
  DeviceMemory alloc(std::size_t bytes) override { return good_->alloc(bytes); }
  void free(DeviceMemory m, std::size_t bytes) noexcept override { good_->free(m, bytes); }
  std::unique_ptr<LoadedCode> load(std::span<const Binary* const> binaries,
                                   std::string_view where) override {
    return good_->load(binaries, where);
  }
  std::string why_missing(std::string_view library) override { return good_->why_missing(library); }
  std::unique_ptr<BoundCall> bind(const StridedCopy& c) override { return good_->bind(c); }
  std::unique_ptr<Event> make_event(bool has_time) override { return good_->make_event(has_time); }
  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool> pool,
                                      std::shared_ptr<Allocator> allocator) override {
    return good_->open_stream(std::move(pool), std::move(allocator));
  }

 protected:
  std::shared_ptr<Device> good_ = open_device("cpu");
};

constexpr std::size_t least_arena = 24 << 10;  // larger than the inputs and results of the model

// Larger blocks that are in use are given out again, as if they had been freed.
class SharedMemoryDevice final : public FaultyDevice {
 public:
  DeviceMemory alloc(std::size_t bytes) override {
    if (bytes < least_arena) return good_->alloc(bytes);
    const auto [at, is_new] = blocks_.try_emplace(bytes);
    if (is_new) at->second = good_->alloc(bytes);
    return at->second;
  }
  void free(DeviceMemory m, std::size_t bytes) noexcept override {
    if (bytes < least_arena) good_->free(m, bytes);
  }

 private:
  std::map<std::size_t, DeviceMemory> blocks_;
};

// Streams keep, for each kernel and size, the addresses of operands in larger blocks,
// although these may move. Freed blocks are kept, as allocators often do.
class StaleAddressDevice final : public FaultyDevice {
 public:
  DeviceMemory alloc(std::size_t bytes) override {
    const DeviceMemory at = good_->alloc(bytes);
    if (bytes >= least_arena) blocks_.push_back({at, bytes});
    return at;
  }
  void free(DeviceMemory m, std::size_t bytes) noexcept override {
    if (bytes < least_arena) good_->free(m, bytes);
  }
  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool> pool,
                                      std::shared_ptr<Allocator> allocator) override;

  bool is_in_block(DeviceMemory m) const {
    return std::ranges::any_of(blocks_, [&](const auto& b) {
      const std::byte *at = good_->host_address(m), *begin = good_->host_address(b.first);
      return at >= begin && at < begin + b.second;
    });
  }

 private:
  std::vector<std::pair<DeviceMemory, std::size_t>> blocks_;
};

class StaleStream final : public Stream {
 public:
  StaleStream(const StaleAddressDevice& device, std::unique_ptr<Stream> good)
      : device_(device), good_(std::move(good)) {}

  void launch(const Launch& l) override {
    std::vector<DeviceMemory> operands(l.operands.begin(), l.operands.end());
    auto& kept = kept_[{l.entry, l.sizes ? l.sizes[0] : 0}];
    kept.resize(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!device_.is_in_block(operands[i])) continue;
      if (!kept[i]) kept[i] = operands[i];
      operands[i] = kept[i];
    }
    Launch stale = l;
    stale.operands = operands;
    good_->launch(stale);
  }
  void reserve_scratch(std::size_t bytes) override { good_->reserve_scratch(bytes); }
  int threads() const override { return good_->threads(); }
  void upload(DeviceMemory to, std::span<const std::byte> from) override {
    good_->upload(to, from);
  }
  void download(std::span<std::byte> to, DeviceMemory from) override { good_->download(to, from); }
  void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) override {
    good_->copy(to, from, bytes);
  }
  void fill(DeviceMemory to, std::byte value, std::size_t bytes) override {
    good_->fill(to, value, bytes);
  }
  void call(const BoundCall& c, std::span<const DeviceMemory> operands, bool is_small) override {
    good_->call(c, operands, is_small);
  }
  void record(Event& e) override { good_->record(e); }
  void wait(Event& e) override { good_->wait(e); }
  void synchronize() override { good_->synchronize(); }

 private:
  const StaleAddressDevice& device_;
  std::unique_ptr<Stream> good_;
  std::map<std::pair<KernelHandle, std::int64_t>, std::vector<DeviceMemory>> kept_;
};

std::unique_ptr<Stream> StaleAddressDevice::open_stream(std::shared_ptr<ThreadPool> pool,
                                                        std::shared_ptr<Allocator> allocator) {
  return std::make_unique<StaleStream>(*this,
                                       good_->open_stream(std::move(pool), std::move(allocator)));
}

// Between its two kernels, 64 times as many elements as in the inputs and results.
Function wide_between() {
  Function f;
  const Value x = f.add_param(f32({Dim::symbol("n", 1, 4096)}), "x");
  const Value wide = ops::exp(
      broadcast_to(reshape_to(x, {x.shape()[0], Dim(1)}), Shape{x.shape()[0], Dim(64)}) * 0.25);
  const Value turned = ops::cumulative(
      wide, {{"axis", 0}, {"kind", std::string("sum")}, {"exclusive", 0}, {"reverse", 0}});
  f.add_result(ops::reduce_max(turned, {{"axes", Dims{1}}}), "y");
  return f;
}

// Which of two NaN an addition keeps is open; the bits of numbers are not.
TEST(Repeats, ANaNMayHaveOtherBits) {
  Function f;
  f.add_result(f.add_param(f32({2}), "x") * 3.0, "y");
  const auto plan = std::make_shared<const Plan>(
      compile({"times", {{{}, f}}, {}}, {.strategy = "cpu", .threads = 1, .cache = false}));
  const std::shared_ptr<const Executable> executable = Executable::load(plan, open_devices(*plan));
  const auto check = [&](std::uint32_t nan, float number) {
    const float given[] = {NAN, 1}, results[] = {std::bit_cast<float>(nan), number};
    check_repeats(executable, {{{Array::of<float>(DType::f32, {2}, given)},
                                {Array::of<float>(DType::f32, {2}, results)}}});
  };
  for (const std::uint32_t nan : {0x7fc00000u, 0xffc00123u}) EXPECT_NO_THROW(check(nan, 3));
  EXPECT_THROW(check(0x7fc00000u, std::nextafter(3.0f, 4.0f)), UserError);
  EXPECT_THROW(check(0x3f800000u, 3), UserError);
}

// What the check of repeated runs says.
std::string found_on(const std::shared_ptr<Device>& device) {
  const Function f = wide_between();
  const Source source{"wide", {{{}, f}}, {}};
  const auto plan = std::make_shared<const Plan>(
      compile(source, {.strategy = "cpu", .threads = 1, .cache = false}));
  std::vector<Repeat> runs;
  for (const std::int64_t n : {150, 400, 151}) {
    std::vector<Array> inputs = {sample_array(f32({n}), {}, Fill::random, 7)};
    std::vector<Array> results = session_of(plan)->run(inputs);
    runs.push_back({std::move(inputs), std::move(results)});
  }
  std::vector<Array> others = {sample_array(f32({151}), {}, Fill::negative, 8)};
  std::vector<Array> results = session_of(plan)->run(others);
  runs.push_back({std::move(others), std::move(results)});
  try {
    check_repeats(Executable::load(plan, device), runs);
    return "";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(SessionFaults, ThereIsNoneWithoutOne) {
  EXPECT_EQ(in_child([] { return found_on(std::make_shared<FaultyDevice>()); }), "");
}

TEST(SessionFaults, TwoSessionsShareMemory) {
  const std::string found =
      in_child([] { return found_on(std::make_shared<SharedMemoryDevice>()); });
  EXPECT_TRUE(found.starts_with("refused: result 0 changes")) << found;
  EXPECT_NE(found.find("another session"), std::string::npos) << found;
}

TEST(SessionFaults, AddressesAreStaleWhenEarlierSizesReturn) {
  const std::string found =
      in_child([] { return found_on(std::make_shared<StaleAddressDevice>()); });
  EXPECT_TRUE(found.starts_with("refused: a kernel fails in a repeated run")) << found;
}

}  // namespace
}  // namespace hone::test
