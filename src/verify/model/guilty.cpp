#include "verify/model/guilty.h"

#include <chrono>
#include <optional>
#include <set>

#include "verify/model/explanation.h"

namespace hone {

namespace {

constexpr std::chrono::seconds most_time{30};

class Meaning {
 public:
  Meaning(const Function& f, const std::vector<Array>& inputs)
      : inputs_(inputs),
        evaluator_(f),
        expected_(evaluator_, inputs, Mode::stepwise),
        rounding_(f, inputs, expected_) {}

  // How another function's results differ for the same inputs; empty when they agree.
  std::optional<std::string> difference(const Function& other) {
    std::vector<Array> got;
    try {
      got = evaluate(other, inputs_);
    } catch (const UserError& e) {
      return e.what();
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Comparison c = expected_.accept(i, widen(got[i]));
      if (c.ok) continue;
      const bool is_other_form = !c.problem.empty();
      if (is_other_form ? !rounding_.explains_sizes(i) : !rounding_.explains(i, got[i]))
        return cat("result ", i, ": ", c);
    }
    return std::nullopt;
  }

 private:
  const std::vector<Array>& inputs_;
  Evaluator evaluator_;
  Expected expected_;
  Explanation rounding_;
};

std::string rules_text(const RuleLog& log) {
  std::set<std::string_view> names;
  for (const RuleLog::Firing& fired : log.firings) names.insert(fired.rule);
  std::string out;
  for (std::string_view name : names) out += cat(out.empty() ? " (rules: " : ", ", name);
  return out.empty() ? out : out + ")";
}

}  // namespace

std::string guilty_pass(const Function& f, std::span<const Stage> stages,
                        const std::vector<Array>& inputs) try {
  const auto start = std::chrono::steady_clock::now();
  Meaning meaning(f, inputs);
  for (const Stage& s : stages) {
    if (std::chrono::steady_clock::now() - start > most_time)
      return cat("; passes before '", s.pass, "' keep its meaning, the others were not tried");
    if (const std::optional<std::string> d = meaning.difference(s.after))
      return cat("; pass '", s.pass, "'", rules_text(s.rules), " changes its meaning: ", *d);
  }
  return "; no pass changes the result, so a kernel or the plan's order or memory is at fault";
} catch (const UserError& e) {
  return cat("; the pass at fault is unknown: ", e.what());
}

}  // namespace hone
