#include "compile/stream_events.h"

#include <algorithm>
#include <map>
#include <vector>

namespace hone {

namespace {

class EventPlacer {
 public:
  explicit EventPlacer(Variant& v) : variant_(v), accesses_(v.buffers.size()) {
    std::size_t streams = 0;
    for (const PlanDevice& d : v.devices) {
      first_stream_.push_back(streams);
      streams += d.streams;
    }
    clocks_.assign(streams, Clock(streams, -1));
    in_arena_.resize(v.devices.size());
    for (std::uint32_t b = 0; b < v.buffers.size(); ++b) {
      const PlanBuffer& buffer = v.buffers[b];
      if (buffer.kind == PlanBuffer::Kind::arena) in_arena_[buffer.device].push_back(b);
      if (buffer.kind == PlanBuffer::Kind::result) of_result_[buffer.index].push_back(b);
    }
  }

  void run() {
    for (std::size_t i = 0; i < variant_.steps.size(); ++i) add(i);
    std::vector<Step> steps;
    for (std::size_t i = 0; i < variant_.steps.size(); ++i) {
      Step& s = variant_.steps[i];
      for (std::uint32_t event : waits_[i])
        steps.push_back(
            {.kind = Step::Kind::wait, .device = s.device, .stream = s.stream, .index = event});
      const std::uint16_t device = s.device, stream = s.stream;
      steps.push_back(std::move(s));
      if (const auto it = events_.find(i); it != events_.end())
        steps.push_back(
            {.kind = Step::Kind::record, .device = device, .stream = stream, .index = it->second});
    }
    variant_.steps = std::move(steps);
    variant_.events = static_cast<std::uint32_t>(events_.size());
  }

 private:
  using Clock = std::vector<std::int64_t>;  // per stream: the last step that is finished
  struct Access {
    std::size_t step;
    bool is_written;
  };

  std::size_t stream_of(std::size_t step) const {
    const Step& s = variant_.steps[step];
    return first_stream_[s.device] + s.stream;
  }

  template <class F>
  static void for_each_operand(const Step& s, const F& f) {
    for (std::size_t i = 0; i < s.operands.size(); ++i) f(s.operands[i].buffer, s.written[i]);
    for (const Step& inner : s.body) for_each_operand(inner, f);
    for (const Step& inner : s.otherwise) for_each_operand(inner, f);
  }

  void add(std::size_t i) {
    Clock& clock = clocks_[stream_of(i)];
    for_each_operand(variant_.steps[i], [&](std::uint32_t b, bool is_written) {
      wait_for(i, b, is_written);
      for (std::uint32_t other : beside(b))
        if (other != b && may_overlap(b, other)) wait_for(i, other, is_written);
    });
    clock[stream_of(i)] = static_cast<std::int64_t>(i);
    after_.push_back(clock);
    for_each_operand(variant_.steps[i], [&](std::uint32_t b, bool is_written) {
      if (is_written) accesses_[b].clear();
      accesses_[b].push_back({i, is_written});
    });
  }

  void wait_for(std::size_t i, std::uint32_t buffer, bool is_written) {
    Clock& clock = clocks_[stream_of(i)];
    for (const Access& a : accesses_[buffer]) {
      const std::size_t from = stream_of(a.step);
      if (!is_written && !a.is_written) continue;
      if (clock[from] >= static_cast<std::int64_t>(a.step)) continue;
      const auto event = static_cast<std::uint32_t>(events_.size());
      waits_[i].push_back(events_.try_emplace(a.step, event).first->second);
      for (std::size_t s = 0; s < clock.size(); ++s)
        clock[s] = std::max(clock[s], after_[a.step][s]);
    }
  }

  // Buffers of the arena, or versions of one result.
  const std::vector<std::uint32_t>& beside(std::uint32_t b) const {
    static const std::vector<std::uint32_t> none;
    const PlanBuffer& buffer = variant_.buffers[b];
    if (buffer.kind == PlanBuffer::Kind::result) return of_result_.at(buffer.index);
    return buffer.kind == PlanBuffer::Kind::arena ? in_arena_[buffer.device] : none;
  }

  // True unless fixed offsets show that they are disjoint. Offsets of results are all 0.
  bool may_overlap(std::uint32_t a, std::uint32_t b) const {
    const PlanBuffer &x = variant_.buffers[a], &y = variant_.buffers[b];
    for (const Dim* d : {&x.offset, &x.bytes, &y.offset, &y.bytes})
      if (!d->is_number()) return true;
    return x.offset.number() < y.offset.number() + y.bytes.number() &&
           y.offset.number() < x.offset.number() + x.bytes.number();
  }

  Variant& variant_;
  std::vector<std::size_t> first_stream_;             // per device
  std::vector<Clock> clocks_;                         // per stream: before its next step
  std::vector<Clock> after_;                          // per step
  std::vector<std::vector<Access>> accesses_;         // per buffer: since it was written last
  std::vector<std::vector<std::uint32_t>> in_arena_;  // per device
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_result_;  // by its number
  std::map<std::size_t, std::uint32_t> events_;  // keyed by the step after which they are recorded
  std::map<std::size_t, std::vector<std::uint32_t>> waits_;  // keyed by the step that waits
};

}  // namespace

void add_stream_events(Variant& v) { EventPlacer(v).run(); }

}  // namespace hone
