#include "test/fault/tried.h"

namespace hone::test {

namespace {

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

std::string refusals(const Plan& plan) {
  for (const Variant& v : plan.main().variants)
    for (const GroupRecord& g : v.groups)
      for (const CandidateRecord& c : g.candidates())
        if (!c.refused.empty()) return cat(g.name, ": ", c.name, ": ", c.refused);
  return "";
}

std::string first_wrong_number(const Plan& plan, const SmallModel& m) {
  std::unique_ptr<Session> session = session_of(std::make_shared<const Plan>(plan));
  for (const std::vector<Array>& inputs : m.inputs) {
    const Function& f = m.source.variants[0].function;
    std::vector<Array> got = session->run(inputs);
    std::vector<Wide> strict = evaluate_wide(f, inputs, Mode::stepwise);
    std::vector<Wide> wide = evaluate_wide(f, inputs, Mode::wide);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (Comparison c = accept(got[i], strict[i], wide[i]); !c.ok)
        return cat("result ", i, ": ", c);
  }
  return "";
}

Finding try_fault(const Fault& fault, const SmallModel& m) {
  CompileOptions options = options_with(fault);
  options.threads = 1;
  try {
    Plan plan = compile(m.source, options);
    if (fired == 0) return {};
    std::string bad = first_wrong_number(plan, m), refused = refusals(plan);
    if (!bad.empty()) return {Outcome::wrong, bad};
    if (!refused.empty()) return {Outcome::replaced, first_line(refused)};
    return {Outcome::harmless, "the numbers are right"};
  } catch (const UserError& e) {
    return {fired ? Outcome::refused : Outcome::wrong, first_line(e.what())};
  } catch (const InternalError& e) {
    return {fired ? Outcome::refused : Outcome::wrong, first_line(e.what())};
  }
}

}  // namespace hone::test
