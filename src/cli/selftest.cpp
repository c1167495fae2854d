#include "backend/backend.h"
#include "cli/commands.h"
#include "cli/device_test.h"
#include "cli/model_file.h"
#include "cli/run/self_test.h"

namespace hone::cli {

int selftest(Words words) {
  SelfTestRequest request;
  std::string plan, device;
  bool tries_all = false;
  Printing printing;
  Arguments a("hone selftest",
              "Runs the self-tests of a plan file: whether it computes here, with 1, 2 and 4\n"
              "threads, what it computed when it was verified. With --device, whether a device\n"
              "computes every operation as the reference does.");
  a.positional("PLAN", "the plan (.hone), made by `hone optimize`", plan, "--device");
  a.text("--device", "NAME[:NUMBER]", "a device, as `hone devices` names it; needs no plan",
         device);
  a.flag("--all", "with --device: all samples of an operation instead of one", tries_all);
  a.flag("--same-machine", "skip nothing, and demand every bit", request.is_same_machine);
  a.bytes("--max-memory", "fail if more memory is needed: 500M, 2Gi, ... (default: 80 % of memory)",
          request.max_memory);
  add_printing(a, printing);
  a.example("hone selftest model.hone");
  a.example(cat("hone selftest --device ", default_backend().name, " --json"));
  if (!a.parse(words)) return exit_ok;
  if (!device.empty() && !plan.empty())
    throw UsageError(
        "PLAN and --device cannot be combined, as a plan names its own devices; give one of them");
  if (tries_all && device.empty()) throw UsageError("--all needs --device");
  if (!device.empty()) return test_device(device, tries_all, printing);
  const ModelFile file = model_file(plan);
  if (!file.is_plan())
    throw UserError(file.path.string(),
                    ": is not a plan; make one from a model with `hone optimize`");
  request.plan = file.path;
  request.json = printing.json;
  request.quiet = printing.quiet;
  return self_test(request);
}

}  // namespace hone::cli
