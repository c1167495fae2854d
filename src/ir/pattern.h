// Graphs with holes, and rules that replace them. Written with the same op objects as graphs.
#pragma once

#include <functional>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace hone {

class Pattern {
 public:
  // Matches anything; equal names must match the same value.
  static Pattern any(std::string name);
  // Matches a constant (or its broadcast) whose elements all equal x; as a replacement, creates it.
  static Pattern number(double x);
  // Matches any such constant, whatever its number.
  static Pattern some_number(std::string name);

  const Op* op = nullptr;
  std::vector<Pattern> operands;
  Attrs attrs;       // attributes that must match; others are free
  std::string hole;  // with an op: the name under which a match provides this value
  std::optional<double> constant;
  bool is_number = false;  // a hole for anything that uniform_number recognises
};

// The pattern of a use of the operation.
Pattern apply(const Op&, std::span<const Pattern> operands, Attrs attrs,
              std::source_location = std::source_location::current());

// The values bound to the holes of a rule.
class Match {
 public:
  explicit Match(std::span<const std::string> names) : names_(names), values_(names.size()) {}
  Value operator[](std::string_view hole) const;
  Value root;
  std::span<const std::string> names_;
  std::vector<Value> values_;
};

enum class RuleClass : std::uint8_t {
  exact,     // same bits on every input
  rounding,  // same real function on the same domain
  unsafe,    // off unless asked for
};

struct Rule {
  std::string_view name;
  RuleClass safety;
  Pattern match;
  // The new value (same type as the old one), built in the match's graph.
  std::variant<Pattern, std::function<Value(const Match&)>> replace;
  std::function<bool(const Match&)> when = nullptr;
};

// The number that every element of v equals (constant, or broadcast/reshape of one), if any.
std::optional<double> uniform_number(Value v);

}  // namespace hone
