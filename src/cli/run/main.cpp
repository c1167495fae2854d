// hone-run: loads a plan file and runs it once. Holds no compiler, so it starts in milliseconds;
// `hone run` does the same and takes models too.
#include <cstdio>
#include <cstdlib>

#include "cli/run/deadline.h"
#include "cli/run/exit.h"
#include "cli/run/run.h"
#include "cli/run/self_test.h"
#include "plan/plan_file.h"

namespace hone::cli {
namespace {

int run(std::span<char* const> words) {
  std::string plan;
  PlanLimits limits;
  Deadline deadline;
  RunRequest request;
  bool tests_itself = false, is_same_machine = false;
  Arguments a("hone-run", "Runs a plan file once on given inputs.");
  a.positional("PLAN", "the plan (.hone), made by `hone optimize`", plan);
  add_run(a, request);
  a.text("--entry", "NAME", "the function to run, if the plan has several", request.entry);
  a.number("--threads", "N", "threads to use (default: 0, as many as the machine offers)",
           limits.threads, 0, most_threads);
  a.bytes("--max-memory", "fail if more memory is needed: 500M, 2Gi, ... (default: 80 % of memory)",
          limits.max_memory);
  add_deadline(a, deadline);
  a.flag("--selftest", "instead run the plan's self-tests: what it computed when it was verified",
         tests_itself);
  a.flag("--same-machine", "with --selftest: skip nothing, and demand every bit", is_same_machine);
  a.flag("--json", "print JSON", request.json);
  a.flag("-q,--quiet", "write the results and print nothing", request.quiet);
  a.example("hone-run model.hone --input image=x.npy --output-dir out");
  if (!words.empty() && std::string_view(words[0]) == "--version")
    return std::puts("hone-run " HONE_VERSION), exit_ok;
  a.example("hone-run --selftest model.hone");
  if (!a.parse(words)) return exit_ok;
  if (tests_itself)
    return self_test({plan, limits.max_memory, is_same_machine, request.json, request.quiet});
  limits.deadline = deadline.at();
  limits.entry = request.entry;
  limits.state = request.state;
  const auto start = std::chrono::steady_clock::now();
  const auto runner = plan_runner(std::make_shared<const Plan>(read_plan(plan)), limits);
  return run_once(*runner, request, std::chrono::steady_clock::now() - start);
}

}  // namespace
}  // namespace hone::cli

int main(int argc, char** argv) {
  // libgomp's threads would otherwise spin after each library call and starve our pool.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  const std::span<char* const> words(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  return hone::cli::guarded("hone-run", words, [&] {
    hone::cli::warn_of_misspelt_flags("hone-run", words);
    return hone::cli::run(words);
  });
}
