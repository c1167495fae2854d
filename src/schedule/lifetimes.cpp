#include "schedule/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "ir/measured.h"
#include "ops/ops.h"
#include "schedule/reads.h"

namespace hone {

namespace {

constexpr std::uint32_t none = Grouping::none;

// A group moves to the slot of another: before it if it comes earlier in the order so far, else
// behind it.
class Mover {
 public:
  Mover(const Function& f, Grouping& g)
      : graph_(f.graph()), g_(g), reads_(g.groups.size()), made_(g.groups.size()) {
    for (std::uint32_t i = 0; i < g.groups.size(); ++i)
      for_each_read(graph_, g, i, [&](const Value& v) {
        if (std::ranges::find(reads_[i], v) == reads_[i].end()) reads_[i].push_back(v);
      });
    std::vector<bool> is_counted(g.value_count);
    for (const Values& all : reads_)
      for (const Value& v : all) {
        const std::uint32_t by = g.group_of[v.node()], number = g.value_number(v);
        if (by == none || is_counted[number]) continue;
        is_counted[number] = true;
        made_[by] += bytes_of(v);
      }
  }

  // Groups that depend on a part that is computed again, as late as possible.
  std::vector<std::uint32_t> late() const {
    const std::vector<bool> is_again = computed_again();
    std::vector<std::uint32_t> slot = numbers(), first_reader(slot.size(), none),
                               last_use(g_.value_count, 0);
    for (std::uint32_t i = static_cast<std::uint32_t>(slot.size()); i-- > 0;) {
      const std::uint32_t to = first_reader[i];
      if (to != none && is_again[i] && may_move(i)) {
        std::int64_t longer = 0;
        for (const Value& v : reads_[i])
          if (g_.group_of[v.node()] != none && last_use[g_.value_number(v)] < to)
            longer += bytes_of(v);
        if (longer < made_[i]) slot[i] = to;
      }
      for (const Value& v : reads_[i]) {
        std::uint32_t& last = last_use[g_.value_number(v)];
        last = std::max(last, slot[i]);
        if (const std::uint32_t by = g_.group_of[v.node()]; by != none)
          first_reader[by] = std::min(first_reader[by], slot[i]);
      }
    }
    return slot;
  }

  // Groups that end the life of more than they make, as early as possible.
  std::vector<std::uint32_t> early() const {
    std::vector<std::uint32_t> slot = numbers();
    std::vector<std::vector<std::uint32_t>> readers(g_.value_count);
    for (std::uint32_t i = 0; i < reads_.size(); ++i)
      for (const Value& v : reads_[i]) readers[g_.value_number(v)].push_back(i);
    for (std::uint32_t i = 0; i < slot.size(); ++i) {
      std::uint32_t from = 0;
      bool has_operands = false;
      for (const Value& v : reads_[i])
        if (const std::uint32_t by = g_.group_of[v.node()]; by != none)
          from = std::max(from, slot[by]), has_operands = true;
      if (!has_operands || from == i || !may_move(i)) continue;
      std::int64_t shorter = 0;
      for (const Value& v : reads_[i]) {
        const auto ends_here = [&](std::uint32_t r) { return r == i || slot[r] <= from; };
        if (g_.group_of[v.node()] != none &&
            std::ranges::all_of(readers[g_.value_number(v)], ends_here))
          shorter += bytes_of(v);
      }
      if (shorter > std::max(made_[i], results_of(i))) slot[i] = from;
    }
    return slot;
  }

 private:
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> out(g_.groups.size());
    std::iota(out.begin(), out.end(), 0U);
    return out;
  }

  bool may_move(std::uint32_t i) const {
    return g_.groups[i].kind != Group::Kind::control && !g_.groups[i].prepare;
  }

  static std::int64_t bytes_of(const Value& v) {
    if (!v.type().is_tensor()) return 0;
    return std::max<std::int64_t>(v.shape().count().high() / 8, 1) * bit_size(v.dtype());
  }

  // What the group makes in memory of its own, read or not.
  std::int64_t results_of(std::uint32_t i) const {
    const NodeId last = g_.groups[i].nodes[g_.groups[i].nodes.size() - 1];
    return bytes_of(Value(&graph_, last));
  }

  std::vector<bool> computed_again() const {
    std::vector<bool> nodes(graph_.node_count()), out(g_.groups.size());
    for (const NodeId n : g_.order) {
      nodes[n] =
          &graph_.op(n) == &ops::replay ||
          std::ranges::any_of(graph_.operands(n), [&](const Value& v) { return nodes[v.node()]; });
      if (nodes[n] && g_.group_of[n] != none) out[g_.group_of[n]] = true;
    }
    return out;
  }

  Graph& graph_;
  const Grouping& g_;
  std::vector<Values> reads_;
  std::vector<std::int64_t> made_;  // bytes that others read
};

void place(Grouping& g, const std::vector<std::uint32_t>& slot) {
  std::vector<std::uint32_t> order(slot.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return slot[i]; });
  reorder(g, order);
}

}  // namespace

void shorten_lifetimes(const Function& f, const std::vector<bool>& owned, Grouping& g) {
  if (!g.has_replays && std::ranges::find(owned, true) == owned.end()) return;
  // Nodes that measure a size must stay before nodes that use it, which operands do not show.
  if (!measured_sizes(f.graph()).empty()) return;
  if (g.has_replays) place(g, Mover(f, g).late());
  place(g, Mover(f, g).early());
}

}  // namespace hone
