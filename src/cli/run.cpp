#include "cli/run/run.h"

#include "cli/load.h"

namespace hone::cli {

int run(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Runner> runner = open_runner(options, options.strategy, options.dump);
  return run_once(*runner,
                  {.inputs = options.inputs,
                   .output_dir = options.output_dir,
                   .print_times = options.print_times,
                   .json = options.json,
                   .quiet = options.quiet},
                  std::chrono::steady_clock::now() - start);
}

}  // namespace hone::cli
