#include "schedule/sharing.h"

#include <algorithm>

namespace hone {

namespace {

using Access = BufferUses::Access;
using Overwrite = BufferUses::Overwrite;

Dim end_of(const View& v) {
  Dim last = 0;
  for (std::size_t i = 0; i < v.dims.size(); ++i) last = last + (v.dims[i] - Dim(1)) * v.strides[i];
  return v.offset + (last + Dim(1)) * Dim(byte_size(v.dtype));
}

// True if the byte ranges of the two do not overlap.
bool are_apart(const View& a, const View& b) {
  return prove_less(b.offset, end_of(a)) == false || prove_less(a.offset, end_of(b)) == false;
}

}  // namespace

Sharing::Sharing(const std::vector<PlanBuffer>& buffers, BufferUses uses)
    : buffers_(buffers), uses_(std::move(uses)), aliased_(buffers.size(), false) {
  for (std::uint32_t b = 0; b < buffers.size(); ++b) home_.push_back(b);
  joined_.resize(buffers.size());
  accesses_.resize(buffers.size());
  for (std::uint32_t i = 0; i < uses_.accesses.size(); ++i)
    accesses_[uses_.accesses[i].window.buffer].push_back(i);
  carry_in_place();
  take_results();
}

std::uint32_t Sharing::home(std::uint32_t b) const {
  while (home_[b] != b) b = home_[b];
  return b;
}

bool Sharing::is_inside(std::uint32_t loop, std::uint32_t around) const {
  for (; loop != around; loop = uses_.loop_parents[loop])
    if (loop == 0) return false;
  return true;
}

// Earliest and latest time of a step in one iteration of `loop`: a step of an inner loop may run at
// any time while that loop runs.
std::pair<std::int64_t, std::int64_t> Sharing::times(const Access& a, std::uint32_t loop) const {
  if (a.loop == loop) return {2 * a.step, 2 * a.step};
  std::uint32_t inner = a.loop;
  while (uses_.loop_parents[inner] != loop) inner = uses_.loop_parents[inner];
  return {2 * uses_.loops[inner].first, 2 * uses_.loops[inner].last + 1};
}

bool Sharing::is_overwrite(std::int64_t step, std::uint32_t from, std::uint32_t to) const {
  auto it = std::lower_bound(uses_.overwrites.begin(), uses_.overwrites.end(), step,
                             [](const Overwrite& o, std::int64_t s) { return o.step < s; });
  for (; it != uses_.overwrites.end() && it->step == step; ++it)
    if (it->from == from && it->to == to) return true;
  return false;
}

// True if, in each iteration of the loop, `memory` is read before the group writes there.
bool Sharing::may_lie_in(const Group& group, std::uint32_t memory, std::uint32_t loop) const {
  for (std::uint32_t r : accesses_[memory]) {
    const Access& read = uses_.accesses[r];
    if (read.written || !is_inside(read.loop, loop)) continue;
    const std::int64_t latest = times(read, loop).second;
    for (std::uint32_t b : group)
      for (std::uint32_t w : accesses_[b]) {
        const Access& write = uses_.accesses[w];
        if (!write.written || !is_inside(write.loop, loop)) continue;
        const std::int64_t earliest = times(write, loop).first;
        if (latest < earliest || are_apart(read.window, write.window)) continue;
        const bool is_here = read.loop == loop && write.loop == loop && read.step == write.step;
        if (!is_here || !is_overwrite(read.step, memory, b)) return false;
      }
  }
  return true;
}

// The buffer, and those whose last use is a whole copy into it.
Sharing::Group Sharing::with_copied(std::uint32_t buffer, std::uint32_t loop) const {
  Group out = {buffer};
  const std::int64_t first = uses_.loops[loop].first, last = uses_.loops[loop].last;
  auto it = std::upper_bound(uses_.overwrites.begin(), uses_.overwrites.end(), last,
                             [](std::int64_t s, const Overwrite& o) { return s < o.step; });
  while (it != uses_.overwrites.begin() && std::prev(it)->step >= first) {
    const Overwrite& o = *--it;
    if (!o.is_copy || !o.is_whole || !is_arena(o.from) || home_[o.from] != o.from) continue;
    if (std::find(out.begin(), out.end(), o.to) == out.end()) continue;
    if (std::find(out.begin(), out.end(), o.from) != out.end()) continue;
    if (uses_.live[o.from].last == o.step && uses_.live[o.to].first == o.step &&
        is_inside(uses_.made_in[o.from], loop))
      out.push_back(o.from);
  }
  return out;
}

Sharing::Group Sharing::members(std::uint32_t of) const {
  Group out = {of};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Group& more = joined_[out[i]];
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

void Sharing::join(std::uint32_t buffer, std::uint32_t home) {
  home_[buffer] = home;
  joined_[home].push_back(buffer);
}

void Sharing::leave(std::uint32_t buffer) {
  std::erase(joined_[home_[buffer]], buffer);
  home_[buffer] = buffer;
}

void Sharing::carry_in_place() {
  for (const BufferUses::Carry& c : uses_.carries) {
    if (!is_arena(c.next) || home_[c.next] != c.next || c.next == c.state) continue;
    for (Group group : {with_copied(c.next, c.loop), Group{c.next}}) {
      // Includes the buffers of inner loops that already share their memory.
      Group all;
      for (std::uint32_t b : group)
        for (std::uint32_t m : members(b)) all.push_back(m);
      if (!may_lie_in(all, c.state, c.loop)) continue;
      for (std::uint32_t b : group) join(b, c.state);
      break;
    }
  }
}

// A buffer that is copied whole into a result is written directly there.
void Sharing::take_results() {
  for (std::size_t i = uses_.overwrites.size(); i-- > 0;) {
    const Overwrite& o = uses_.overwrites[i];
    if (!o.is_copy || !o.is_whole || !is_arena(o.from) || home_[o.from] != o.from) continue;
    const std::uint32_t to = home(o.to);
    if (buffers_[to].kind != PlanBuffer::Kind::result || uses_.made_in[o.from] != 0) continue;
    if (uses_.live[o.from].last != o.step || uses_.live[o.to].first != o.step) continue;
    join(o.from, to);
    uses_.live[to].first = std::min(uses_.live[to].first, uses_.live[o.from].first);
  }
}

void Sharing::try_alias(std::uint32_t result, std::uint32_t param) {
  if (aliased_[result] || aliased_[param] || uses_.live[result].first < 0) return;
  const bool is_read_before = uses_.live[param].last < uses_.live[result].first;
  bool fits = is_read_before || may_lie_in(members(result), param, 0);
  if (!fits) {
    // Retry without the buffers that it would take over.
    const Group taken = members(result);
    Group kept;
    for (std::uint32_t b : taken)
      if (uses_.made_in[b] != 0 || b == result) kept.push_back(b);
    fits = kept.size() < taken.size() && may_lie_in(kept, param, 0);
    if (fits)
      for (std::uint32_t b : taken)
        if (b != result && home_[b] == result && uses_.made_in[b] == 0) leave(b);
  }
  if (fits) alias(result, param);
}

void Sharing::share_arena() {
  for (const Overwrite& o : uses_.overwrites) {
    if (!o.is_whole || !is_arena(o.from) || !is_arena(o.to) || home_[o.to] != o.to) continue;
    const std::uint32_t from = home(o.from);
    BufferUses::Range& memory = uses_.live[from];
    if (!is_arena(from) || from == o.to || memory.last != o.step ||
        uses_.live[o.to].first != o.step || uses_.live[o.to].last == o.step)
      continue;
    join(o.to, from);
    memory.last = uses_.live[o.to].last;
  }
}

}  // namespace hone
