#include "plan/audit.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "base/error.h"

namespace hone {

namespace {

using Kind = PlanBuffer::Kind;

// What memory holds between two steps.
struct Contents {
  std::vector<bool> is_there;                  // per buffer
  std::map<std::int64_t, std::uint32_t> live;  // arena buffers that are there, by first byte
};

class Auditor {
 public:
  Auditor(const Plan& plan, const Variant& variant,
          const std::function<std::int64_t(const Dim&)>& size)
      : plan_(plan), variant_(variant), size_(size), places_(variant.buffers.size()) {}

  void run() {
    Contents now = at_start();
    if (!walk(variant_.steps, now)) return;  // these sizes are refused whatever the order
    for (std::uint32_t b = 0; b < variant_.buffers.size(); ++b)
      HONE_ASSERT(
          variant_.buffers[b].kind != Kind::result || now.is_there[b] || place(b).bytes == 0,
          plan_.name, ": no step writes result ", variant_.buffers[b].index);
  }

 private:
  struct Place {
    std::int64_t first = 0, bytes = -1;  // -1: not evaluated yet
    std::int64_t end() const { return first + bytes; }
  };

  std::int64_t value(const Dim& d) const { return d.is_number() ? d.number() : size_(d); }
  bool is_arena(std::uint32_t b) const { return variant_.buffers[b].kind == Kind::arena; }

  const Place& place(std::uint32_t b) {
    constexpr std::int64_t alignment = 64;
    Place& p = places_[b];
    if (p.bytes >= 0) return p;
    const PlanBuffer& buffer = variant_.buffers[b];
    const Place found{is_arena(b) ? value(buffer.offset) : 0, value(buffer.bytes)};
    if (found.bytes < 0)
      throw UserError(plan_.name, ": buffer ", b, " has ", found.bytes, " bytes");
    HONE_ASSERT(!is_arena(b) || (found.first >= 0 && found.first % alignment == 0 &&
                                 found.end() <= value(variant_.arena_bytes)),
                plan_.name, ": buffer ", b, " at ", found.first, " of ", found.bytes,
                " bytes does not fit the arena of ", variant_.arena_bytes);
    return p = found;
  }

  Contents at_start() const {
    Contents out;
    for (const PlanBuffer& b : variant_.buffers)
      out.is_there.push_back(b.kind == Kind::param || b.kind == Kind::weight ||
                             (b.kind == Kind::prepared && plan_.prepared[b.index].data.size() > 0));
    return out;
  }

  // False: the run is refused on the way.
  bool walk(const std::vector<Step>& steps, Contents& now) {
    for (const Step& s : steps)
      if (!step(s, now)) return false;
    return true;
  }

  bool step(const Step& s, Contents& now) {
    if (s.kind == Step::Kind::refuse)
      return !s.scalars.empty() && value(s.scalars[0]) == value(s.scalars[1]);
    if (s.kind == Step::Kind::loop) return loop(s, now);
    look(s, now);
    return s.kind == Step::Kind::branch ? branch(s, now) : walk_body(s.body, now);
  }

  // A body that these sizes make impossible is refused when it is reached.
  bool walk_body(const std::vector<Step>& steps, Contents& now) {
    try {
      return walk(steps, now);
    } catch (const UserError&) {
      return false;
    }
  }

  // What is there afterwards whichever way it went.
  bool branch(const Step& s, Contents& now) {
    Contents other = now;
    const bool yes = walk_body(s.body, now), no = walk_body(s.otherwise, other);
    if (!yes) now = std::move(other);
    if (yes && no)
      for (std::uint32_t b = 0; b < now.is_there.size(); ++b)
        if (now.is_there[b] && !other.is_there[b]) drop(b, now);
    return yes || no;
  }

  // Twice: what the second round reads must outlive the first. It may end before the first.
  bool loop(const Step& s, Contents& now) {
    if (!walk_body(s.otherwise, now)) return false;
    look(s, now);
    Contents after = now;
    for (int round = 0; round < 2; ++round)
      if (!walk_body(s.body, after) || !walk_body(s.otherwise, after)) return true;
    look(s, after);
    now = std::move(after);
    return true;
  }

  // All is read before anything is written; what lies in one place must be one view.
  void look(const Step& s, Contents& now) {
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (!s.written[i]) read(s, s.operands[i].buffer, now);
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      if (!s.written[i]) continue;
      for (std::size_t k = 0; k < s.operands.size(); ++k)
        if (k != i && (!s.written[k] || k < i)) keep_apart(s, s.operands[i], s.operands[k]);
      write(s.operands[i].buffer, now);
    }
  }

  void read(const Step& s, std::uint32_t b, const Contents& now) {
    HONE_ASSERT(now.is_there[b] || place(b).bytes == 0, plan_.name, ": step '", s.name,
                "' reads buffer ", b, ", which nothing wrote or something overwrote");
  }

  void keep_apart(const Step& s, const View& to, const View& from) {
    if (!is_arena(to.buffer) || !is_arena(from.buffer) || to.buffer == from.buffer) return;
    const Place &a = place(to.buffer), &b = place(from.buffer);
    const bool is_apart = a.end() <= b.first || b.end() <= a.first;
    const bool is_same = a.first == b.first && a.bytes == b.bytes && s.kind != Step::Kind::library;
    HONE_ASSERT(is_apart || is_same, plan_.name, ": step '", s.name, "' writes buffer ", to.buffer,
                " over buffer ", from.buffer, ", which it uses");
  }

  void write(std::uint32_t b, Contents& now) {
    const PlanBuffer& buffer = variant_.buffers[b];
    HONE_ASSERT(buffer.kind != Kind::param && buffer.kind != Kind::weight, plan_.name,
                ": a step writes an input or a weight (buffer ", b, ")");
    if (buffer.kind == Kind::result) drop_donated(buffer.index, now);
    if (buffer.kind == Kind::arena) drop_overlapping(b, now);
    now.is_there[b] = true;
  }

  void drop_donated(std::uint32_t result, Contents& now) const {
    const std::int32_t param = plan_.result_alias[result];
    if (param < 0) return;
    for (std::uint32_t b = 0; b < variant_.buffers.size(); ++b)
      if (variant_.buffers[b].kind == Kind::param &&
          variant_.buffers[b].index == static_cast<std::uint32_t>(param))
        now.is_there[b] = false;
  }

  void drop_overlapping(std::uint32_t b, Contents& now) {
    const Place& p = place(b);
    if (p.bytes == 0) return;
    auto it = now.live.lower_bound(p.first);
    if (it != now.live.begin() && place(std::prev(it)->second).end() > p.first) --it;
    while (it != now.live.end() && it->first < p.end()) {
      if (it->second != b) now.is_there[it->second] = false;
      it = now.live.erase(it);
    }
    now.live.emplace(p.first, b);
  }

  void drop(std::uint32_t b, Contents& now) {
    now.is_there[b] = false;
    if (auto it = now.live.find(place(b).first); it != now.live.end() && it->second == b)
      now.live.erase(it);
  }

  const Plan& plan_;
  const Variant& variant_;
  const std::function<std::int64_t(const Dim&)>& size_;
  std::vector<Place> places_;  // per buffer
};

}  // namespace

void audit(const Plan& plan, const Variant& variant,
           const std::function<std::int64_t(const Dim&)>& size) {
  Auditor(plan, variant, size).run();
}

}  // namespace hone
