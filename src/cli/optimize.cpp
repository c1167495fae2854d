#include "compile/optimize.h"

#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "cli/load.h"
#include "cli/run/table.h"
#include "plan/plan_file.h"
#include "report/report.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

Json strategies_json(const std::vector<StrategyRecord>& records) {
  Json out = Json::Array{};
  for (const StrategyRecord& r : records)
    out.push(Json::Object{{"name", r.name},
                          {"ms", r.ms},
                          {"low_ms", r.low},
                          {"high_ms", r.high},
                          {"ratio_to_best", r.ratio_to_best},
                          {"max_error", r.max_error},
                          {"error_limit", r.error_limit},
                          {"compile_ms", r.compile_ms},
                          {"peak_bytes", r.peak_bytes},
                          {"chosen", r.chosen},
                          {"failure", r.failure}});
  return out;
}

void print_table(const std::vector<StrategyRecord>& records) {
  Table table({"strategy", "one run", "95 % interval", "of best", "error", "limit", "compile",
               "memory", ""});
  for (const StrategyRecord& r : records) {
    if (!r.failure.empty() && r.ms < 0) {
      table.add({r.name, "-", "-", "-", "-", "-", "-", "-", r.failure});
      continue;
    }
    char ratio[24];
    std::snprintf(ratio, sizeof ratio, "%.2fx", r.ratio_to_best);
    table.add({r.name, milliseconds(r.ms), cat(milliseconds(r.low), " .. ", milliseconds(r.high)),
               r.ratio_to_best > 0 ? ratio : "-", small_number(r.max_error),
               small_number(r.error_limit), milliseconds(r.compile_ms), bytes_text(r.peak_bytes),
               r.chosen ? "<- chosen" : r.failure});
  }
  std::printf("%s", table.text().c_str());
}

}  // namespace

int optimize(const OptimizeOptions& options) {
  Loaded loaded = load_source(options);
  const fs::path model = model_path(options);
  const fs::path samples = options.inputs.empty() ? model.parent_path() : fs::path(options.inputs);
  for (const fs::path& set : data_sets(samples))
    loaded.source.samples.push_back(read_set(set, "input"));
  if (loaded.source.samples.empty() && !options.inputs.empty())
    loaded.source.samples.push_back(read_set(samples, "input"));
  fs::path output =
      options.output.empty() ? fs::path(loaded.source.name + ".hone") : fs::path(options.output);
  if (!output.parent_path().empty()) fs::create_directories(output.parent_path());

  OptimizeRequest request;
  request.compile = compile_options(options);
  if (options.verify == "kernels") request.compile.verification = Verification::model;
  request.compile.strip_graph = options.strip;
  request.strategies = options.strategies;
  request.rounds = options.rounds;
  request.progress = [&](const std::string& line) { tell(options, line); };
  request.profile = !options.report.empty();
  Optimized result = hone::optimize(loaded.source, request);
  write_plan(output, result.plan);

  const auto size = static_cast<std::int64_t>(fs::file_size(output));
  if (!options.report.empty())
    write_report(options.report, result,
                 {.command = options.command,
                  .model_file = model.string(),
                  .plan_file = output.string(),
                  .plan_bytes = size,
                  .import_ms = loaded.import_ms,
                  .warnings = loaded.warnings,
                  .samples_are_made_up = loaded.source.samples.empty()});
  if (options.json) {
    std::printf("%s\n", Json(Json::Object{{"plan", output.string()},
                                          {"report", options.report},
                                          {"bytes", size},
                                          {"strategies", strategies_json(result.plan.strategies)}})
                            .text(2)
                            .c_str());
    return exit_ok;
  }
  print_table(result.plan.strategies);
  std::printf("plan: %s (%s)\n", output.c_str(), bytes_text(size).c_str());
  if (!options.report.empty())
    std::printf("report: %s (%s)\n", options.report.c_str(),
                bytes_text(static_cast<std::int64_t>(fs::file_size(options.report))).c_str());
  return exit_ok;
}

}  // namespace hone::cli
