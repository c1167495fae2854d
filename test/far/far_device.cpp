#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <thread>

#include "base/device_lost.h"
#include "base/error.h"
#include "kernel/interpret/interpret.h"
#include "test/far/far.h"
#include "test/far/order.h"

namespace hone::test {

namespace {

constexpr std::string_view target_name = "far-1";

std::atomic<std::int64_t> uploads{0}, downloads{0}, launches{0}, replays{0};

// One allocation. Its handle is not an address and cannot be a valid one.
struct Block {
  std::vector<std::byte> bytes;
  std::vector<Access> accesses;
};

// A piece of an allocation that an operation uses.
struct Piece {
  std::shared_ptr<Block> block;
  std::int64_t offset = 0, size = 0;
  std::span<std::byte> bytes() const {
    return std::span(block->bytes)
        .subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }
};

class Memory {
 public:
  DeviceMemory alloc(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    auto block = std::make_shared<Block>();
    block->bytes.assign(bytes, std::byte{0xcd});
    const std::uint64_t handle = next_ += 0x1000;
    blocks_[handle] = std::move(block);
    return {handle, 0};
  }
  void free(DeviceMemory m) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto it = blocks_.find(m.handle);
    const bool is_known = it != blocks_.end() && m.offset == 0;
    if (!is_known || !Order::all().is_idle(it->second->accesses)) {
      std::fputs("far: frees memory that is in use, or that was never allocated\n", stderr);
      std::abort();
    }
    blocks_.erase(it);
  }
  Piece piece(DeviceMemory m, std::int64_t size) {
    const std::scoped_lock lock(mutex_);
    const auto it = blocks_.find(m.handle);
    if (size == 0) return {std::make_shared<Block>(), 0, 0};
    if (it == blocks_.end()) throw InternalError(cat("far: ", m.handle, " is no allocation"));
    const auto all = static_cast<std::int64_t>(it->second->bytes.size());
    if (m.offset < 0 || m.offset > all || size > all - m.offset)
      throw InternalError(
          cat("far: bytes ", m.offset, " to ", m.offset + size, " of an allocation of ", all));
    return {it->second, m.offset, size};
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Block>> blocks_;
  // Shared, so that handles of all devices are distinct.
  static inline std::atomic<std::uint64_t> next_ = 0xfa70'0000'0000'0000;
};

// A point in a stream, and whether all operations before it are done.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  void finish() {
    const std::scoped_lock lock(mutex);
    is_done = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_done; });
  }
};

class FarEvent final : public Event {
 public:
  void synchronize() override {
    if (!point) return;
    point->wait();
    Order::all().host_waited_for(clock);
  }
  std::shared_ptr<Point> point;
  Clock clock;
};

class FarProgram final : public LoadedCode {
 public:
  struct Entry {
    explicit Entry(Kernel k) : kernel(std::move(k)), interpreter(kernel) {}
    Kernel kernel;
    Interpreter interpreter;
  };

  FarProgram(std::span<const Binary* const> binaries, std::string_view where) {
    for (const Binary* binary : binaries) {
      const Binary& b = *binary;
      check(b, where);
      if (b.target != target_name)
        throw UserError(where, ": is compiled for ", b.target, ", and this is ", target_name);
      for (const Binary::Entry& e : b.entries) {
        const char* text = reinterpret_cast<const char*>(b.code.data()) + e.offset;
        bytes_ += std::strlen(text);
        entries_.emplace(e.name, std::make_unique<Entry>(parse_kernel(text)));
      }
    }
  }
  KernelHandle entry(std::string_view name) const override {
    const auto it = entries_.find(name);
    if (it == entries_.end()) throw UserError("far: has no kernel '", name, "'");
    return KernelHandle{reinterpret_cast<std::uintptr_t>(it->second.get())};
  }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
  std::size_t bytes_ = 0;
};

class FarCopy final : public BoundCall {
 public:
  explicit FarCopy(StridedCopy c) : copy(std::move(c)) {}
  OperandReach reach(const std::vector<std::int64_t>& strides) const {
    OperandReach r{.end = static_cast<std::int64_t>(copy.element_bytes)};
    for (std::size_t i = 0; i < copy.dims.size(); ++i) {
      if (copy.dims[i] == 0) return {};
      (strides[i] < 0 ? r.begin : r.end) += (copy.dims[i] - 1) * strides[i];
    }
    return r;
  }
  void run(std::byte* to, const std::byte* from, std::size_t axis = 0) const {
    if (axis == copy.dims.size()) {
      std::memcpy(to, from, copy.element_bytes);
      return;
    }
    for (std::int64_t i = 0; i < copy.dims[axis]; ++i)
      run(to + i * copy.to_strides[axis], from + i * copy.from_strides[axis], axis + 1);
  }
  StridedCopy copy;
};

// Recorded operations, to be replayed.
class FarRecording final : public Recording {
 public:
  std::vector<std::function<void()>> asked;
};

class FarStream final : public Stream {
 public:
  FarStream(std::shared_ptr<Memory> memory, std::uint64_t seed, FarPace pace,
            std::shared_ptr<std::atomic<bool>> lost)
      : memory_(std::move(memory)),
        pace_(std::move(pace)),
        lost_(std::move(lost)),
        id_(Order::all().new_stream()),
        random_(seed + static_cast<std::uint64_t>(id_)) {
    thread_ = std::thread([this] { work(); });
  }
  ~FarStream() override {
    {
      const std::scoped_lock lock(mutex_);
      is_closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
    Order::all().end_stream(id_, clock_);
  }

  void reserve_scratch(std::size_t) override {}
  int threads() const override { return 1; }

  void upload(DeviceMemory to, std::span<const std::byte> from) override {
    ++uploads;
    const Piece p = use(to, from.size(), true);
    add([p, from] { std::ranges::copy(from, p.bytes().begin()); });
  }
  void download(std::span<std::byte> to, DeviceMemory from) override {
    ++downloads;
    const Piece p = use(from, to.size(), false);
    add([p, to] { std::ranges::copy(p.bytes(), to.begin()); });
  }
  void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) override {
    const Piece source = use(from, bytes, false), target = use(to, bytes, true);
    add([source, target] { std::ranges::copy(source.bytes(), target.bytes().begin()); });
  }
  void fill(DeviceMemory to, std::byte value, std::size_t bytes) override {
    const Piece p = use(to, bytes, true);
    add([p, value] { std::ranges::fill(p.bytes(), value); });
  }

  bool start_recording() override {
    recording_ = std::make_unique<FarRecording>();
    return true;
  }
  std::unique_ptr<Recording> finish_recording() override { return std::move(recording_); }
  void replay(const Recording& r) override {
    ++replays;
    for (const auto& ask : static_cast<const FarRecording&>(r).asked) ask();
  }

  void launch(const Launch& l) override {
    if (recording_) {
      const auto& kernel =
          reinterpret_cast<const FarProgram::Entry*>(static_cast<std::uintptr_t>(l.entry))->kernel;
      recording_->asked.push_back(
          [this, again = Launch(l), operands = std::vector(l.operands.begin(), l.operands.end()),
           sizes = std::vector(l.sizes, l.sizes + kernel.sizes.size())]() mutable {
            again.operands = operands;
            again.sizes = sizes.data();
            launch(again);
          });
      return;
    }
    ++launches;
    const auto* entry =
        reinterpret_cast<const FarProgram::Entry*>(static_cast<std::uintptr_t>(l.entry));
    const Kernel& kernel = entry->kernel;
    std::vector<std::int64_t> sizes(l.sizes, l.sizes + kernel.sizes.size());
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < kernel.params.size(); ++i)
      pieces.push_back(
          use(l.operands[i], extent(kernel, kernel.params[i], sizes), kernel.params[i].written));
    add([entry, pieces, sizes, chunks = l.chunks, pace = pace_, lost = lost_] {
      if (pace.breaks && pace.breaks(entry->kernel)) *lost = true;
      std::unique_lock<std::mutex> engine;
      if (pace.engine) engine = std::unique_lock(*pace.engine);
      std::this_thread::sleep_for(pace.launch);
      std::vector<std::span<std::byte>> params;
      for (const Piece& p : pieces) params.push_back(p.bytes());
      entry->interpreter.run(params, sizes, 0, chunks);
    });
  }

  void call(const BoundCall& c, std::span<const DeviceMemory> operands, bool) override {
    if (recording_) {
      recording_->asked.push_back(
          [this, &c, places = std::vector(operands.begin(), operands.end())] {
            call(c, places, false);
          });
      return;
    }
    const auto& copy = static_cast<const FarCopy&>(c);
    const OperandReach f = copy.reach(copy.copy.from_strides), t = copy.reach(copy.copy.to_strides);
    const Piece from = use(operands[0] + f.begin, f.end - f.begin, false),
                to = use(operands[1] + t.begin, t.end - t.begin, true);
    if (to.size > 0)
      add([&copy, from, to, f, t] {
        copy.run(to.bytes().data() - t.begin, from.bytes().data() - f.begin);
      });
  }

  void record(Event& e) override {
    auto& event = static_cast<FarEvent&>(e);
    event.point = std::make_shared<Point>();
    Order::all().step(id_, clock_);
    event.clock = clock_;
    add([point = event.point] { point->finish(); });
  }
  void wait(Event& e) override {
    auto* event = dynamic_cast<FarEvent*>(&e);
    if (!event) return e.synchronize();
    if (!event->point) return;
    join(clock_, event->clock);
    add([point = event->point] { point->wait(); });
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() && !is_busy_; });
    Order::all().host_waited_for(clock_);
    if (*lost_) throw DeviceLost("far: the device failed");
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  template <class Bytes>
  Piece use(DeviceMemory at, Bytes size, bool is_written) {
    const Piece p = memory_->piece(at, static_cast<std::int64_t>(size));
    if (p.size == 0) return p;
    Order::all().step(id_, clock_);
    if (!Order::all().note(p.block->accesses, {p.offset, p.offset + p.size, is_written}, id_,
                           clock_))
      throw InternalError(cat("far: stream ", id_, is_written ? " writes" : " reads",
                              " memory that another stream uses, and does not wait for it"));
    return p;
  }

  // If a size is not passed to the kernel, it accesses only the part that exists for every size.
  static std::int64_t extent(const Kernel& kernel, const KernelParam& p,
                             const std::vector<std::int64_t>& sizes) {
    const auto value = [&](const Dim& d) {
      if (d.is_number()) return d.number();
      const auto symbols = d.symbols();
      return d.eval([&](std::string_view name) {
        const auto it = std::ranges::find(kernel.sizes, name, &Dim::name);
        return it == kernel.sizes.end()
                   ? std::ranges::find(symbols, name, &Dim::name)->low()
                   : sizes[static_cast<std::size_t>(it - kernel.sizes.begin())];
      });
    };
    std::int64_t last = 0;
    for (std::size_t i = 0; i < p.dims.size(); ++i) {
      const std::int64_t n = value(p.dims[i]);
      if (n == 0) return 0;
      last += (n - 1) * value(p.strides[i]);
    }
    return (last + 1) * byte_size(p.dtype);
  }

  void add(std::function<void()> f) {
    {
      const std::scoped_lock lock(mutex_);
      queue_.push_back(std::move(f));
    }
    changed_.notify_all();
  }

  // After an error only events are run, so that no thread waits forever.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> now = std::move(queue_.front());
      queue_.pop_front();
      is_busy_ = true;
      lock.unlock();
      delay();
      std::exception_ptr error;
      try {
        now();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !error_) error_ = error;
      is_busy_ = false;
      changed_.notify_all();
    }
  }

  void delay() {
    const auto draw = random_() % 16;
    if (draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
    if (draw < 4) std::this_thread::yield();
  }

  std::shared_ptr<Memory> memory_;
  const FarPace pace_;
  const std::shared_ptr<std::atomic<bool>> lost_;
  const int id_;
  Clock clock_;
  std::mt19937_64 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::exception_ptr error_;
  std::unique_ptr<FarRecording> recording_;
  bool is_busy_ = false, is_closing_ = false;
  std::thread thread_;
};

class FarDevice final : public Device {
 public:
  FarDevice(std::uint64_t seed, FarPace pace) : seed_(seed), pace_(std::move(pace)) {}
  std::string_view name() const override { return "far"; }
  std::string description() const override { return std::string(target_name); }
  const DeviceLimits& limits() const override {
    static constexpr DeviceLimits limits;
    return limits;
  }
  int rank(std::string_view target) const override {
    return target == target_name ? 1 : target == "any" ? 0 : -1;
  }
  std::string why_missing(std::string_view library) override {
    return cat("this device calls no library '", library, "'");
  }
  DeviceMemory alloc(std::size_t bytes) override { return memory_->alloc(bytes); }
  void free(DeviceMemory m, std::size_t) noexcept override { memory_->free(m); }
  std::unique_ptr<LoadedCode> load(std::span<const Binary* const> binaries,
                                   std::string_view where) override {
    return std::make_unique<FarProgram>(binaries, where);
  }
  using Device::bind;
  std::unique_ptr<BoundCall> bind(const StridedCopy& c) override {
    return std::make_unique<FarCopy>(c);
  }
  std::unique_ptr<Event> make_event(bool) override { return std::make_unique<FarEvent>(); }
  std::unique_ptr<Stream> open_stream(std::shared_ptr<ThreadPool>,
                                      std::shared_ptr<Allocator>) override {
    return std::make_unique<FarStream>(memory_, seed_, pace_, lost_);
  }

 private:
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::shared_ptr<std::atomic<bool>> lost_ = std::make_shared<std::atomic<bool>>(false);
  std::uint64_t seed_;
  FarPace pace_;
};

}  // namespace

FarCounts far_counts() { return {uploads, downloads, launches, replays}; }

std::shared_ptr<Device> open_far_device(std::uint64_t seed, FarPace pace) {
  return std::make_shared<FarDevice>(seed, std::move(pace));
}

}  // namespace hone::test
