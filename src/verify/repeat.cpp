#include "verify/repeat.h"

#include <algorithm>
#include <cstring>

#include "runtime/host_memory.h"
#include "runtime/ports.h"

namespace hone {

namespace {

// A NaN in every float dtype, and an index beyond every axis.
constexpr int poison = 0xff;

class PoisonedMemory final : public Allocator {
 public:
  explicit PoisonedMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  DeviceMemory alloc(std::size_t bytes) override {
    const DeviceMemory at = device_->alloc(bytes);
    live_.push_back({at, bytes});
    return at;
  }
  void free(DeviceMemory at, std::size_t bytes) noexcept override {
    std::erase_if(live_, [&](const auto& m) { return m.first == at; });
    device_->free(at, bytes);
  }
  void fill() const {
    for (const auto& [at, bytes] : live_) std::memset(device_->host_address(at), poison, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  std::vector<std::pair<DeviceMemory, std::size_t>> live_;
};

// A copy whose address is a multiple of the element's size and of little more.
Array moved(const Array& a) {
  const std::size_t bytes = a.bytes().size(), step = static_cast<std::size_t>(byte_size(a.dtype()));
  auto memory = std::make_shared<std::vector<std::byte>>(bytes + 2 * step);
  std::byte* at = memory->data() + step;
  std::ranges::copy(a.bytes(), at);
  return {a.dtype(), a.dims(), Storage(memory, {at, bytes})};
}

class Repeats {
 public:
  Repeats(const std::shared_ptr<const Executable>& executable, int threads) : threads_(threads) {
    const std::shared_ptr<Device>& first = executable->devices()[0];
    if (first->shares_host_memory()) memory_ = std::make_shared<PoisonedMemory>(first);
    session_ = std::make_unique<Session>(executable,
                                         SessionOptions{.threads = threads, .allocator = memory_});
  }

  void run(const Repeat& r) {
    std::vector<Array> inputs;
    for (const Array& a : r.inputs) inputs.push_back(moved(a));
    if (memory_) memory_->fill();
    const std::vector<Array> got = session_->run(inputs);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!std::ranges::equal(got[i].bytes(), r.results[i].bytes())) differs(r, i);
    // The next run's results may lie in the same memory: what it does not write must show.
    for (const Array& a : got) {
      const std::span<std::byte> memory = as_input(a).memory;
      std::ranges::fill(memory, std::byte{poison});
    }
  }

 private:
  void differs(const Repeat& r, std::size_t result) const {
    std::string sizes;
    for (const Array& a : r.inputs) sizes += cat(sizes.empty() ? "" : ", ", a.type());
    throw UserError("refused: result ", result, " changes from run to run on the same inputs (",
                    sizes, "), here with ", threads_, threads_ == 1 ? " thread" : " threads",
                    ": it depends on what ran before, on what its memory held or where it lay, or "
                    "on the number of threads");
  }

  int threads_;
  std::shared_ptr<PoisonedMemory> memory_;
  std::unique_ptr<Session> session_;
};

}  // namespace

void check_repeats(const std::shared_ptr<const Executable>& executable,
                   const std::vector<Repeat>& all) {
  if (all.empty()) return;
  // What a run costs grows with them.
  const auto bytes = [](const Repeat& r) { return bytes_of(r.inputs) + bytes_of(r.results); };
  const auto [least, most] = std::ranges::minmax_element(all, {}, bytes);
  for (const int threads : repeat_threads) {
    Repeats repeats(executable, threads);
    repeats.run(*least);
    if (threads == 1)
      for (std::size_t i = all.size(); i-- > 0;) repeats.run(all[i]);
    else
      repeats.run(*most);
    repeats.run(*least);
  }
}

}  // namespace hone
