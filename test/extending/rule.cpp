#include "ops/common.h"
#include "test/extending/extending.h"

namespace hone::extending {

std::span<const Rule> softsign_rules() {
  const Pattern x = Pattern::any("x");
  static const Rule rules[] = {
      {"softsign-of-negative", RuleClass::exact, softsign(-x), -softsign(x)},
  };
  return rules;
}

}  // namespace hone::extending
