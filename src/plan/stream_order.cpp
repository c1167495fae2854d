#include "plan/stream_order.h"

#include <algorithm>

namespace hone {

namespace {

void join(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

// For these steps the host waits for the stream, then reads their operands or computes them itself.
bool is_for_host(Step::Kind kind) {
  using Kind = Step::Kind;
  return kind == Kind::branch || kind == Kind::loop || kind == Kind::require ||
         kind == Kind::measure || kind == Kind::host;
}

}  // namespace

StreamOrder::StreamOrder(const Variant& v) {
  std::size_t streams = 0;
  for (const PlanDevice& d : v.devices) {
    first_stream_.push_back(streams);
    streams += d.streams;
  }
  const Clock zero(streams, 0);
  clocks_.assign(streams, zero);
  if (!is_needed()) return;
  host_ = counts_ = zero;
  events_.assign(v.events, zero);
  accesses_.resize(v.buffers.size());
}

void StreamOrder::enter(const Step& s) {
  if (!is_needed()) return;
  const std::size_t stream = stream_of(s);
  Clock& clock = clocks_[stream];
  if (is_for_host(s.kind)) join(host_, clock);
  join(clock, host_);
  if (s.kind == Step::Kind::wait) join(clock, events_[s.index]);
  if (s.kind == Step::Kind::record) events_[s.index] = clock;
}

bool StreamOrder::are_before(const std::vector<Access>& all, std::size_t stream) const {
  return std::ranges::all_of(all,
                             [&](const Access& a) { return a.step <= clocks_[stream][a.stream]; });
}

bool StreamOrder::read(const Step& s, std::uint32_t buffer) {
  if (!is_needed()) return true;
  const std::size_t stream = stream_of(s);
  Accesses& of = accesses_[buffer];
  const bool is_in_order = are_before(of.writes, stream);
  clocks_[stream][stream] = ++counts_[stream];
  if (is_for_host(s.kind)) host_[stream] = counts_[stream];
  std::erase_if(of.reads, [&](const Access& a) { return a.stream == stream; });
  of.reads.push_back({stream, counts_[stream]});
  return is_in_order;
}

bool StreamOrder::write(const Step& s, std::uint32_t buffer,
                        const std::function<bool(std::uint32_t, std::uint32_t)>& overlaps) {
  if (!is_needed()) return true;
  const std::size_t stream = stream_of(s);
  bool is_in_order = true;
  for (std::uint32_t b = 0; b < accesses_.size(); ++b)
    if (!accesses_[b].empty() && (b == buffer || overlaps(b, buffer)))
      is_in_order = is_in_order && are_before(accesses_[b].writes, stream) &&
                    are_before(accesses_[b].reads, stream);
  clocks_[stream][stream] = ++counts_[stream];
  if (is_for_host(s.kind)) host_[stream] = counts_[stream];
  accesses_[buffer] = {{{stream, counts_[stream]}}, {}};
  return is_in_order;
}

void StreamOrder::meet(const StreamOrder& other) {
  if (!is_needed()) return;
  const auto lower = [](Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::min(to[i], from[i]);
  };
  for (std::size_t s = 0; s < clocks_.size(); ++s) lower(clocks_[s], other.clocks_[s]);
  for (std::size_t e = 0; e < events_.size(); ++e) lower(events_[e], other.events_[e]);
  lower(host_, other.host_);
  join(counts_, other.counts_);
  for (std::size_t b = 0; b < accesses_.size(); ++b) {
    const Accesses& from = other.accesses_[b];
    Accesses& to = accesses_[b];
    to.writes.insert(to.writes.end(), from.writes.begin(), from.writes.end());
    to.reads.insert(to.reads.end(), from.reads.begin(), from.reads.end());
  }
}

}  // namespace hone
