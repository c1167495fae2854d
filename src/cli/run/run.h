// One run of a model or plan on given inputs: what `hone run` and `hone-run` both do. Opening what
// runs is the caller's work.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/run/arguments.h"
#include "cli/run/runner.h"

namespace hone::cli {

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
