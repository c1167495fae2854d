#include "pass/simplify.h"

namespace hone {

namespace {

std::vector<Rule> all_simplify_rules() {
  std::vector<Rule> all;
  for (std::span<const Rule> rules : {arithmetic_rules(), movement_rules(), contraction_rules()})
    all.insert(all.end(), rules.begin(), rules.end());
  return all;
}

}  // namespace

Function simplify(const Function& f, RuleLog* log) {
  static const std::vector<Rule> rules = all_simplify_rules();
  static const RuleSet set(rules);
  return rewrite(f, set, log);
}

}  // namespace hone
