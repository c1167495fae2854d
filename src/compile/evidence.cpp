#include "compile/evidence.h"

#include "backend/devices/devices.h"
#include "compile/compile.h"
#include "runtime/session.h"
#include "verify/reduce/judge.h"
#include "verify/reduce/reduce.h"

namespace hone {

std::string fault_of(const Case& c, const CompileOptions& given) try {
  CompileOptions options = given;
  options.verification = Verification::none;  // faulty plans must run too
  options.measure = options.tune = options.cache = false;
  options.store = nullptr;
  options.progress = {};
  const auto plan =
      std::make_shared<const Plan>(compile({"evidence", {{{}, c.function}}, {}}, options));
  Session session(Executable::load(plan, open_devices(*plan)), {.threads = options.threads});
  for (const CaseRun& run : c.runs) {
    Judge judge(c.function, run);
    if (std::string wrong = judge(session.run(judge.inputs())); !wrong.empty()) return wrong;
  }
  return "";
} catch (const UserError&) {
  return "";  // the function refuses these inputs, or the compiler this function
} catch (const std::exception& e) {
  return cat("throws: ", e.what());
}

Evidence reduced_evidence(Case c, const CompileOptions& options, std::chrono::seconds most) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + most;
  std::string fault = fault_of(c, options);
  if (fault.empty()) return {std::move(c), ""};
  Case small = reduced(std::move(c), [&](const Case& smaller) {
    return Clock::now() < end && !fault_of(smaller, options).empty();
  });
  fault = fault_of(small, options);
  return {std::move(small), std::move(fault)};
}

Evidence evidence_of(const Function& f, const std::vector<Sizing>& sizes,
                     const CompileOptions& options, std::chrono::seconds most) {
  Case c{f, {}};
  for (const Sizing& s : sizes)
    for (CaseNumbers numbers : {CaseNumbers::ordinary, CaseNumbers::extreme})
      c.runs.push_back({s, 1, numbers});
  return reduced_evidence(std::move(c), options, most);
}

}  // namespace hone
