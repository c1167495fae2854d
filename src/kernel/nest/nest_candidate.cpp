#include "kernel/nest/nest_candidate.h"

#include <algorithm>
#include <set>

#include "kernel/in_place.h"
#include "kernel/nest/arrange.h"
#include "kernel/nest/lower_ordered.h"
#include "kernel/nest/sort.h"
#include "kernel/nest/split_reduce.h"
#include "kernel/walk.h"
#include "ops/ops.h"

namespace hone {

namespace {

using Operand = Candidate::Operand;

// A value that a kernel writes to memory.
struct Root {
  Value value;
  Operand operand;
  Dims strides;
  int level = 0;           // kernels of lower levels run first
  std::vector<int> outer;  // axes that fix every reduction in it
  std::vector<int> inner;  // the other axes; neither list has axes of size 1
  bool reduces = false;
  bool updates = false;  // writes only a part of its memory, see GroupSpec::updates
  Dims memory = {};      // sizes of its memory, if different from the value's

  // The value that is computed elementwise.
  Value computed() const {
    return updates && value.is(ops::dynamic_update) ? value.operand(1) : value;
  }
};

// Roots that share the loops over their outer axes.
struct Class {
  Dims extents;
  std::vector<Root> roots;
  bool reduces = false;
};

bool is_reducing(const Op& op) {
  return op.kind == OpKind::reduction || op.kind == OpKind::contraction;
}

class GroupLowering {
 public:
  GroupLowering(const GroupSpec& spec, const TargetInfo& target, const Tuning& tuning,
                SplitFunction split, std::string name, bool sorts_in_pieces = false)
      : spec_(spec),
        target_(target),
        tuning_(tuning),
        function_(std::move(split.function)),
        name_(std::move(name)),
        sorts_in_pieces_(sorts_in_pieces) {
    for (const Value& v : split.partial) in_memory_.insert(v.node());
    for (NodeId n : live_nodes(function_))
      if (is_ordered_op(function_.graph().op(n))) in_memory_.insert(n);
  }

  Candidate lower() {
    // Each round adds at least one value to those kept in memory.
    for (;;) {
      std::size_t before = in_memory_.size();
      Candidate c = attempt();
      if (in_memory_.size() == before) return c;
    }
  }

 private:
  Candidate attempt() {
    candidate_ = {};
    candidate_.name = name_;
    memory_.clear();
    for (std::size_t i = 0; i < function_.params().size(); ++i)
      memory_[function_.param(i)] = {{Operand::Kind::param, static_cast<int>(i)},
                                     spec_.param_strides[i]};
    std::vector<Root> roots = find_roots();
    for (std::size_t i = 0; i < roots.size();) {
      std::size_t end = i;
      while (end < roots.size() && roots[end].level == roots[i].level) ++end;
      lower_level({roots.begin() + static_cast<std::ptrdiff_t>(i),
                   roots.begin() + static_cast<std::ptrdiff_t>(end)});
      i = end;
    }
    return std::move(candidate_);
  }

  // Results and values kept between kernels, in the order of levels.
  std::vector<Root> find_roots() {
    std::vector<Root> roots;
    std::unordered_set<Value, ValueHash> placed;
    for (std::size_t i = 0; i < function_.results().size(); ++i) {
      Root r{.value = function_.result(i),
             .operand = {Operand::Kind::result, static_cast<int>(i)},
             .strides = spec_.result_strides[i]};
      for (auto [result, param] : spec_.updates)
        r.updates = r.updates || result == static_cast<int>(i);
      placed.insert(r.value);
      roots.push_back(std::move(r));
    }
    std::unordered_set<Value, ValueHash> used;
    for (NodeId n : live_nodes(function_))
      for (Value v : function_.graph().operands(n)) used.insert(v);
    for (NodeId n : in_memory_)
      for (std::uint32_t k = 0; k < function_.graph().result_count(n); ++k) {
        Value v(&function_.graph(), n, k);
        if (placed.contains(v) || !used.contains(v)) continue;
        Operand operand{Operand::Kind::temporary, static_cast<int>(candidate_.temporaries.size())};
        candidate_.temporaries.push_back({v.type(), false});
        roots.push_back({.value = v, .operand = operand, .strides = dense_strides(v.shape())});
      }
    std::vector<int> levels(function_.graph().node_count(), 0);
    for (NodeId n : live_nodes(function_))
      for (Value v : function_.graph().operands(n))
        levels[n] = std::max(levels[n], levels[v.node()] + (in_memory_.contains(v.node()) ? 1 : 0));
    for (Root& r : roots) r.level = levels[r.value.node()];
    std::stable_sort(roots.begin(), roots.end(),
                     [](const Root& a, const Root& b) { return a.level < b.level; });
    return roots;
  }

  void lower_level(std::vector<Root> roots) {
    std::vector<Root> ordered, others;
    for (Root& r : roots) (is_ordered_op(r.value.op()) ? ordered : others).push_back(std::move(r));
    std::set<NodeId> done;
    for (const Root& r : ordered)
      if (done.insert(r.value.node()).second) lower_ordered_node(ordered, r.value.node());
    for (Root& r : others) find_axes(r);
    for (Class& c : classes_of(std::move(others))) lower_class(c);
    for (const Root& r : roots_of_level_) memory_.insert({r.value, {r.operand, r.strides}});
    roots_of_level_.clear();
  }

  // ---- the shape of a nest

  bool reduces(Value root) const {
    bool found = false;
    visit_computed(root, [&](Value v) { found = found || is_reducing(v.op()); });
    return found;
  }

  // Visits every value that a kernel for `root` computes, users first.
  template <class F>
  void visit_computed(Value root, const F& f) const {
    std::vector<Value> stack = {root};
    std::unordered_set<NodeId> seen;
    while (!stack.empty()) {
      Value v = stack.back();
      stack.pop_back();
      if (memory_.contains(v) || !seen.insert(v.node()).second) continue;
      f(v);
      for (Value operand : v.operands()) stack.push_back(operand);
    }
  }

  Lowering make_lowering() const {
    Lowering lowering(std::make_shared<Graph>());
    int next = 0;
    for (const Input& in : inputs_) lowering.set_memory(in.value, {next++, in.strides});
    return lowering;
  }

  void find_axes(Root& r) {
    const Shape& shape = r.computed().shape();
    std::vector<bool> is_outer(static_cast<std::size_t>(shape.rank()), true);
    r.reduces = reduces(r.value);
    if (r.reduces) {
      set_inputs({r});
      Lowering probe = make_lowering();
      Dims position(is_outer.size(), 0);
      for (std::size_t i = 0; i < position.size(); ++i)
        if (shape.dims[i] != Dim(1)) position[i] = probe.open_loop(shape.dims[i]);
      probe.element(r.computed(), position);
      std::fill(is_outer.begin(), is_outer.end(), false);
      for (const Lowering::Computed& c : probe.computed())
        for (const Dim& variable : c.variables)
          for (std::size_t i = 0; i < position.size(); ++i)
            if (position[i] == variable) is_outer[i] = true;
    }
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] != Dim(1))
        (is_outer[static_cast<std::size_t>(i)] ? r.outer : r.inner).push_back(i);
  }

  static Dims extents_of(const Root& r, const std::vector<int>& axes) {
    Dims out;
    for (int a : axes) out.push_back(r.computed().shape()[a]);
    return out;
  }

  static std::vector<Class> classes_of(std::vector<Root> roots) {
    std::vector<Class> classes;
    auto join = [&](Root r) {
      Dims extents = extents_of(r, r.outer);
      auto it = std::find_if(classes.begin(), classes.end(),
                             [&](const Class& c) { return c.extents == extents; });
      if (it == classes.end()) it = classes.insert(classes.end(), {std::move(extents), {}, false});
      it->reduces = it->reduces || r.reduces;
      it->roots.push_back(std::move(r));
    };
    for (Root& r : roots)
      if (r.reduces) join(std::move(r));
    for (Root& r : roots)
      if (r.value && !r.reduces) {
        // If a class of reductions shares its first axes, it runs in the loops of that class.
        Dims extents = extents_of(r, r.outer);
        for (const Class& c : classes)
          if (c.reduces && c.extents.size() < extents.size() &&
              std::equal(c.extents.begin(), c.extents.end(), extents.begin())) {
            auto split = r.outer.begin() + static_cast<std::ptrdiff_t>(c.extents.size());
            r.inner.assign(split, r.outer.end());
            r.outer.erase(split, r.outer.end());
            break;
          }
        join(std::move(r));
      }
    return classes;
  }

  // ---- kernels

  struct Input {
    Value value;
    Operand operand;
    Dims strides;
    Dims memory = {};  // as in Root
  };

  // Collects what the kernel for these roots reads, in a fixed order.
  void set_inputs(const std::vector<Root>& roots) {
    inputs_.clear();
    std::unordered_set<Value, ValueHash> seen;
    std::vector<Value> found;
    for (const Root& r : roots) {
      auto note = [&](Value v) {
        if (memory_.contains(v) && seen.insert(v).second) found.push_back(v);
      };
      note(r.value);
      visit_computed(r.value, [&](Value v) {
        for (Value operand : v.operands()) note(operand);
      });
    }
    std::sort(found.begin(), found.end(), [](Value a, Value b) {
      return std::pair(a.node(), a.index()) < std::pair(b.node(), b.index());
    });
    for (Value v : found) {
      const auto& [operand, strides] = memory_.at(v);
      inputs_.push_back({v, operand, strides});
    }
  }

  Kernel new_kernel(const std::vector<Root>& roots, Candidate::Step& step) {
    Kernel k;
    auto add = [&](const auto& x, bool written) {
      const Dims& dims = x.memory.empty() ? x.value.shape().dims : x.memory;
      k.params.push_back({x.value.dtype(), dims, x.strides, written});
      step.operands.push_back(x.operand);
    };
    for (const Input& in : inputs_) add(in, false);
    for (const Root& r : roots) add(r, true);
    k.name = name_of(roots);
    return k;
  }

  std::string name_of(const std::vector<Root>& roots) const {
    std::set<NodeId> nodes;
    for (const Root& r : roots)
      visit_computed(r.value, [&](Value v) {
        if (v.op().kind != OpKind::leaf) nodes.insert(v.node());
      });
    constexpr std::size_t most_words = 4;
    std::vector<std::string_view> words;
    for (NodeId n : nodes) {
      const Op& op = function_.graph().op(n);
      bool is_plain = op.kind == OpKind::movement && nodes.size() > 1;
      if (!is_plain && (words.empty() || words.back() != op.name)) words.push_back(op.name);
    }
    std::string name;
    for (std::size_t i = 0; i < std::min(words.size(), most_words); ++i)
      name += cat(i ? "_" : "", words[i]);
    return name.empty() ? "copy" : name;
  }

  void add_step(Kernel k, Candidate::Step step) {
    step.what = std::move(k);
    candidate_.steps.push_back(std::move(step));
  }

  void lower_class(const Class& c) {
    set_inputs(c.roots);
    Lowering lowering = make_lowering();
    Dims variables;
    for (const Dim& e : c.extents) variables.push_back(lowering.open_loop(e));
    if (stores_last(function_))
      store_together(lowering, c.roots, variables);
    else
      for (std::size_t i = 0; i < c.roots.size(); ++i)
        store_root(lowering, c.roots[i], static_cast<int>(inputs_.size() + i), variables);
    for (std::size_t i = 0; i < c.extents.size(); ++i) lowering.close_loop();
    keep_repeated(lowering);
    Candidate::Step step;
    Kernel k = new_kernel(c.roots, step);
    arrange(k, lowering, lowering.take(), target_, tuning_);
    add_step(std::move(k), std::move(step));
    roots_of_level_.insert(roots_of_level_.end(), c.roots.begin(), c.roots.end());
  }

  // Each may overwrite what the others read: see in_place.h.
  void store_together(Lowering& lowering, const std::vector<Root>& roots,
                      const Dims& variables) const {
    std::vector<std::pair<Dims, Value>> elements;
    for (const Root& r : roots) {
      HONE_ASSERT(r.inner.empty() && r.computed() == r.value, "a result of its own loops");
      Dims position(static_cast<std::size_t>(r.value.rank()), 0);
      for (std::size_t i = 0; i < r.outer.size(); ++i)
        position[static_cast<std::size_t>(r.outer[i])] = variables[i];
      const Value x = lowering.element(r.value, position);
      elements.emplace_back(std::move(position), x);
    }
    for (auto& [position, x] : elements) x = lowering.declare(x);
    for (std::size_t i = 0; i < roots.size(); ++i)
      lowering.store(elements[i].second, elements[i].first,
                     {static_cast<int>(inputs_.size() + i), roots[i].strides}, {});
  }

  static void store_root(Lowering& lowering, const Root& r, int param, const Dims& variables) {
    const Value computed = r.computed();
    Dims position(static_cast<std::size_t>(computed.rank()), 0);
    for (std::size_t i = 0; i < r.outer.size(); ++i)
      position[static_cast<std::size_t>(r.outer[i])] = variables[i];
    for (int a : r.inner)
      position[static_cast<std::size_t>(a)] = lowering.open_loop(computed.shape()[a]);
    if (computed == r.value)
      lowering.store(r.value, position, {param, r.strides});
    else
      lowering.store_part(r.value, std::move(position), {param, r.strides});
    for (std::size_t i = 0; i < r.inner.size(); ++i) lowering.close_loop();
  }

  // A reduction that was computed several times per element is kept in memory in the next attempt.
  void keep_repeated(const Lowering& lowering) {
    for (const Lowering::Computed& c : lowering.computed())
      if (c.elements > 1.5 * std::max(1.0, typical(c.value.shape().count())))
        in_memory_.insert(c.value.node());
  }

  void lower_ordered_node(const std::vector<Root>& all, NodeId n) {
    std::vector<Root> roots;
    for (const Root& r : all)
      if (r.value.node() == n) roots.push_back(r);
    set_inputs(roots);
    const Value v(&function_.graph(), n);
    const std::optional<SortPieces> pieces =
        sorts_in_pieces_ && v.is(ops::sort) ? sort_pieces(v, tuning_) : std::nullopt;
    if (pieces)
      lower_sort_steps(v, *pieces, roots);
    else
      add_ordered_step(roots, "", [&](Lowering& l, Kernel& k, std::span<const OrderedResult> to) {
        v.is(ops::sort) ? lower_sort(l, k, v, to) : lower_ordered(l, v, to);
      });
    roots_of_level_.insert(roots_of_level_.end(), roots.begin(), roots.end());
  }

  // A kernel that reads inputs_ and writes `to`.
  template <class F>
  void add_ordered_step(const std::vector<Root>& to, std::string_view suffix, const F& lower) {
    Lowering lowering = make_lowering();
    const auto first = static_cast<int>(inputs_.size());
    Candidate::Step step;
    Kernel k = new_kernel(to, step);
    k.name += suffix;
    lower(lowering, k, results_of(to, first));
    keep_repeated(lowering);
    arrange(k, lowering, lowering.take(), target_, tuning_);
    add_step(std::move(k), std::move(step));
  }

  static std::vector<OrderedResult> results_of(const std::vector<Root>& roots, int first_param) {
    std::vector<OrderedResult> out;
    for (const Root& r : roots)
      out.push_back({r.value.index(), {first_param++, r.strides}, r.updates});
    return out;
  }

  void lower_sort_steps(Value v, const SortPieces& pieces, const std::vector<Root>& results) {
    const bool has_places =
        std::ranges::any_of(results, [](const Root& r) { return r.value.index() == 1; });
    std::vector<Root> from = sort_temporaries(v, pieces, has_places);
    add_ordered_step(from, "_pieces",
                     [&](Lowering& l, Kernel& k, std::span<const OrderedResult> to) {
                       lower_sort_of_pieces(l, k, v, pieces, to);
                     });
    for (std::int64_t width = 1; width < pieces.count; width *= 2) {
      std::vector<Root> next =
          width * 2 < pieces.count ? sort_temporaries(v, pieces, has_places) : results;
      inputs_.clear();
      for (const Root& r : from) inputs_.push_back({r.value, r.operand, r.strides, r.memory});
      add_ordered_step(next, "_merge",
                       [&](Lowering& l, Kernel& k, std::span<const OrderedResult> to) {
                         lower_merge_of_pieces(l, k, v, pieces, width, results_of(from, 0), to);
                       });
      from = std::move(next);
    }
  }

  std::vector<Root> sort_temporaries(Value v, const SortPieces& pieces, bool has_places) {
    const Shape shape = shape_between_steps(v, pieces);
    std::vector<Root> out;
    for (std::uint32_t index = 0; index < (has_places ? 2U : 1U); ++index) {
      const Value x = v.result(index);
      const auto number = static_cast<int>(candidate_.temporaries.size());
      out.push_back({.value = x,
                     .operand = {Operand::Kind::temporary, number},
                     .strides = dense_strides(shape),
                     .memory = shape.dims});
      candidate_.temporaries.push_back({Type(x.dtype(), shape), false});
    }
    return out;
  }

  const GroupSpec& spec_;
  const TargetInfo& target_;
  const Tuning& tuning_;
  Function function_;
  const std::string name_;
  const bool sorts_in_pieces_;
  std::set<NodeId> in_memory_;  // computed into memory of their own
  std::unordered_map<Value, std::pair<Operand, Dims>, ValueHash> memory_;
  std::vector<Input> inputs_;
  std::vector<Root> roots_of_level_;
  Candidate candidate_;
};

// The first sort of the function that is worth splitting, if any.
Value long_sort(const Function& f) {
  for (NodeId n : live_nodes(f)) {
    const Value v(&f.graph(), n);
    if (v.is(ops::sort) && sort_pieces(v, {})) return v;
  }
  return {};
}

}  // namespace

Candidate nest_candidate(const GroupSpec& spec, const TargetInfo& target, const Tuning& tuning) {
  return GroupLowering(spec, target, tuning, {expand_for_kernels(spec.function), {}}, "nest")
      .lower();
}

std::optional<Candidate> split_candidate(const GroupSpec& spec, const TargetInfo& target,
                                         const Tuning& tuning) {
  std::optional<SplitFunction> split = split_reductions(expand_for_kernels(spec.function));
  if (!split) return std::nullopt;
  return GroupLowering(spec, target, tuning, std::move(*split), "split").lower();
}

std::optional<Candidate> sort_candidate(const GroupSpec& spec, const TargetInfo& target,
                                        const Tuning& tuning) {
  Function f = expand_for_kernels(spec.function);
  if (!long_sort(f)) return std::nullopt;
  return GroupLowering(spec, target, tuning, {std::move(f), {}}, "sort", true).lower();
}

std::vector<Tuning> sort_space(const GroupSpec& spec, const TargetInfo&) {
  const Function f = expand_for_kernels(spec.function);
  const Value sort = long_sort(f);
  return sort ? sort_tunings(sort) : std::vector<Tuning>();
}

}  // namespace hone
