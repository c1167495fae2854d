#include "backend/vulkan/device/stream.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <unordered_map>

#include "backend/vulkan/device/queue.h"
#include "base/error.h"

namespace hone::vulkan {

namespace {

constexpr std::uint32_t most_groups = 65535;
// Limits scratch memory: kernels that need it run with fewer groups.
constexpr std::uint64_t most_scratch = std::uint64_t{64} << 20;

OperandReach reach_of(const StridedCopy& s, const std::vector<std::int64_t>& strides) {
  OperandReach r{.end = static_cast<std::int64_t>(s.element_bytes)};
  for (std::size_t i = 0; i < s.dims.size(); ++i)
    (strides[i] < 0 ? r.begin : r.end) += (s.dims[i] - 1) * strides[i];
  return r;
}

class VulkanEvent final : public Event {
 public:
  explicit VulkanEvent(std::unique_ptr<const Clock> t) : time(std::move(t)) {}
  void synchronize() override {
    if (work) work->wait(value);
  }
  std::optional<double> ms_since(const Event& other) const override {
    const auto* from = dynamic_cast<const VulkanEvent*>(&other);
    if (!from || !time || !from->time) return std::nullopt;
    return time->ms_since(*from->time);
  }
  std::unique_ptr<const Clock> time;  // null: no time
  std::shared_ptr<Work> work;
  std::uint64_t value = 0;
};

class VulkanStream final : public Stream {
 public:
  explicit VulkanStream(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)),
        work_(std::make_shared<Work>(shared_->machine, shared_->staging)) {}
  ~VulkanStream() override {
    try {
      work_->synchronize();
    } catch (const UserError&) {
      // There is no caller left to report to.
    }
    if (scratch_) shared_->memory.free(scratch_);
  }

  void reserve_scratch(std::size_t) override {}
  int threads() const override { return 1; }

  void upload(DeviceMemory to, std::span<const std::byte> from) override {
    while (!from.empty()) {
      const Memory::Place place = shared_->memory.find(to, from.size());
      const Work::Staged s = work_->stage(from.size(), 16);
      std::memcpy(s.bytes, from.data(), s.count);
      work_->add_copy(s.place, place, s.count);
      to = to + static_cast<std::int64_t>(s.count);
      from = from.subspan(s.count);
    }
  }
  void download(std::span<std::byte> to, DeviceMemory from) override {
    while (!to.empty()) {
      const Memory::Place place = shared_->memory.find(from, to.size());
      const Work::Staged s = work_->stage(to.size(), 16);
      work_->add_copy(place, s.place, s.count);
      work_->deliver(to.first(s.count), s.bytes);
      from = from + static_cast<std::int64_t>(s.count);
      to = to.subspan(s.count);
    }
  }
  void copy(DeviceMemory to, DeviceMemory from, std::size_t bytes) override {
    if (bytes == 0) return;
    const Memory::Place target = shared_->memory.find(to, bytes),
                        source = shared_->memory.find(from, bytes);
    const bool is_aligned = (target.address | source.address) % vector_bytes == 0;
    const std::uint64_t by_kernel =
        is_aligned && bytes >= least_of_kernel ? bytes / vector_bytes * vector_bytes : 0;
    if (by_kernel > 0) copy_vectors(source, target, by_kernel);
    if (by_kernel < bytes)
      work_->add_copy(source.at(by_kernel), target.at(by_kernel), bytes - by_kernel);
  }
  // The device fills whole words; the remaining bytes are copied.
  void fill(DeviceMemory to, std::byte value, std::size_t bytes) override {
    if (bytes == 0) return;
    const Memory::Place place = shared_->memory.find(to, bytes);
    const std::uint64_t start = place.offset % 4, begin = (4 - start) % 4,
                        end = (start + bytes) / 4 * 4 - start;
    const auto edge = [&](std::uint64_t from, std::uint64_t until) {
      if (from >= until) return;
      const Work::Staged s = work_->stage(until - from, 4);
      std::memset(s.bytes, std::to_integer<int>(value), until - from);
      work_->add_copy(s.place, place.at(from), until - from);
    };
    if (begin + 4 > bytes) return edge(0, bytes);
    edge(0, begin);
    const auto word = std::to_integer<std::uint32_t>(value) * 0x01010101u;
    work_->add_fill(place.at(begin), end - begin, word);
    edge(end, bytes);
  }

  void launch(const Launch& l) override {
    if (l.chunks <= 0) return;
    const Pipeline& loaded = VulkanProgram::pipeline(l.entry);
    HONE_ASSERT(l.operands.size() == loaded.header.operands, "a kernel of ", loaded.header.operands,
                " operands is given ", l.operands.size());
    auto groups = static_cast<std::uint64_t>(std::min<std::int64_t>(l.chunks, most_groups));
    words_.clear();
    accesses_.clear();
    std::uint64_t all = 0;
    for (const DeviceMemory& m : l.operands) {
      words_.push_back(Memory::address(m));
      all |= words_.back();
    }
    const Pipeline& p =
        all % loaded.header.alignment == 0 ? loaded : shared_->pipelines.unaligned(loaded);
    for (std::size_t i = 0; i < l.reaches.size(); ++i) note_access(words_[i], l.reaches[i]);
    for (std::uint32_t i = 0; i < p.header.sizes; ++i)
      words_.push_back(static_cast<std::uint64_t>(l.sizes[i]));
    if (p.header.uses_scratch) {
      const std::uint64_t of_thread = (l.scratch_bytes + 63) / 64 * 64,
                          of_group = std::max<std::uint64_t>(of_thread * p.header.threads, 1);
      groups = std::clamp<std::uint64_t>(most_scratch / of_group, 1, groups);
      words_.push_back(scratch_of(groups * of_group));
      if (!l.reaches.empty())
        note_access(words_.back(), {0, static_cast<std::int64_t>(groups * of_group), true});
      words_.push_back(of_thread);
    }
    work_->add_dispatch(p, shared_->pipelines.layout(), static_cast<std::uint32_t>(groups), words_,
                        accesses_);
  }

  void call(const BoundCall& c, std::span<const DeviceMemory> operands, bool) override {
    const auto* bound = dynamic_cast<const VulkanCopy*>(&c);
    if (!bound) throw UserError("vulkan: a call of another device's library");
    const StridedCopy& s = bound->copy();
    if (bound->count() == 0) return;
    const bool is_plain = s.dims.size() == 1 && s.to_strides == s.from_strides &&
                          s.to_strides[0] == static_cast<std::int64_t>(s.element_bytes);
    if (s.dims.empty() || is_plain)
      return copy(operands[1], operands[0],
                  s.element_bytes * static_cast<std::size_t>(bound->count()));
    words_.clear();
    for (const DeviceMemory& m : operands) words_.push_back(Memory::address(m));
    // The largest unit that divides all addresses, strides and sizes.
    std::uint64_t all = words_[0] | words_[1] | s.element_bytes;
    for (std::size_t i = 0; i < s.dims.size(); ++i)
      all |= static_cast<std::uint64_t>(s.to_strides[i] | s.from_strides[i]);
    const std::uint64_t unit = std::min<std::uint64_t>(all & ~(all - 1), 8);
    const std::uint64_t parts = s.element_bytes / unit, rank = s.dims.size() + (parts > 1);
    if (rank > 8) throw UserError("vulkan: a copy over ", rank, " dimensions; at most 8 are known");
    words_.insert(words_.end(), {static_cast<std::uint64_t>(bound->count()) * parts, unit, rank});
    const auto list = [&](const std::vector<std::int64_t>& values, std::uint64_t last) {
      for (std::size_t i = 0; i < 8; ++i)
        words_.push_back(i < values.size() ? static_cast<std::uint64_t>(values[i])
                         : i + 1 == rank   ? last
                                           : 0);
    };
    list(s.dims, parts);
    list(s.from_strides, unit);
    list(s.to_strides, unit);
    accesses_.clear();
    note_access(words_[0], reach_of(s, s.from_strides));
    note_access(words_[1], reach_of(s, s.to_strides));
    accesses_.back().is_write = true;
    const std::uint64_t groups = (words_[2] + 63) / 64;
    work_->add_dispatch(shared_->strided_copy(), shared_->pipelines.layout(),
                        static_cast<std::uint32_t>(std::min<std::uint64_t>(groups, most_groups)),
                        words_, accesses_);
  }

  void record(Event& e) override {
    auto& event = dynamic_cast<VulkanEvent&>(e);
    if (event.time) work_->add_time(event.time->queries(), 0);
    event.work = work_;
    event.value = work_->now();
  }
  void wait(Event& e) override {
    auto* event = dynamic_cast<VulkanEvent*>(&e);
    if (!event || (event->work && event->work->machine() != work_->machine()))
      return e.synchronize();
    if (event->work && event->work != work_) work_->follow(event->work, event->value);
  }
  void synchronize() override { work_->synchronize(); }

 private:
  // Drivers copy at a fraction of the memory bandwidth; a kernel reaches it.
  static constexpr std::uint64_t vector_bytes = 16, least_of_kernel = 64 << 10;
  void copy_vectors(const Memory::Place& from, const Memory::Place& to, std::uint64_t bytes) {
    const std::uint64_t words[] = {from.address, to.address, bytes / vector_bytes},
                        groups = (words[2] + plain_copy_threads - 1) / plain_copy_threads;
    const Access accesses[] = {{from.address, from.address + bytes, false},
                               {to.address, to.address + bytes, true}};
    work_->add_dispatch(shared_->plain_copy(), shared_->pipelines.layout(),
                        static_cast<std::uint32_t>(std::min<std::uint64_t>(groups, most_groups)),
                        words, accesses);
  }
  void note_access(std::uint64_t address, const OperandReach& r) {
    if (r.begin < r.end)
      accesses_.push_back({address + static_cast<std::uint64_t>(r.begin),
                           address + static_cast<std::uint64_t>(r.end), r.is_written});
  }
  std::uint64_t scratch_of(std::uint64_t bytes) {
    if (bytes > scratch_bytes_) {
      work_->synchronize();
      if (scratch_) shared_->memory.free(scratch_);
      scratch_ = {};
      scratch_ = shared_->memory.alloc(bytes);
      scratch_bytes_ = bytes;
    }
    return Memory::address(scratch_);
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Work> work_;
  DeviceMemory scratch_;
  std::uint64_t scratch_bytes_ = 0;
  std::vector<std::uint64_t> words_;
  std::vector<Access> accesses_;
};

}  // namespace

VulkanCopy::VulkanCopy(StridedCopy c) : copy_(std::move(c)) {
  for (std::int64_t n : copy_.dims) count_ *= n;
  StridedCopy& s = copy_;
  for (std::size_t i = 0; i < s.dims.size();) {
    const bool is_one = s.dims[i] == 1;
    const bool joins = i + 1 < s.dims.size() &&
                       s.to_strides[i] == s.to_strides[i + 1] * s.dims[i + 1] &&
                       s.from_strides[i] == s.from_strides[i + 1] * s.dims[i + 1];
    if (!is_one && !joins) {
      ++i;
      continue;
    }
    if (!is_one) s.dims[i + 1] *= s.dims[i];
    for (auto* list : {&s.dims, &s.to_strides, &s.from_strides})
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(i));
    if (i > 0) --i;
  }
}

Clock::Clock(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 1;
  require(machine_->api.vkCreateQueryPool(machine_->handle, &info, nullptr, &queries_),
          "making a clock");
}

Clock::~Clock() {
  ++machine_->generation;
  machine_->api.vkDestroyQueryPool(machine_->handle, queries_, nullptr);
}

std::uint64_t Clock::ticks() const {
  std::uint64_t out = 0;
  require(machine_->api.vkGetQueryPoolResults(machine_->handle, queries_, 0, 1, sizeof out, &out,
                                              sizeof out, VK_QUERY_RESULT_64_BIT),
          "reading a clock");
  return out;
}

double Clock::ms_since(const Clock& other) const {
  const Adapter& a = machine_->adapter;
  const std::uint64_t past = (ticks() - other.ticks()) << (64 - a.time_bits) >> (64 - a.time_bits);
  return static_cast<double>(past) * static_cast<double>(a.limits.timestampPeriod) * 1e-6;
}

std::unique_ptr<Event> make_event(const Shared& shared, bool has_time) {
  const bool can = has_time && shared.machine->adapter.time_bits > 0;
  return std::make_unique<VulkanEvent>(can ? std::make_unique<const Clock>(shared.machine)
                                           : nullptr);
}

std::unique_ptr<Stream> open_stream(std::shared_ptr<Shared> shared) {
  return std::make_unique<VulkanStream>(std::move(shared));
}

}  // namespace hone::vulkan
