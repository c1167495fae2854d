#include "plan/audit.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/few.h"
#include "plan/stream_order.h"

namespace hone {

namespace {

using Kind = PlanBuffer::Kind;

// A view with its sizes evaluated.
struct Window {
  // Bytes of its buffer from `first` up to `end`; some between may not be its own.
  std::int64_t first = 0, end = 0;
  std::int64_t element = 1;  // bytes
  Few<std::int64_t, 8> dims, strides;

  bool is_dense() const {
    std::int64_t count = 1;
    for (std::int64_t n : dims) count *= n;
    return end - first == count * element;
  }
};

// Whether two windows, of which neither is empty, are different parts of one tensor with these
// strides along some axis, although the bytes of one may lie between those of the other.
bool are_parts(const Window& a, const Window& b) {
  if (a.element != b.element || a.dims.size() != b.dims.size()) return false;
  struct Axis {
    std::int64_t stride, of_a, of_b;
  };
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    if (a.strides[i] != b.strides[i] || a.strides[i] <= 0) return false;
    axes.push_back({a.strides[i], a.dims[i], b.dims[i]});
  }
  std::ranges::stable_sort(axes, std::greater(), &Axis::stride);
  std::int64_t at_a = a.first / a.element, at_b = b.first / b.element;
  std::int64_t reach_a = 1, reach_b = 1;  // elements from the first to behind the last
  for (const Axis& x : axes) {
    reach_a += (x.of_a - 1) * x.stride;
    reach_b += (x.of_b - 1) * x.stride;
  }
  for (const Axis& x : axes) {
    const std::int64_t from_a = at_a / x.stride, from_b = at_b / x.stride;
    at_a %= x.stride;
    at_b %= x.stride;
    reach_a -= (x.of_a - 1) * x.stride;
    reach_b -= (x.of_b - 1) * x.stride;
    if (at_a + reach_a > x.stride || at_b + reach_b > x.stride) return false;
    if (from_a + x.of_a <= from_b || from_b + x.of_b <= from_a) return true;
  }
  return false;
}

bool meet(const Window& a, const Window& b) {
  return a.first < b.end && b.first < a.end && !are_parts(a, b);
}

struct AuditProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The contents of memory between two steps.
struct Contents {
  std::vector<bool> is_there;  // per buffer
  // Per device: arena buffers with valid data, by first byte.
  std::vector<std::map<std::int64_t, std::uint32_t>> live;
  StreamOrder order;
  // Per parameter: where results in it were written.
  std::map<std::uint32_t, std::vector<Window>> overwritten;
};

class Auditor {
 public:
  Auditor(const Plan& plan, const PlanEntry& entry, const Variant& variant,
          const std::function<std::int64_t(const Dim&)>& size)
      : plan_(plan),
        entry_(entry),
        variant_(variant),
        size_(size),
        places_(variant.buffers.size()) {
    for (std::uint32_t b = 0; b < variant.buffers.size(); ++b)
      if (variant.buffers[b].kind == Kind::result) versions_[variant.buffers[b].index].push_back(b);
  }

  void run() {
    Contents now = at_start();
    if (!walk(variant_.steps, now)) return;  // these sizes are refused anyway
    for (std::uint32_t r = 0; r < entry_.results.size(); ++r)
      require(versions_.contains(r) || entry_.result_alias[r] >= 0 || is_empty(variant_.results[r]),
              plan_.name, ": no step writes result ", r);
    // Several buffers of one result hold it one after the other.
    for (std::uint32_t b = 0; b < variant_.buffers.size(); ++b)
      require(variant_.buffers[b].kind != Kind::result || is_result_there(b, now) ||
                  place(b).bytes == 0,
              plan_.name, ": no step writes result ", variant_.buffers[b].index);
  }

 private:
  template <class... Parts>
  static void require(bool holds, const Parts&... parts) {
    if (!holds) throw AuditProblem(cat(parts...));
  }

  struct Place {
    std::int64_t first = 0, bytes = -1;  // -1: not evaluated yet
    std::int64_t end() const { return first + bytes; }
  };

  std::int64_t value(const Dim& d) const { return d.is_number() ? d.number() : size_(d); }
  bool is_empty(const Type& t) const { return !t.is_tensor() || value(byte_count(t)) == 0; }
  bool is_arena(std::uint32_t b) const { return variant_.buffers[b].kind == Kind::arena; }

  const Place& place(std::uint32_t b) {
    constexpr std::int64_t alignment = 64;
    Place& p = places_[b];
    if (p.bytes >= 0) return p;
    const PlanBuffer& buffer = variant_.buffers[b];
    const Place found{is_arena(b) ? value(buffer.offset) : 0, value(buffer.bytes)};
    if (found.bytes < 0)
      throw UserError(plan_.name, ": buffer ", b, " has ", found.bytes, " bytes");
    require(!is_arena(b) || (found.first >= 0 && found.first % alignment == 0 &&
                             found.end() <= value(arena_bytes(b))),
            plan_.name, ": buffer ", b, " at ", found.first, " of ", found.bytes,
            " bytes does not fit the arena of ", arena_bytes(b));
    return p = found;
  }

  const Dim& arena_bytes(std::uint32_t b) const {
    return variant_.devices[variant_.buffers[b].device].arena_bytes;
  }

  // Whether both buffers are memory of the same result.
  bool are_one_result(std::uint32_t a, std::uint32_t b) const {
    return variant_.buffers[a].kind == Kind::result && variant_.buffers[b].kind == Kind::result &&
           variant_.buffers[a].index == variant_.buffers[b].index;
  }
  bool is_result_there(std::uint32_t result, const Contents& now) const {
    const std::vector<std::uint32_t>& all = versions_.at(variant_.buffers[result].index);
    return std::any_of(all.begin(), all.end(), [&](std::uint32_t b) { return now.is_there[b]; });
  }
  // The donated parameter in which the result lies, or -1.
  std::int32_t home_of(std::uint32_t b) const {
    const PlanBuffer& buffer = variant_.buffers[b];
    return buffer.kind == Kind::result ? entry_.result_alias[buffer.index] : -1;
  }

  Window window_of(const View& v) const {
    Window out;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < v.dims.size(); ++i) {
      const std::int64_t n = value(v.dims[i]), stride = value(v.strides[i]);
      if (n <= 0) return {};
      last += (n - 1) * stride;
      out.dims.push_back(n);
      out.strides.push_back(stride);
    }
    out.element = byte_size(v.dtype);
    out.first = value(v.offset);
    out.end = out.first + (last + 1) * out.element;
    return out;
  }

  bool are_one_place(const View& a, const View& b) const {
    if (a.dims.size() != b.dims.size() || value(a.offset) != value(b.offset)) return false;
    for (std::size_t i = 0; i < a.dims.size(); ++i)
      if (value(a.dims[i]) != value(b.dims[i]) ||
          (value(a.dims[i]) > 1 && value(a.strides[i]) != value(b.strides[i])))
        return false;
    return true;
  }

  Contents at_start() const {
    Contents out{{}, {}, StreamOrder(variant_)};
    out.live.resize(variant_.devices.size());
    for (const PlanBuffer& b : variant_.buffers)
      out.is_there.push_back(b.kind == Kind::param || b.kind == Kind::weight ||
                             (b.kind == Kind::prepared && plan_.prepared[b.index].size() > 0));
    return out;
  }

  // False: the run is refused before the end.
  bool walk(const std::vector<Step>& steps, Contents& now) {
    for (const Step& s : steps)
      if (!step(s, now)) return false;
    return true;
  }

  bool step(const Step& s, Contents& now) {
    if (s.kind != Step::Kind::loop) now.order.enter(s);
    if (s.kind == Step::Kind::refuse)
      return !s.scalars.empty() && value(s.scalars[0]) == value(s.scalars[1]);
    if (s.kind == Step::Kind::loop) return loop(s, now);
    look(s, now);
    return s.kind == Step::Kind::branch ? branch(s, now) : walk_body(s.body, now);
  }

  // A body that is impossible at these sizes is refused when it is reached.
  bool walk_body(const std::vector<Step>& steps, Contents& now) {
    try {
      return walk(steps, now);
    } catch (const UserError&) {
      return false;
    }
  }

  // Keeps what is valid after both paths.
  bool branch(const Step& s, Contents& now) {
    Contents other = now;
    const bool yes = walk_body(s.body, now), no = walk_body(s.otherwise, other);
    if (!yes) now = std::move(other);
    if (yes && no) {
      for (auto& [param, all] : other.overwritten)
        for (const Window& w : all) note_overwritten(now.overwritten[param], w);
      for (std::uint32_t b = 0; b < now.is_there.size(); ++b)
        if (now.is_there[b] && !other.is_there[b]) drop(b, now);
      now.order.meet(other.order);
    }
    return yes || no;
  }

  // Walks twice: data that the second iteration reads must survive the first. The loop may also run
  // zero times.
  bool loop(const Step& s, Contents& now) {
    if (!walk_body(s.otherwise, now)) return false;
    now.order.enter(s);
    look(s, now);
    Contents after = now;
    for (int round = 0; round < 2; ++round)
      if (!walk_body(s.body, after) || !walk_body(s.otherwise, after)) return true;
    after.order.enter(s);
    look(s, after);
    now = std::move(after);
    return true;
  }

  // All operands are read before any is written; operands in one place must be equal views.
  void look(const Step& s, Contents& now) {
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (!s.written[i]) read(s, s.operands[i], now);
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      if (!s.written[i]) continue;
      for (std::size_t k = 0; k < s.operands.size(); ++k)
        if (k != i && (!s.written[k] || k < i)) keep_apart(s, s.operands[i], s.operands[k]);
      write(s, s.operands[i], now, is_copied_onto_itself(s));
    }
  }

  // A copy between a result and the parameter that it overwrites, at the same place.
  bool is_copied_onto_itself(const Step& s) const {
    return s.kind == Step::Kind::copy &&
           are_in_one_param(s.operands[1].buffer, s.operands[0].buffer) &&
           are_one_place(s.operands[0], s.operands[1]);
  }

  void read(const Step& s, const View& v, Contents& now) {
    const std::uint32_t b = v.buffer;
    require(now.order.read(s, b), plan_.name, ": step '", s.name, "' reads buffer ", b,
            " without waiting for the stream that writes it");
    require(now.is_there[b] || place(b).bytes == 0, plan_.name, ": step '", s.name,
            "' reads buffer ", b, ", which nothing wrote or something overwrote");
    if (variant_.buffers[b].kind != Kind::param || now.overwritten.empty()) return;
    const auto it = now.overwritten.find(variant_.buffers[b].index);
    if (it == now.overwritten.end()) return;
    const Window window = window_of(v);
    for (const Window& gone : it->second)
      require(!meet(gone, window), plan_.name, ": step '", s.name, "' reads input ", it->first,
              " where a result overwrote it");
  }

  void keep_apart(const Step& s, const View& to, const View& from) {
    if (to.buffer == from.buffer) return;
    bool is_apart = true, is_same = s.kind != Step::Kind::library;
    if (share_arena(to.buffer, from.buffer)) {
      const Place &a = place(to.buffer), &b = place(from.buffer);
      is_apart = a.end() <= b.first || b.end() <= a.first || a.bytes == 0 || b.bytes == 0;
      is_same = is_same && a.first == b.first && a.bytes == b.bytes;
    } else if (are_one_result(to.buffer, from.buffer) || are_in_one_param(to.buffer, from.buffer)) {
      is_apart = !meet(window_of(to), window_of(from));
      is_same = is_same && are_one_place(to, from);
    }
    require(is_apart || is_same, plan_.name, ": step '", s.name, "' writes buffer ", to.buffer,
            " over buffer ", from.buffer, ", which it uses");
  }

  // Whether they are a result and the parameter that it overwrites.
  bool are_in_one_param(std::uint32_t to, std::uint32_t from) const {
    const std::int32_t param = home_of(to);
    return param >= 0 && variant_.buffers[from].kind == Kind::param &&
           variant_.buffers[from].index == static_cast<std::uint32_t>(param);
  }

  void write(const Step& s, const View& v, Contents& now, bool changes_nothing) {
    const std::uint32_t b = v.buffer;
    const PlanBuffer& buffer = variant_.buffers[b];
    const auto overlaps = [&](std::uint32_t x, std::uint32_t y) { return share_memory(x, y); };
    require(now.order.write(s, b, overlaps), plan_.name, ": step '", s.name, "' writes buffer ", b,
            " without waiting for the streams that still use its memory");
    require(buffer.kind != Kind::param && buffer.kind != Kind::weight, plan_.name,
            ": a step writes an input or a weight (buffer ", b, ")");
    if (const std::int32_t param = home_of(b); param >= 0 && !changes_nothing)
      note_overwritten(now.overwritten[static_cast<std::uint32_t>(param)], window_of(v));
    if (buffer.kind == Kind::result)
      for (std::uint32_t other : versions_.at(buffer.index)) now.is_there[other] = false;
    if (buffer.kind == Kind::arena) drop_overlapping(b, now);
    now.is_there[b] = true;
  }

  static void note_overwritten(std::vector<Window>& all, const Window& more) {
    for (const Window& w : all)
      if (w.is_dense() && w.first <= more.first && more.end <= w.end) return;
    all.push_back(more);
  }

  void drop_overlapping(std::uint32_t b, Contents& now) {
    const Place& p = place(b);
    if (p.bytes == 0) return;
    auto& live = live_beside(b, now);
    auto it = live.lower_bound(p.first);
    if (it != live.begin() && place(std::prev(it)->second).end() > p.first) --it;
    while (it != live.end() && it->first < p.end()) {
      if (it->second != b) now.is_there[it->second] = false;
      it = live.erase(it);
    }
    live.emplace(p.first, b);
  }

  std::map<std::int64_t, std::uint32_t>& live_beside(std::uint32_t b, Contents& now) const {
    return now.live[variant_.buffers[b].device];
  }

  bool share_arena(std::uint32_t a, std::uint32_t b) const {
    return is_arena(a) && is_arena(b) && variant_.buffers[a].device == variant_.buffers[b].device;
  }

  // Whether they share bytes: in an arena, or as a result in a donated parameter.
  bool share_memory(std::uint32_t a, std::uint32_t b) {
    if (share_arena(a, b))
      return place(a).end() > place(b).first && place(b).end() > place(a).first &&
             place(a).bytes > 0 && place(b).bytes > 0;
    const PlanBuffer &x = variant_.buffers[a], &y = variant_.buffers[b];
    if (x.kind == y.kind) return x.index == y.index && !is_arena(a) && x.device == y.device;
    return x.kind == Kind::param && y.kind == Kind::result &&
           entry_.result_alias[y.index] == static_cast<std::int64_t>(x.index);
  }

  void drop(std::uint32_t b, Contents& now) {
    now.is_there[b] = false;
    auto& live = live_beside(b, now);
    if (auto it = live.find(place(b).first); it != live.end() && it->second == b) live.erase(it);
  }

  const Plan& plan_;
  const PlanEntry& entry_;
  const Variant& variant_;
  const std::function<std::int64_t(const Dim&)>& size_;
  std::vector<Place> places_;                                     // per buffer
  std::map<std::uint32_t, std::vector<std::uint32_t>> versions_;  // per result: its buffers
};

}  // namespace

std::string audit_problem(const Plan& plan, const PlanEntry& entry, const Variant& variant,
                          const std::function<std::int64_t(const Dim&)>& size) try {
  Auditor(plan, entry, variant, size).run();
  return "";
} catch (const AuditProblem& e) {
  return e.what();
}

void audit(const Plan& plan, const PlanEntry& entry, const Variant& variant,
           const std::function<std::int64_t(const Dim&)>& size) {
  const std::string problem = audit_problem(plan, entry, variant, size);
  HONE_ASSERT(problem.empty(), problem);
}

}  // namespace hone
