#include "cli/commands.h"
#include "cli/run/self_test.h"

namespace hone::cli {

int selftest(Words words) {
  SelfTestRequest request;
  std::string plan;
  Printing printing;
  Arguments a("hone selftest",
              "Runs the self-tests of a plan file: whether it computes here, with 1, 2 and 4\n"
              "threads, what it computed when it was verified.");
  a.positional("PLAN", "the plan (.hone), made by `hone optimize`", plan);
  a.flag("--same-machine", "skip nothing, and demand every bit", request.is_same_machine);
  a.bytes("--max-memory", "refuse what needs more: 500M, 2Gi, ... (default: 80 % of memory)",
          request.max_memory);
  add_printing(a, printing);
  a.example("hone selftest model.hone");
  if (!a.parse(words)) return exit_ok;
  request.plan = plan;
  request.json = printing.json;
  request.quiet = printing.quiet;
  return self_test(request);
}

}  // namespace hone::cli
