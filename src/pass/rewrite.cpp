#include "pass/rewrite.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ops/common.h"

namespace hone {

namespace {

constexpr std::size_t most_commutative = 6;  // per rule: two matchers for each

std::size_t count_commutative(const Pattern& p) {
  std::size_t n = p.op && p.op->commutative && p.operands.size() == 2 ? 1 : 0;
  for (const Pattern& q : p.operands) n += count_commutative(q);
  return n;
}

void collect_holes(const Pattern& p, std::vector<std::string>& out) {
  if (!p.hole.empty() && std::find(out.begin(), out.end(), p.hole) == out.end())
    out.push_back(p.hole);
  for (const Pattern& q : p.operands) collect_holes(q, out);
}

// Flattens a pattern; each bit of `swaps` exchanges the operands of one commutative op. The root
// has the highest bit, so consecutive matchers share leading steps.
class Flattener {
 public:
  Flattener(const std::vector<std::string>& holes, unsigned swaps, std::size_t commutative)
      : holes_(holes), swaps_(swaps), next_(commutative) {}

  std::vector<Matcher::Step> run(const Pattern& p) {
    add(p, 0, 0);
    return std::move(steps_);
  }

 private:
  void add(const Pattern& p, std::size_t parent, std::size_t operand) {
    Matcher::Step step{static_cast<std::uint16_t>(parent), static_cast<std::uint16_t>(operand), &p,
                       0};
    if (!p.hole.empty())
      step.hole = static_cast<std::uint16_t>(std::find(holes_.begin(), holes_.end(), p.hole) -
                                             holes_.begin());
    std::size_t self = steps_.size();
    steps_.push_back(step);
    bool swap = p.op && p.op->commutative && p.operands.size() == 2 && (swaps_ >> --next_ & 1);
    for (std::size_t i = 0; i < p.operands.size(); ++i) add(p.operands[i], self, swap ? 1 - i : i);
  }

  const std::vector<std::string>& holes_;
  unsigned swaps_;
  std::size_t next_;
  std::vector<Matcher::Step> steps_;
};

bool asks_the_same(const Matcher::Step& a, const Matcher::Step& b) {
  const Pattern &p = *a.pattern, &q = *b.pattern;
  return a.parent == b.parent && a.operand == b.operand && p.op == q.op &&
         p.constant == q.constant && p.is_number == q.is_number &&
         p.operands.size() == q.operands.size() && p.attrs == q.attrs;
}

std::size_t shared_steps(const Matcher& a, const Matcher& b) {
  std::size_t n = 0, most = std::min(a.steps.size(), b.steps.size());
  while (n < most && asks_the_same(a.steps[n], b.steps[n])) ++n;
  return n;
}

bool asks_something(const Pattern& p) { return p.op || p.constant || p.is_number; }

// The pattern that the matcher requires of an operand of the root; null: none.
const Pattern* wanted(const Matcher& m, std::size_t operand) {
  for (std::size_t i = 1; i < m.steps.size(); ++i)
    if (const Matcher::Step& s = m.steps[i]; s.parent == 0 && s.operand == operand)
      return asks_something(*s.pattern) ? s.pattern : nullptr;
  return nullptr;
}

bool may_hold_number(const Op& op) { return op.kind == OpKind::movement || &op == &ops::constant; }

bool attrs_match(const Attrs& wanted, const Attrs& given) {
  for (const Attrs::Entry& e : wanted.entries()) {
    const Attr* a = given.find(e.first);
    if (!a || !equal(*a, e.second)) return false;
  }
  return true;
}

bool step_matches(const Pattern& p, Value v) {
  if (p.is_number) return uniform_number(v).has_value();
  if (p.constant) {
    std::optional<double> x = uniform_number(v);
    return x && *x == *p.constant;
  }
  return v.is(*p.op) && v.index() == 0 && v.operand_count() == p.operands.size() &&
         attrs_match(p.attrs, v.attrs());
}

constexpr std::size_t matched = ~std::size_t{0};
constexpr std::size_t not_bound = matched - 1;  // one hole would bind two values

// Binds the match's holes; `seen` receives the value of each step. Returns the step that failed.
std::size_t match_steps(const Matcher& m, Value root, Match& match, std::vector<Value>& seen) {
  std::fill(match.values_.begin(), match.values_.end(), Value());
  match.root = root;
  seen.clear();
  for (const Matcher::Step& s : m.steps) {
    Value v = seen.empty() ? root : seen[s.parent].operand(s.operand);
    seen.push_back(v);
    if (asks_something(*s.pattern) && !step_matches(*s.pattern, v)) return seen.size() - 1;
    if (s.pattern->hole.empty()) continue;
    Value& bound = match.values_[s.hole];
    if (bound && bound != v) return not_bound;
    bound = v;
  }
  return matched;
}

// A number in a replacement has the type of its first sibling that is not a number.
Value build(const Pattern& p, const Match& match, const Type& type) {
  if (!p.hole.empty()) return match[p.hole];
  Graph& graph = match.root.graph();
  if (p.constant) return broadcast_to(scalar(graph, *p.constant, type.dtype), type.shape);
  std::vector<Value> operands(p.operands.size());
  Type sibling = type;
  for (std::size_t i = p.operands.size(); i-- > 0;)
    if (!p.operands[i].constant) {
      operands[i] = build(p.operands[i], match, type);
      sibling = operands[i].type();
    }
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!operands[i]) operands[i] = build(p.operands[i], match, sibling);
  return graph.intern(*p.op, operands, p.attrs);
}

Value replacement(const Rule& rule, const Match& match) {
  if (const Pattern* p = std::get_if<Pattern>(&rule.replace))
    return build(*p, match, match.root.type());
  return std::get<1>(rule.replace)(match);
}

// Union of the origins of the matched nodes.
std::uint32_t origins_of_match(const Matcher& m, const std::vector<Value>& seen,
                               std::string_view rule) {
  Graph& graph = seen[0].graph();
  std::uint32_t first = graph.origins_id(seen[0].node());
  std::vector<Origin> all = graph.origins(seen[0].node());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (!m.steps[i].pattern->op || graph.origins_id(seen[i].node()) == first) continue;
    for (const Origin& o : graph.origins(seen[i].node()))
      if (std::find(all.begin(), all.end(), o) == all.end()) all.push_back(o);
  }
  return graph.origin_list(std::move(all), rule);
}

// Number of uses of each node by live nodes and results.
std::vector<std::uint32_t> count_uses(const Function& f, const std::vector<NodeId>& order) {
  std::vector<std::uint32_t> uses(f.graph().node_count(), 0);
  for (NodeId n : order)
    for (const Value& v : f.graph().operands(n)) ++uses[v.node()];
  for (const Function::Result& r : f.results()) ++uses[r.value.node()];
  return uses;
}

// One run of a rule set over one function.
class Rewriter {
 public:
  Rewriter(const Function& f, const RuleSet& rules, RuleLog* log)
      : from_(f), rules_(rules), log_(log), order_(live_nodes(f)) {
    budget_ = static_cast<std::int64_t>(order_.size()) * 16 + 1024;
    for (std::uint32_t i = 0; i < rules.rules().size(); ++i) matches_.emplace_back(rules.holes(i));
  }

  Function run() { return rules_.order() == Order::inputs_first ? inputs_first() : users_first(); }

 private:
  struct Found {
    const Matcher* matcher = nullptr;
    explicit operator bool() const { return matcher != nullptr; }
  };

  Found find(Value v) {
    const MatcherList* list = rules_.matchers(v.op());
    if (!list || v.result_count() != 1) return {};
    const Graph& graph = v.graph();
    const std::span<const Value> operands = graph.operands(v.node());
    const Op* ops[2] = {};
    for (std::size_t i = 0; i < std::min<std::size_t>(operands.size(), 2); ++i)
      ops[i] = &graph.op(operands[i].node());
    std::size_t last = 0, failed = matched;  // the last tried matcher, and its failed step
    for (std::size_t word = 0; word < list->words(); ++word)
      for (std::uint64_t bits = list->possible(ops[0], ops[1], word); bits; bits &= bits - 1) {
        const std::size_t i = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        const Matcher& m = list->all()[i];
        const bool fails_alike = i == last + 1 && m.shared > failed;
        last = i;
        if (fails_alike) continue;
        failed = matched;
        if (m.steps[0].pattern->operands.size() != operands.size()) continue;
        Match& match = matches_[m.rule];
        failed = match_steps(m, v, match, seen_);
        if (failed != matched || !only_inside(m)) continue;
        const Rule& rule = rules_.rules()[m.rule];
        if (!rule.when || rule.when(match)) return {&m};
      }
    return {};
  }

  // Users first: no node outside the match uses the nodes that it replaces.
  bool only_inside(const Matcher& m) {
    if (uses_.empty()) return true;
    for (std::size_t i = 1; i < seen_.size(); ++i) {
      if (!m.steps[i].pattern->op) continue;
      NodeId n = seen_[i].node();
      if (n >= uses_.size() || inside_uses(m, n) < uses_[n]) return false;
    }
    return true;
  }

  std::size_t inside_uses(const Matcher& m, NodeId n) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      bool again = std::find(seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(i),
                             seen_[i]) != seen_.begin() + static_cast<std::ptrdiff_t>(i);
      if (!m.steps[i].pattern->op || again) continue;
      for (const Value& v : seen_[i].graph().operands(seen_[i].node())) count += v.node() == n;
    }
    return count;
  }

  Value apply_found(const Found& found, NodeId node) {
    const Rule& rule = rules_.rules()[found.matcher->rule];
    const Match& match = matches_[found.matcher->rule];
    Value before = match.root;
    OriginScope scope(before.graph(), origins_of_match(*found.matcher, seen_, rule.name));
    Value after = replacement(rule, match);
    HONE_ASSERT(after && &after.graph() == &before.graph(), "rule '", rule.name,
                "' built nothing or in another graph");
    HONE_ASSERT(after.type() == before.type(), "rule '", rule.name, "' turned ", before.type(),
                " into ", after.type());
    HONE_ASSERT(after != before, "rule '", rule.name, "' gave back the value it matched");
    HONE_ASSERT(--budget_ > 0, "rules do not come to an end; last fired: '", rule.name, "'");
    if (log_) note(rule.name, node);
    return after;
  }

  void note(std::string_view rule, NodeId node) {
    if (!std::exchange(noted_, true)) log_->functions.push_back(from_);
    log_->firings.push_back({rule, static_cast<std::uint32_t>(log_->functions.size() - 1), node});
  }

  // `node` is the node of the old function that v replaces.
  Value normal_form(Value v, NodeId node) {
    while (Found found = find(v)) v = apply_found(found, node);
    return v;
  }

  Function inputs_first() {
    std::size_t first = 0;
    while (first < order_.size() && !find({&from_.graph(), order_[first]})) ++first;
    if (first == order_.size()) return from_;
    Function to = clone_params(from_);
    Copier copier(from_, to);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (copier.has(order_[i])) continue;
      Value copy = copier.copy(order_[i]);
      if (i < first || copy.result_count() != 1) continue;
      if (Value now = normal_form(copy, order_[i]); now != copy) copier.set(order_[i], {now});
    }
    for (const Function::Result& r : from_.results()) to.add_result(copier(r.value), r);
    return to;
  }

  // Replacements are built in the same graph and found through `instead_`; then the needed nodes
  // are copied.
  Function users_first() {
    uses_ = count_uses(from_, order_);
    needed_.assign(from_.graph().node_count(), false);
    instead_.assign(from_.graph().node_count(), Value());
    for (const Function::Result& r : from_.results()) need(r.value.node());
    bool changed = false;
    for (std::size_t i = order_.size(); i-- > 0;) {
      Value v(&from_.graph(), order_[i]);
      if (!needed_[order_[i]] && v.op().pure) continue;
      Value now = normal_form(v, order_[i]);
      if (now != v) {
        changed = true;
        instead_[order_[i]] = now;
        need(now.node());
      } else {
        for (const Value& o : v.graph().operands(v.node())) need(o.node());
      }
    }
    return changed ? copy_needed() : from_;
  }

  // Marks a node of the old function, or the old nodes below a node that a rule made.
  void need(NodeId root) {
    stack_.push_back(root);
    while (!stack_.empty()) {
      NodeId n = stack_.back();
      stack_.pop_back();
      if (n < needed_.size()) {
        needed_[n] = true;
        if (n < uses_.size() && uses_[n] > 0) continue;
      }
      for (const Value& v : from_.graph().operands(n)) stack_.push_back(v.node());
    }
  }

  Function copy_needed() {
    instead_.resize(from_.graph().node_count());
    Function to = clone_params(from_);
    Copier copier(from_, to);
    for (NodeId n : order_)
      if (!from_.graph().op(n).pure) copy_below(n, copier);
    for (const Function::Result& r : from_.results()) {
      copy_below(r.value.node(), copier);
      to.add_result(copier(r.value), r);
    }
    return to;
  }

  void copy_below(NodeId root, Copier& copier) {
    std::vector<NodeId> stack{root};
    while (!stack.empty()) {
      NodeId n = stack.back();
      if (copier.has(n)) {
        stack.pop_back();
        continue;
      }
      std::size_t before = stack.size();
      if (instead_[n]) {
        if (!copier.has(instead_[n].node())) stack.push_back(instead_[n].node());
      } else {
        for (const Value& v : from_.graph().operands(n))
          if (!copier.has(v.node())) stack.push_back(v.node());
      }
      if (stack.size() > before) continue;
      if (instead_[n])
        copier.set(n, {copier(instead_[n])});
      else
        copier.copy(n);
      stack.pop_back();
    }
  }

  const Function& from_;
  const RuleSet& rules_;
  RuleLog* log_;
  bool noted_ = false;
  std::vector<NodeId> order_;
  std::vector<Match> matches_;  // one per rule, reused
  std::vector<Value> seen_;
  std::int64_t budget_ = 0;
  std::vector<std::uint32_t> uses_;  // users first only
  std::vector<bool> needed_;
  std::vector<Value> instead_;
  std::vector<NodeId> stack_;
};

}  // namespace

void MatcherList::add(Matcher m) {
  if (!matchers_.empty()) m.shared = shared_steps(matchers_.back(), m);
  matchers_.push_back(std::move(m));
}

void MatcherList::index() {
  for (std::size_t i : {0, 1}) sides_[i] = make_side(i);
}

MatcherList::Side MatcherList::make_side(std::size_t operand) const {
  Side side;
  side.number.assign(words(), 0);
  side.other = side.number;
  for (const Matcher& m : matchers_)
    if (const Pattern* p = wanted(m, operand); p && p->op)
      if (std::find(side.ops.begin(), side.ops.end(), p->op) == side.ops.end())
        side.ops.push_back(p->op);
  side.named.assign(side.ops.size(), side.number);
  for (std::size_t i = 0; i < matchers_.size(); ++i) {
    const Pattern* p = wanted(matchers_[i], operand);
    auto allow = [i](Bits& bits) { bits[i / 64] |= std::uint64_t{1} << i % 64; };
    for (std::size_t k = 0; k < side.ops.size(); ++k)
      if (!p || (p->op ? p->op == side.ops[k] : may_hold_number(*side.ops[k])))
        allow(side.named[k]);
    if (!p || !p->op) allow(side.number);
    if (!p) allow(side.other);
  }
  return side;
}

const MatcherList::Bits& MatcherList::Side::of(const Op* op) const {
  for (std::size_t k = 0; k < ops.size(); ++k)
    if (ops[k] == op) return named[k];
  return op && may_hold_number(*op) ? number : other;
}

RuleSet::RuleSet(std::span<const Rule> rules, Order order, RuleClass most)
    : rules_(rules), order_(order), holes_(rules.size()) {
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (rule.safety > most) continue;
    HONE_ASSERT(rule.match.op && rule.match.op->pure, "rule '", rule.name, "' has no root to find");
    std::size_t n = count_commutative(rule.match);
    HONE_ASSERT(n <= most_commutative, "rule '", rule.name, "' has ", n, " commutative ops");
    collect_holes(rule.match, holes_[i]);
    auto [it, fresh] = root_index_.try_emplace(rule.match.op, by_root_.size());
    if (fresh) by_root_.emplace_back();
    for (unsigned swaps = 0; swaps < 1u << n; ++swaps)
      by_root_[it->second].add({i, Flattener(holes_[i], swaps, n).run(rule.match)});
  }
  for (MatcherList& list : by_root_) list.index();
}

const MatcherList* RuleSet::matchers(const Op& op) const {
  auto it = root_index_.find(&op);
  return it == root_index_.end() ? nullptr : &by_root_[it->second];
}

Function rewrite(const Function& f, const RuleSet& rules, RuleLog* log) {
  constexpr int most_rounds = 64;
  return for_bodies_too(f, [&](const Function& g) {
    Function now = g;
    for (int round = 0;; ++round) {
      HONE_ASSERT(round < most_rounds, "rules still fire after ", most_rounds, " rounds");
      Function next = Rewriter(now, rules, log).run();
      if (&next.graph() == &now.graph()) return now;
      now = std::move(next);
    }
  });
}

namespace {

// The attributes with the pass applied to every body; nullopt if nothing changed.
std::optional<Attrs> with_passed_bodies(const Attrs& attrs, const FunctionPass& pass) {
  std::optional<Attrs> out;
  for (const Attrs::Entry& e : attrs.entries()) {
    const FunctionRef* body = std::get_if<FunctionRef>(&e.second);
    if (!body) continue;
    Function next = for_bodies_too(**body, pass);
    if (&next.graph() == &(*body)->graph()) continue;
    if (!out) out = attrs;
    out->set(e.first, std::make_shared<const Function>(std::move(next)));
  }
  return out;
}

// Checks all nodes, live or not: cheaper than finding the live ones.
bool has_control(const Graph& graph) {
  const auto end = static_cast<NodeId>(graph.node_count());
  for (NodeId n = 0; n < end; ++n)
    if (graph.op(n).kind == OpKind::control) return true;
  return false;
}

}  // namespace

Function for_bodies_too(const Function& f, const FunctionPass& pass) {
  const Graph& graph = f.graph();
  if (!has_control(graph)) return pass(f);
  std::unordered_map<NodeId, Attrs> changed;
  for (NodeId n : live_nodes(f))
    if (graph.op(n).kind == OpKind::control)
      if (std::optional<Attrs> attrs = with_passed_bodies(graph.attrs(n), pass))
        changed.emplace(n, std::move(*attrs));
  if (changed.empty()) return pass(f);
  return pass(transform(f, [&](NodeId n, Copier& copier, Function& to) -> Values {
    auto it = changed.find(n);
    if (it == changed.end()) return {};
    Values operands;
    for (const Value& v : graph.operands(n)) operands.push_back(copier(v));
    Value made = to.graph().intern(graph.op(n), operands, it->second);
    Values results;
    for (std::size_t i = 0; i < graph.result_count(n); ++i) results.push_back(made.result(i));
    return results;
  }));
}

}  // namespace hone
