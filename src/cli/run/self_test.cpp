#include "cli/run/self_test.h"

#include <algorithm>
#include <cstdio>

#include "backend/devices/devices.h"
#include "cli/run/exit.h"
#include "plan/plan_file.h"

namespace hone::cli {

namespace {

std::string threads_text(const std::vector<int>& threads) {
  std::string out;
  for (std::size_t i = 0; i < threads.size(); ++i)
    out += cat(i == 0 ? "" : i + 1 == threads.size() ? " and " : ", ", threads[i]);
  return out + " threads";
}

// Guards of a variant may fill a page.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

void print(const SelfTestRequest& request, const Plan& plan,
           const std::vector<SelfTestOutcome>& outcomes, const std::string& failure) {
  if (request.json) {
    std::printf("%s\n", Json(Json::Object{{"plan", request.plan.string()},
                                          {"content", plan.content ? to_hex(*plan.content) : ""},
                                          {"passed", failure.empty()},
                                          {"failure", failure},
                                          {"tests", outcomes_json(outcomes)}})
                            .text(2)
                            .c_str());
    return;
  }
  if (!request.quiet) std::printf("%s", outcomes_text(outcomes, SelfTestOptions().threads).c_str());
  if (!failure.empty()) std::fprintf(stderr, "%s\n", failure.c_str());
}

}  // namespace

int self_test(const SelfTestRequest& request) {
  const auto plan = std::make_shared<const Plan>(read_plan(request.plan, VerifyData::all));
  SelfTestOptions options;
  options.is_same_machine = request.is_same_machine;
  if (request.max_memory > 0) options.max_memory = request.max_memory;
  std::vector<SelfTestOutcome> outcomes;
  std::string failure;
  try {
    outcomes = run_self_tests(plan, open_devices(*plan), options);
  } catch (const SelfTestFailure& e) {
    failure = e.what();
  }
  const bool ran_any =
      std::ranges::any_of(outcomes, [](const SelfTestOutcome& o) { return o.skipped.empty(); });
  if (failure.empty() && !ran_any && !request.is_same_machine)
    failure = cat(request.plan.string(), ": no self-test was run: ",
                  outcomes.empty() ? "the plan has none; make it again with `hone optimize`"
                                   : outcomes[0].skipped);
  print(request, *plan, outcomes, failure);
  return failure.empty() ? exit_ok : exit_differs;
}

Json outcomes_json(const std::vector<SelfTestOutcome>& outcomes) {
  Json out = Json::Array{};
  for (const SelfTestOutcome& o : outcomes)
    out.push(Json::Object{{"entry", o.entry},
                          {"variant", o.variant},
                          {"target", o.target},
                          {"guards", o.guards},
                          {"inputs", o.inputs},
                          {"skipped", o.skipped}});
  return out;
}

std::string outcomes_text(const std::vector<SelfTestOutcome>& outcomes,
                          const std::vector<int>& threads) {
  std::string out;
  const bool has_several = std::ranges::any_of(
      outcomes, [&](const SelfTestOutcome& o) { return o.entry != outcomes[0].entry; });
  for (const SelfTestOutcome& o : outcomes) {
    const std::string entry = has_several ? cat("entry ", o.entry, ", ") : "";
    out += cat("self-test: ", entry, "variant ", o.variant, " (", o.target,
               o.guards.empty() ? "" : ", " + shortened(o.guards), "): ");
    out += o.skipped.empty() ? cat(o.inputs, ": as verified, with ", threads_text(threads), "\n")
                             : cat("not run: ", o.skipped, "\n");
    for (const std::string& r : o.sizes_only)
      out += cat("self-test: ", entry, "variant ", o.variant, ": only the size of result '", r,
                 "' was compared, as its values depend on how a library rounds\n");
  }
  return out;
}

}  // namespace hone::cli
