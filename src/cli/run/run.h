// One run of a model or plan on given inputs: what `hone run` and `hone-run` both do. Opening what
// runs is the caller's work; opening a plan is here too, and needs no compiler.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/run/arguments.h"
#include "runtime/session.h"

namespace hone::cli {

// Runs a model by a strategy: `ref` interprets, the others run a plan.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::vector<Array> run(std::span<const Array> inputs) = 0;
  virtual const std::vector<PlanParam>& params() const = 0;
  virtual const std::vector<PlanParam>& results() const = 0;
  // Null for the interpreter.
  virtual Session* session() { return nullptr; }
  virtual const Plan* plan() const { return nullptr; }
};

struct PlanLimits {
  int threads = 0;              // 0 asks the machine
  std::int64_t max_memory = 0;  // bytes; 0: the default of sessions
};
std::unique_ptr<Runner> plan_runner(std::shared_ptr<const Plan>, const PlanLimits&);

struct RunRequest {
  std::vector<std::string> inputs;  // "NAME=FILE" or "FILE"
  std::filesystem::path output_dir = ".";
  bool print_times = false;
  bool json = false;
  bool quiet = false;  // writes the files and prints nothing
};
// The options of a run.
void add_run(Arguments&, RunRequest&);
// Reads the inputs, says what memory the run needs, runs, writes the results and says where they
// are. `opened_in` is what opening the runner took. Returns the exit code.
int run_once(Runner&, const RunRequest&, std::chrono::duration<double, std::milli> opened_in);

}  // namespace hone::cli
