#include "pass/simplify.h"

#include "pass/rewrite.h"

namespace hone {

namespace {

std::vector<Rule> all_simplify_rules() {
  std::vector<Rule> all(arithmetic_rules().begin(), arithmetic_rules().end());
  all.insert(all.end(), movement_rules().begin(), movement_rules().end());
  return all;
}

}  // namespace

Function simplify(const Function& f) {
  static const std::vector<Rule> rules = all_simplify_rules();
  static const RuleSet set(rules);
  return rewrite(f, set);
}

}  // namespace hone
