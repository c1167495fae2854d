#include <algorithm>

#include "report/execution.h"

namespace hone {

namespace {

struct Touches {
  std::vector<std::uint32_t> steps;  // ascending
};

// The steps in a loop's bodies lie between it and `end`.
struct LoopRange {
  std::uint32_t begin, end;
};

void collect(const std::vector<Step>& steps, std::uint32_t& number, std::vector<Touches>& touches,
             std::vector<LoopRange>& loops) {
  for (const Step& s : steps) {
    const std::uint32_t self = number++;
    for (const View& v : s.operands)
      if (auto& list = touches[v.buffer].steps; list.empty() || list.back() != self)
        list.push_back(self);
    collect(s.body, number, touches, loops);
    collect(s.otherwise, number, touches, loops);
    if (s.kind == Step::Kind::loop) loops.push_back({self, number - 1});
  }
}

}  // namespace

std::vector<BufferLife> buffer_lives(const Variant& v, const Sizing& sizes) {
  std::vector<Touches> touches(v.buffers.size());
  std::vector<LoopRange> loops;  // inner ones before those around them
  std::uint32_t number = 0;
  collect(v.steps, number, touches, loops);
  std::vector<BufferLife> out;
  for (std::uint32_t b = 0; b < v.buffers.size(); ++b) {
    const PlanBuffer& buffer = v.buffers[b];
    if (buffer.kind != PlanBuffer::Kind::arena || touches[b].steps.empty()) continue;
    BufferLife life{b, size_of(buffer.offset, sizes), size_of(buffer.bytes, sizes),
                    touches[b].steps.front(), touches[b].steps.back()};
    // A buffer that is used inside and outside of a loop lives for the whole loop.
    for (const LoopRange& l : loops) {
      const bool inside = std::ranges::any_of(
          touches[b].steps, [&](std::uint32_t s) { return s >= l.begin && s <= l.end; });
      if (!inside || (life.first >= l.begin && life.last <= l.end)) continue;
      life.first = std::min(life.first, l.begin);
      life.last = std::max(life.last, l.end);
    }
    out.push_back(life);
  }
  return out;
}

std::vector<std::int64_t> live_bytes(std::span<const BufferLife> lives, std::size_t steps) {
  std::vector<BufferLife> sorted(lives.begin(), lives.end());
  std::ranges::sort(sorted, {}, &BufferLife::offset);
  std::vector<std::int64_t> out(steps, 0), end(steps, 0);
  for (const BufferLife& l : sorted)
    for (std::uint32_t s = l.first; s <= l.last; ++s) {
      const std::int64_t from = std::max(end[s], l.offset), to = l.offset + l.bytes;
      if (to <= from) continue;
      out[s] += to - from;
      end[s] = to;
    }
  return out;
}

}  // namespace hone
