// One run of a model or plan on given inputs, for `hone run` and `hone-run`. The caller opens the
// runner.
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
  std::string entry;                  // of a plan; empty: its only one
  std::filesystem::path state;        // values of its states; empty: their start values
  std::filesystem::path saved_state;  // where to write them after the run; empty: nowhere
  bool print_times = false;
  bool json = false;
  bool quiet = false;  // write the files and print nothing
};
// Adds the options of a run.
void add_run(Arguments&, RunRequest&);
// Reads the inputs, prints the memory need, runs, writes the results and prints their files.
// `opened_in` is the time that opening the runner took. Returns the exit code.
int run_once(Runner&, const RunRequest&, std::chrono::duration<double, std::milli> opened_in);

}  // namespace hone::cli
