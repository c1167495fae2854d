#include "schedule/updates.h"

#include <algorithm>
#include <unordered_map>

#include "ir/measured.h"
#include "ops/ops.h"
#include "schedule/reads.h"

namespace hone {

namespace {

// A smaller value can as well be recomputed in one pass.
constexpr std::int64_t least_bytes = 64 << 10;

class UpdateFinder {
 public:
  UpdateFinder(const Function& f, const std::vector<bool>& weights, const std::vector<bool>& owned,
               const Grouping& g)
      : graph_(f.graph()), weights_(weights), grouping_(g) {
    for (std::size_t i = 0; i < owned.size(); ++i)
      if (owned[i]) owned_.push_back(f.param(i).node());
  }

  bool is_update(NodeId n) const {
    const Op& op = graph_.op(n);
    const bool is_scatter = &op == &ops::scatter;
    if (!is_scatter && &op != &ops::dynamic_update) return false;
    if (grouping_.roles[n] != Role::computed || weights_[n]) return false;
    const Value whole = graph_.operands(n)[0], base = grouping_.base_of(whole);
    if (!is_scatter && !is_part(graph_.operands(n)[1].shape(), whole.shape())) return false;
    switch (grouping_.roles[base.node()]) {
      case Role::param:
        return std::find(owned_.begin(), owned_.end(), base.node()) != owned_.end();
      case Role::computed:
      case Role::control:
      case Role::assembled:
        return !weights_[base.node()] && (is_scatter || is_large(whole.type()));
      default:
        return false;
    }
  }

 private:
  static bool is_part(const Shape& part, const Shape& whole) {
    const Dim a = part.count() * Dim(2), b = whole.count();
    return !a.is_number() || !b.is_number() || a.number() <= b.number();
  }
  static bool is_large(const Type& t) {
    const Dim bytes = byte_count(t);
    return !bytes.is_number() || bytes.number() >= least_bytes;
  }

  const Graph& graph_;
  const std::vector<bool>& weights_;
  const Grouping& grouping_;
  std::vector<NodeId> owned_;
};

// A group that overwrites the memory of a value.
struct Writer {
  Value base;
  std::uint32_t group;
};

class Orderer {
 public:
  Orderer(const Function& f, Grouping& g) : graph_(f.graph()), grouping_(g) {}

  void run(const std::vector<Writer>& writers) {
    std::vector<std::uint32_t> order(grouping_.groups.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    order_ = order;
    position_ = order;
    for (const Writer& w : writers) note_readers(w.base);
    for (const Writer& w : writers) move_behind_readers(w);
    if (order_ == order) return;
    reorder(grouping_, order_);
  }

 private:
  static constexpr std::uint32_t furthest = 4096;  // groups between a writer and the last reader

  void note_readers(Value base) { readers_.try_emplace(grouping_.value_number(base)); }

  const std::vector<std::uint32_t>& readers(Value base) {
    if (!are_readers_known_) find_readers();
    return readers_.at(grouping_.value_number(base));
  }

  void find_readers() {
    are_readers_known_ = true;
    for (std::uint32_t g = 0; g < grouping_.groups.size(); ++g)
      for_each_read(graph_, grouping_, g, [&](Value base) {
        auto it = readers_.find(grouping_.value_number(base));
        if (it != readers_.end() && (it->second.empty() || it->second.back() != g))
          it->second.push_back(g);
      });
  }

  bool depends_on_moved(std::uint32_t group, const std::vector<bool>& is_moved) const {
    bool found = false;
    for_each_read(graph_, grouping_, group, [&](Value v) {
      const std::uint32_t g = grouping_.group_of[v.node()];
      found = found || (g != Grouping::none && is_moved[g]);
    });
    return found;
  }

  void move_behind_readers(const Writer& w) {
    const std::uint32_t first = position_[w.group];
    std::uint32_t last = first;
    for (std::uint32_t g : readers(w.base)) last = std::max(last, position_[g]);
    if (last == first || last - first > furthest) return;
    std::vector<bool> is_moved(grouping_.groups.size(), false);
    is_moved[w.group] = true;
    std::vector<std::uint32_t> moved = {w.group}, stay;
    for (std::uint32_t at = first + 1; at <= last; ++at) {
      const std::uint32_t g = order_[at];
      if (!depends_on_moved(g, is_moved)) {
        stay.push_back(g);
        continue;
      }
      const std::vector<std::uint32_t>& all = readers(w.base);
      if (std::find(all.begin(), all.end(), g) != all.end()) return;  // reads both
      is_moved[g] = true;
      moved.push_back(g);
    }
    stay.insert(stay.end(), moved.begin(), moved.end());
    for (std::size_t i = 0; i < stay.size(); ++i) {
      order_[first + i] = stay[i];
      position_[stay[i]] = first + static_cast<std::uint32_t>(i);
    }
  }

  const Graph& graph_;
  Grouping& grouping_;
  std::vector<std::uint32_t> order_, position_;                            // groups by index
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> readers_;  // by value number
  bool are_readers_known_ = false;
};

}  // namespace

Value changed_part(Value update) { return update.operand(update.is(ops::scatter) ? 2 : 1); }

void find_updates(const Function& f, const std::vector<bool>& weights,
                  const std::vector<bool>& owned, Grouping& g) {
  const UpdateFinder finder(f, weights, owned, g);
  for (NodeId n : g.order) {
    if (!finder.is_update(n)) continue;
    g.updates.resize(f.graph().node_count(), false);
    g.updates[n] = true;
  }
}

void order_writers(const Function& f, const std::vector<bool>& owned, Grouping& g) {
  std::vector<Writer> writers;
  if (!g.updates.empty())
    for (NodeId n : g.order)
      if (g.updates[n]) writers.push_back({g.base_of(f.graph().operands(n)[0]), g.group_of[n]});
  for (std::size_t i = 0; i < std::min(owned.size(), f.results().size()); ++i) {
    const std::uint32_t made_by = g.group_of[g.base_of(f.result(i)).node()];
    if (owned[i] && made_by != Grouping::none && f.param(i).type() == f.result(i).type())
      writers.push_back({f.param(i), made_by});
  }
  // Nodes that measure a size must stay before nodes that use it, which operands do not show.
  if (writers.empty() || !measured_sizes(f.graph()).empty()) return;
  Orderer(f, g).run(writers);
}

}  // namespace hone
