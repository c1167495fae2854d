// The rewrite engine: applies named rules to a function until none matches. Handles matching, order
// and termination; contains no rules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/function.h"
#include "ir/pattern.h"

namespace hone {

enum class Order : std::uint8_t {
  inputs_first,  // for simplification: operands are in their final form when a node is tried
  users_first,   // for selection: the largest pattern wins, and inner nodes have no other users
};

// Every rule that fired, in order.
struct RuleLog {
  struct Firing {
    std::string_view rule;
    std::uint32_t function = 0;  // index in `functions`
    NodeId node = 0;             // in that function: replaced by the rule or a chain of rules
  };
  std::vector<Firing> firings;
  // Snapshots in which rules fired: one per round and body.
  std::vector<Function> functions;
};

// One way to match one rule: the pattern in preorder, with the operands of commutative ops in one
// particular order.
struct Matcher {
  struct Step {
    std::uint16_t parent = 0;  // step whose operand this is; step 0 is the root
    std::uint16_t operand = 0;
    const Pattern* pattern = nullptr;
    std::uint16_t hole = 0;  // when the pattern is a hole
  };
  std::uint32_t rule = 0;
  std::vector<Step> steps;
  // Number of leading steps equal to those of the previous matcher: if that one failed at such a
  // step, this one fails, too.
  std::size_t shared = 0;
};

// The matchers of one root, found by the ops of the root's first two operands.
class MatcherList {
 public:
  void add(Matcher);
  // Call once, after the last add.
  void index();
  std::span<const Matcher> all() const { return matchers_; }
  // A bit for each matcher that these operands do not rule out (null: no such operand), for the 64
  // matchers from number 64 * word on.
  std::uint64_t possible(const Op* first, const Op* second, std::size_t word) const {
    return sides_[0].of(first)[word] & sides_[1].of(second)[word];
  }
  std::size_t words() const { return (matchers_.size() + 63) / 64; }

 private:
  using Bits = std::vector<std::uint64_t>;
  // Matchers by the op of one operand: one entry for each op that patterns name, and one for all
  // others.
  struct Side {
    std::vector<const Op*> ops;
    std::vector<Bits> named;
    Bits number;  // other ops that may hold a number: constants, and movements of them
    Bits other;
    const Bits& of(const Op*) const;
  };
  Side make_side(std::size_t operand) const;

  std::vector<Matcher> matchers_;
  Side sides_[2];
};

// Rules compiled for matching. The rules must outlive it.
class RuleSet {
 public:
  // Rules of a class above `most` are left out.
  explicit RuleSet(std::span<const Rule> rules, Order order = Order::inputs_first,
                   RuleClass most = RuleClass::rounding);

  std::span<const Rule> rules() const { return rules_; }
  Order order() const { return order_; }
  const std::vector<std::string>& holes(std::uint32_t rule) const { return holes_[rule]; }
  // Those whose root is this op, in the order of the rules; null when there is none.
  const MatcherList* matchers(const Op&) const;

 private:
  std::span<const Rule> rules_;
  Order order_;
  std::vector<std::vector<std::string>> holes_;  // per rule
  std::vector<MatcherList> by_root_;
  std::unordered_map<const Op*, std::uint32_t> root_index_;
};

// Applies rules until none matches, including in the bodies of control nodes. Returns f itself
// (same graph, nothing allocated in it) when no rule fires. Throws InternalError when a rule
// changes a type or the rules do not terminate.
Function rewrite(const Function& f, const RuleSet&, RuleLog* log = nullptr);

// Applies a pass to the bodies of all control nodes, innermost first, then to the function.
using FunctionPass = std::function<Function(const Function&)>;
Function for_bodies_too(const Function&, const FunctionPass&);

}  // namespace hone
