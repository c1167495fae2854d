#include <algorithm>
#include <set>

#include "kernel/arrange.h"
#include "kernel/candidates.h"
#include "kernel/lower_ordered.h"
#include "kernel/split_reduce.h"
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
  int level = 0;           // kernels of lower levels run before
  std::vector<int> outer;  // axes that fix every reduction in it
  std::vector<int> inner;  // the other axes; neither has those of size 1
  bool reduces = false;
  bool updates = false;  // a part of what lies in its memory is written, see GroupSpec::updates

  // What is computed element by element.
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
                SplitFunction split, std::string name)
      : spec_(spec),
        target_(target),
        tuning_(tuning),
        function_(std::move(split.function)),
        name_(std::move(name)) {
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

  // Results and what is kept between kernels, in the order of levels.
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

  // Every value that a kernel for `root` computes, users first.
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
        // Beside reductions over its last axes it runs in their loops.
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
  };

  // What the kernel for these roots reads, in a fixed order.
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
    auto add = [&](Value v, const Operand& operand, const Dims& strides, bool written) {
      k.params.push_back({v.dtype(), v.shape().dims, strides, written});
      step.operands.push_back(operand);
    };
    for (const Input& in : inputs_) add(in.value, in.operand, in.strides, false);
    for (const Root& r : roots) add(r.value, r.operand, r.strides, true);
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

  // A reduction that was computed several times for each of its elements is kept in memory in the
  // next attempt.
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
    Lowering lowering = make_lowering();
    std::vector<OrderedResult> results;
    for (std::size_t i = 0; i < roots.size(); ++i)
      results.push_back({roots[i].value.index(),
                         {static_cast<int>(inputs_.size() + i), roots[i].strides},
                         roots[i].updates});
    Candidate::Step step;
    Kernel k = new_kernel(roots, step);
    lower_ordered(lowering, k, Value(&function_.graph(), n), results);
    keep_repeated(lowering);
    arrange(k, lowering, lowering.take(), target_, tuning_);
    add_step(std::move(k), std::move(step));
    roots_of_level_.insert(roots_of_level_.end(), roots.begin(), roots.end());
  }

  const GroupSpec& spec_;
  const TargetInfo& target_;
  const Tuning& tuning_;
  Function function_;
  const std::string name_;
  std::set<NodeId> in_memory_;  // computed into memory of their own
  std::unordered_map<Value, std::pair<Operand, Dims>, ValueHash> memory_;
  std::vector<Input> inputs_;
  std::vector<Root> roots_of_level_;
  Candidate candidate_;
};

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

}  // namespace hone
