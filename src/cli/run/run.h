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
