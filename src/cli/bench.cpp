#include <algorithm>
#include <chrono>
#include <cstdio>

#include "backend/backend.h"
#include "base/file.h"
#include "cli/load.h"
#include "cli/run/memory.h"
#include "cli/run/self_test.h"
#include "cli/run/table.h"
#include "compile/stats.h"
#include "plan/content_hash.h"

namespace hone::cli {

namespace {

using Clock = std::chrono::steady_clock;

double percentile(const std::vector<double>& sorted, double p) {
  auto i = static_cast<std::size_t>(p / 100 * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[i];
}

// Times of a plan that computes wrong results are meaningless.
bool passes_self_tests(const Plan& plan, const Printing& options, bool tells) {
  const auto unowned = std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan);
  const SelfTestOptions of_tests;
  try {
    const std::vector<SelfTestOutcome> outcomes =
        run_self_tests(unowned, open_devices(plan), of_tests);
    if (tells) std::printf("%s", outcomes_text(outcomes, of_tests.threads).c_str());
    if (outcomes.empty())
      warn(options, "warning: the plan has no self-test; make it again with `hone optimize`");
    return true;
  } catch (const SelfTestFailure& e) {
    tell_error("hone bench", options.json, exit_differs, cat("not timed: ", e.what()));
    return false;
  }
}

// Empty for the interpreter.
std::string content_of(const Runner& runner) {
  return runner.plan() ? to_hex(content_hash_when_read(*runner.plan())) : "";
}

}  // namespace

int bench(Words words) {
  ModelOptions options;
  std::vector<std::string> given;
  int least_runs = 0;
  double seconds = 1, warm_up_ms = 200;
  std::string times_file;
  Arguments a("hone bench",
              "Times a model or a plan: min, mean, median with its 95 % interval, percentiles.");
  add_model(a, options);
  a.list("-i,--input,--loadInputs", "NAME=FILE",
         "an input, as for `hone run`; default: the test set beside the model, or random", given);
  a.number("-r,--iterations", "N", "minimum number of runs", least_runs);
  a.real("-t,--duration", "SECONDS", "minimum time (default: 1)", seconds);
  a.real("--warmUp", "MS", "warm-up time, which is not counted (default: 200)", warm_up_ms);
  a.text("--exportTimes", "FILE", "write all times to this JSON file", times_file);
  add_compiling(a, options, true, Targets::here);
  add_printing(a, options);
  a.example("hone bench model.hone --duration 5");
  a.example(
      cat("hone bench model.onnx --strategy ", default_backend().name, " --threads 1 --json"));
  if (!a.parse(words)) return exit_ok;
  if (!times_file.empty()) check_writable(times_file, "--exportTimes");
  const Loaded loaded = load(options, a, given);
  if (!times_file.empty()) {
    const OutputFile outputs[] = {{"--exportTimes", times_file}};
    check_outputs(outputs, loaded.file.path);
  }
  if (!loaded.file.is_plan() && !given.empty()) read_inputs(given, loaded.params);
  const std::unique_ptr<Runner> runner = open_runner(loaded, options, options.strategy);
  const bool tells = !options.quiet && !options.json;
  const ChosenInputs chosen = inputs_or_samples(given, loaded, *runner);
  const std::vector<Array>& inputs = chosen.arrays;
  runner->run(inputs);  // reports invalid inputs or too little memory first
  if (const Plan* plan = runner->plan(); plan && loaded.file.is_plan())
    if (!passes_self_tests(*plan, options, tells)) return exit_differs;
  const Json memory = memory_json(*runner, inputs);
  if (tells) tell_memory(memory);
  if (tells) print_assumptions(chosen.assumptions, "--input", options);
  auto since = [](Clock::time_point t) {
    return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
  };
  for (Clock::time_point start = Clock::now(); since(start) < warm_up_ms;) runner->run(inputs);
  std::vector<double> times;
  for (Clock::time_point start = Clock::now();
       since(start) < seconds * 1000 || static_cast<int>(times.size()) < std::max(least_runs, 3);) {
    Clock::time_point once = Clock::now();
    runner->run(inputs);
    times.push_back(since(once));
  }
  const Json resident = resident_json();
  Interval median = median_interval(times);
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  double total = 0;
  for (double t : times) total += t;
  const double mean = total / static_cast<double>(times.size());
  Json::Object out{{"runs", times.size()},
                   {"min_ms", sorted.front()},
                   {"mean_ms", mean},
                   {"median_ms", median.median},
                   {"median_low_ms", median.low},
                   {"median_high_ms", median.high},
                   {"p90_ms", percentile(sorted, 90)},
                   {"p95_ms", percentile(sorted, 95)},
                   {"p99_ms", percentile(sorted, 99)},
                   {"throughput_per_s", 1000 / mean},
                   {"content", content_of(*runner)},
                   {"inputs", texts_json(chosen.assumptions)},
                   {"memory", memory},
                   {"resident", resident}};
  if (!times_file.empty()) {
    Json list = Json::Array{};
    for (double t : times) list.push(t);
    write_atomic(times_file, list.text() + "\n");
  }
  if (options.json) {
    std::printf("%s\n", Json(out).text(2).c_str());
    return exit_ok;
  }
  std::printf(
      "runs %zu, min %s, mean %s, median %s [%s, %s], p90 %s, p95 %s, p99 %s, %.1f runs/s\n",
      times.size(), milliseconds(sorted.front()).c_str(), milliseconds(mean).c_str(),
      milliseconds(median.median).c_str(), milliseconds(median.low).c_str(),
      milliseconds(median.high).c_str(), milliseconds(percentile(sorted, 90)).c_str(),
      milliseconds(percentile(sorted, 95)).c_str(), milliseconds(percentile(sorted, 99)).c_str(),
      1000 / mean);
  if (tells && runner->plan()) std::printf("content: %s\n", content_of(*runner).c_str());
  if (tells) tell_resident(resident);
  return exit_ok;
}

}  // namespace hone::cli
