// Graphs with holes, and rules that replace them. Written with the same op objects as graphs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/op.h"

namespace hone {

class Pattern {
 public:
  // Matches anything; equal names must match the same value.
  static Pattern any(std::string name);
  // Matches a constant (or its broadcast) all of whose elements equal x; as a replacement, makes
  // it.
  static Pattern number(double x);
  // Matches any such constant, whatever the number.
  static Pattern some_number(std::string name);

  const Op* op = nullptr;
  std::vector<Pattern> operands;
  Attrs attrs;       // attributes that must match; others are free
  std::string hole;  // with an op: the name by which a match gives this value
  std::optional<double> constant;
  bool is_number = false;  // a hole for what uniform_number knows
};

// What the holes of a rule stand for.
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

// Every element of v equals the returned number (constant, or broadcast/reshape of one).
std::optional<double> uniform_number(Value v);

}  // namespace hone
