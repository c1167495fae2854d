#include "verify/made_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "ops/ops.h"
#include "ref/evaluate.h"
#include "verify/whole.h"

namespace hone {

namespace {

// The set from which the integers or texts of a parameter are taken.
struct Choice {
  std::int64_t low = 0, high = 7;
  Listed listed = Listed::no;
  std::vector<std::int64_t> members = {};  // if not empty, only these
  bool operator==(const Choice&) const = default;
};

bool has_effect(const Function& f);

// Whether the node may refuse a run because of its operands.
bool has_effect(const Graph& graph, NodeId n) {
  if (!graph.op(n).pure) return true;
  return std::ranges::any_of(graph.attrs(n).entries(), [](const Attrs::Entry& e) {
    const auto* body = std::get_if<FunctionRef>(&e.second);
    return body && has_effect(**body);
  });
}

bool has_effect(const Function& f) {
  return std::ranges::any_of(live_nodes(f), [&](NodeId n) { return has_effect(f.graph(), n); });
}

// The part of a function that may refuse a run.
Function refusals_of(const Function& f) {
  const Graph& graph = f.graph();
  const std::vector<NodeId> order = live_nodes(f);
  std::vector<bool> is_needed(graph.node_count(), false);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (has_effect(graph, *at)) is_needed[*at] = true;
    if (is_needed[*at])
      for (const Value& v : graph.operands(*at)) is_needed[v.node()] = true;
  }
  Function out = clone_params(f);
  Copier copy(f, out);
  for (NodeId n : order) {
    if (!is_needed[n] || copy.has(n)) continue;
    const Value made = copy.copy(n);
    if (graph.op(n).pure && has_effect(graph, n)) out.add_result(made, "");
  }
  return out;
}

// Whether the result holds only numbers of the operands, so that requirements on it apply to them:
// operations that require_within() applies to an index.
bool passes_numbers_on(const Op& op) {
  static const Op* const all[] = {&ops::cast, &ops::select,     &ops::reduce_max,
                                  &ops::le,   &ops::reduce_min, &ops::bit_and,
                                  &ops::eq,   &ops::maximum,    &ops::minimum};
  return op.kind == OpKind::movement || std::ranges::find(all, &op) != std::end(all);
}

// Whether the value is the same in every run.
bool is_fixed(const Value v) {
  const Graph& graph = v.graph();
  return std::ranges::none_of(nodes_below(std::span(&v, 1)), [&](NodeId n) {
    return &graph.op(n) == &ops::param || has_effect(graph, n);
  });
}

std::set<std::size_t> params_behind(const Function& f, Value root) {
  std::map<NodeId, std::size_t> params;
  for (std::size_t i = 0; i < f.params().size(); ++i) params[f.param(i).node()] = i;
  std::set<std::size_t> out;
  std::set<NodeId> met;
  std::vector<Value> open = {root};
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (!met.insert(v.node()).second) continue;
    if (const auto at = params.find(v.node()); at != params.end()) out.insert(at->second);
    if (passes_numbers_on(v.op()))
      for (const Value& operand : v.operands()) open.push_back(operand);
  }
  return out;
}

// Ranges that are required of parameters directly.
std::vector<Choice> required_ranges(const Function& f, const Sizing& sizes) {
  std::vector<Choice> out(f.params().size());
  std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> ranges(out.size());
  for (NodeId n : live_nodes(f)) {
    if (&f.graph().op(n) != &ops::require) continue;
    std::int64_t low = 0, high = 0;
    try {
      low = size_of(f.graph().attrs(n).dims("low").at(0), sizes);
      high = size_of(f.graph().attrs(n).dims("high").at(0), sizes);
    } catch (const UserError&) {
      continue;  // data-dependent
    }
    for (std::size_t p : params_behind(f, f.graph().operands(n)[0])) {
      auto& r = ranges[p];
      r = r ? std::pair(std::max(r->first, low), std::min(r->second, high)) : std::pair(low, high);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!ranges[i] || ranges[i]->first > ranges[i]->second) continue;
    const auto [low, high] = *ranges[i];
    out[i].low = high >= 0 ? std::max<std::int64_t>(low, 0) : low;
    out[i].high = std::min(high, out[i].low + 7);
  }
  return out;
}

// For each parameter the fixed values that its elements are compared with, such as the categories
// of an encoder.
std::vector<Values> compared_with(const Function& f) {
  std::vector<Values> out(f.params().size());
  for (NodeId n : live_nodes(f)) {
    if (&f.graph().op(n) != &ops::eq) continue;
    const std::span<const Value> sides = f.graph().operands(n);
    for (const std::size_t side : {0, 1}) {
      Value other = sides[1 - side];
      while (other.op().kind == OpKind::movement) other = other.operand(0);
      if (is_float(other.dtype()) || !is_fixed(other)) continue;
      for (const std::size_t p : params_behind(f, sides[side])) out[p].push_back(other);
    }
  }
  return out;
}

class Maker {
 public:
  Maker(const Function& f, const Sizing& sizes)
      : f_(f), sizes_(sizes), choices_(f.params().size()) {}

  MadeInputs run() {
    if (has_effect(f_)) search();
    MadeInputs out{inputs(), {}, problem_};
    for (std::size_t i = 0; i < choices_.size(); ++i)
      out.assumptions.push_back(assumption(i, out.arrays[i]));
    return out;
  }

 private:
  bool is_open(std::size_t i) const {
    const Function::Param& p = f_.params()[i];
    return !p.required && !is_float(p.value.dtype());
  }
  bool is_text(std::size_t i) const { return f_.param(i).dtype() == DType::text; }
  bool any_open() const {
    for (std::size_t i = 0; i < choices_.size(); ++i)
      if (is_open(i)) return true;
    return false;
  }

  // Tries required ranges; then the values that the model compares a parameter with; then other
  // integers for one parameter at a time, and finally for all.
  void search() {
    const Function part = refusals_of(f_);
    choices_ = required_ranges(part, sizes_);
    constexpr double most_flops = 2e9;
    const double flops = static_cast<double>(flops_at(flops_of(part), sizes_));
    // There is only one way to make up real inputs, so they are tried only if that is cheap.
    if (!any_open() && flops > most_flops / 20) return;
    left_ = static_cast<int>(std::clamp(most_flops / std::max(flops, 1.0), 1.0, 200.0));
    if (is_accepted(part) || !any_open()) return;
    if (take_members(part) && is_accepted(part)) return;
    static const Choice others[] = {{.listed = Listed::shape},   {1, 1}, {0, 0}, {0, 1}, {1, 2},
                                    {.listed = Listed::counting}};
    const std::vector<Choice> start = choices_;
    for (std::size_t i = 0; i < choices_.size(); ++i)
      for (const Choice& c : others) {
        if (!is_open(i) || is_text(i)) continue;
        choices_ = start;
        choices_[i] = c;
        if (is_accepted(part)) return;
      }
    for (const Choice& c : others) {
      choices_.assign(start.size(), c);
      if (is_accepted(part)) return;
    }
    choices_ = start;
  }

  // Takes the elements of parameters from the values that they are compared with; false if there
  // are none.
  bool take_members(const Function& part) {
    constexpr std::size_t most = 64;
    const std::vector<Values> compared = compared_with(part);
    bool any = false;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (!is_open(i)) continue;
      std::vector<std::int64_t>& members = choices_[i].members;
      for (const Array& a : evaluated(part, compared[i]))
        for (std::int64_t k = 0; k < a.count() && members.size() < most; ++k)
          if (std::ranges::find(members, a.integer(k)) == members.end())
            members.push_back(a.integer(k));
      any = any || !members.empty();
    }
    return any;
  }

  // Evaluates values that are the same in every run.
  std::vector<Array> evaluated(const Function& part, const Values& values) const try {
    Function out = clone_params(part);
    Copier copy(part, out);
    for (NodeId n : nodes_below(values)) copy.copy(n);
    for (const Value& v : values) out.add_result(copy(v), "");
    return evaluate(out, inputs());
  } catch (const UserError&) {
    return {};
  }

  bool is_accepted(const Function& part) {
    if (left_-- <= 0) return false;
    try {
      evaluate(part, inputs());
      problem_.clear();
      return true;
    } catch (const UserError& e) {
      if (problem_.empty()) problem_ = e.what();
      return false;
    }
  }

  std::vector<Array> inputs() const {
    std::vector<Array> out;
    for (const Function::Param& p : f_.params()) {
      const std::size_t i = out.size();
      if (p.required) {
        out.push_back(*p.required);
        continue;
      }
      Array a = sample_array(p.value.type(), sizes_, Fill::random, i + 1);
      const Choice& c = choices_[i];
      if (is_open(i) && !(c == Choice()) && a.dtype() != DType::b1)
        for (std::int64_t k = 0; k < a.count(); ++k) a.set_integer(k, taken(c, a, k));
      out.push_back(std::move(a));
    }
    return out;
  }

  static std::int64_t taken(const Choice& c, const Array& random, std::int64_t k) {
    if (!c.members.empty()) return c.members[static_cast<std::size_t>(k) % c.members.size()];
    if (random.dtype() == DType::text) return random.integer(k);
    if (c.listed != Listed::no) return listed_integer(c.listed, k);
    return c.low + random.integer(k) % (c.high - c.low + 1);
  }

  std::string assumption(std::size_t i, const Array& a) const {
    const std::string what = cat("'", f_.params()[i].name, "' ", a.type(), ": ");
    const Choice& c = choices_[i];
    if (f_.params()[i].required) return what + "as the model requires";
    if (is_float(a.dtype())) return what + "-1 to 1";
    if (a.dtype() == DType::b1) return what + "false and true";
    if (!c.members.empty())
      return cat(what, "the ", c.members.size(), " values that the model compares it with");
    if (a.dtype() == DType::text) return what + "short strings";
    if (c.listed == Listed::shape) return what + "-1, then 1";
    if (c.listed == Listed::counting) return what + "0, 1, 2, ...";
    return c.low == c.high ? cat(what, c.low) : cat(what, c.low, " to ", c.high);
  }

  const Function& f_;
  const Sizing& sizes_;
  std::vector<Choice> choices_;
  std::string problem_;
  int left_ = 0;
};

}  // namespace

MadeInputs made_inputs(const Function& f, const Sizing& sizes) { return Maker(f, sizes).run(); }

std::optional<MadeInputs> made_inputs_and_sizes(const Function& f,
                                                const std::vector<Guard>& guards) {
  constexpr std::size_t most_symbols = 8;
  const std::optional<Sizing> first = sample_sizes(f.param_types(), guards);
  if (!first) return std::nullopt;
  MadeInputs made = made_inputs(f, *first);
  if (made.problem.empty() || first->size() > most_symbols) return made;
  std::int64_t all = 1;
  for (const auto& [name, size] : *first) all += size;
  for (const Dim& s : f.symbols()) {
    const std::string name(s.name());
    if (!first->contains(name)) continue;
    std::set<std::int64_t> sums = {all};
    for (const auto& [a, size_a] : *first)
      for (const auto& [b, size_b] : *first)
        if (a < b && a != name && b != name) sums.insert(size_a + size_b);
    for (const std::int64_t sum : sums) {
      Sizing sizes = *first;
      sizes[name] = sum;
      if (sum < s.low() || sum > s.high() || !guards_hold(guards, sizes)) continue;
      if (MadeInputs more = made_inputs(f, sizes); more.problem.empty()) return more;
    }
  }
  return made;
}

MadeInputs made_inputs_of(std::string_view model, const Function& f,
                          const std::vector<Guard>& guards, std::string_view instead) {
  std::optional<MadeInputs> made = made_inputs_and_sizes(f, guards);
  if (!made) throw UserError(model, ": no sizes were found that it supports; ", instead);
  if (!made->problem.empty())
    throw UserError(model, ": no valid inputs were found for it: ", made->problem, "; ", instead);
  return std::move(*made);
}

}  // namespace hone
