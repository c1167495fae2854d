#include <cstdio>

#include "backend/backend.h"
#include "cli/load.h"
#include "cli/run/table.h"
#include "plan/plan_json.h"
#include "plan/plan_text.h"
#include "report/report.h"
#include "runtime/prepare.h"

namespace hone::cli {

namespace {

std::string shorter(std::string text, std::size_t most) {
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

// Steps of each group, by kind.
void count_steps(const std::vector<Step>& steps, std::vector<int>& launches,
                 std::vector<int>& calls) {
  for (const Step& s : steps) {
    if (s.kind == Step::Kind::launch && s.group < launches.size()) ++launches[s.group];
    if (s.kind == Step::Kind::library && s.group < calls.size()) ++calls[s.group];
    count_steps(s.body, launches, calls);
    count_steps(s.otherwise, launches, calls);
  }
}

void print_candidates(const GroupRecord& g) {
  for (const CandidateRecord& c : g.candidates()) {
    std::string line = cat("      ", c.name, c.name == g.chosen ? " (chosen)" : "");
    if (c.ms >= 0)
      line +=
          cat(", ", milliseconds(c.ms), " [", milliseconds(c.low), ", ", milliseconds(c.high), "]");
    if (c.error >= 0) line += cat(", error ", small_number(c.error));
    if (!c.refused.empty()) line += ", refused: " + c.refused;
    std::printf("%s\n", line.c_str());
  }
}

// Only libraries allocate in every call: a few small blocks.
int calls_that_allocate(const std::vector<Step>& steps) {
  int n = 0;
  for_each_step(steps, [&](const Step& s) { n += s.kind == Step::Kind::library; });
  return n;
}

Json variant_json(const Variant& v) {
  std::vector<int> launches(v.groups.size(), 0), calls(v.groups.size(), 0);
  count_steps(v.steps, launches, calls);
  Json groups = Json::Array{};
  for (std::size_t i = 0; i < v.groups.size(); ++i) {
    const GroupRecord& g = v.groups[i];
    Json candidates = Json::Array{};
    for (const CandidateRecord& c : g.candidates())
      candidates.push(Json::Object{{"name", c.name},
                                   {"ms", c.ms},
                                   {"low_ms", c.low},
                                   {"high_ms", c.high},
                                   {"error", c.error},
                                   {"refused", c.refused}});
    groups.push(Json::Object{{"name", g.name},
                             {"origins", g.origins},
                             {"chosen", g.chosen},
                             {"reason", g.reason},
                             {"launches", launches[i]},
                             {"library_calls", calls[i]},
                             {"bytes", cat(g.bytes)},
                             {"flops", cat(g.flops)},
                             {"candidates", candidates}});
  }
  Json guards = Json::Array{};
  for (const Guard& g : v.guards) guards.push(guard_text(g));
  return Json::Object{{"target", targets_text(v)},
                      {"devices", devices_json(v)},
                      {"guards", guards},
                      {"steps_that_allocate", calls_that_allocate(v.steps)},
                      {"groups", groups}};
}

struct Details {
  bool steps = false, candidates = false;
};

void print_variant(const Variant& v, std::size_t index, const Details& details) {
  std::printf("variant %zu\n", index);
  for (std::size_t i = 0; i < v.devices.size(); ++i)
    std::printf("  device %zu: %s\n", i, shorter(device_text(v.devices[i]), 120).c_str());
  for (const Guard& g : v.guards) std::printf("  when %s\n", guard_text(g).c_str());
  if (const int n = calls_that_allocate(v.steps))
    std::printf(
        "  not allocation-free: %d steps call a library, which allocates in every call; plans of "
        "strategy %s allocate nothing\n",
        n, std::string(default_backend().name).c_str());
  std::vector<int> launches(v.groups.size(), 0), calls(v.groups.size(), 0);
  count_steps(v.steps, launches, calls);
  Table table({"group", "what", "by", "why", "launches", "bytes", "flops", "from"});
  for (std::size_t i = 0; i < v.groups.size(); ++i) {
    const GroupRecord& g = v.groups[i];
    if (launches[i] + calls[i] == 0) continue;  // prepared before the run, or a view
    table.add({cat(i), shorter(g.name, 40), g.chosen, g.reason, cat(launches[i] + calls[i]),
               shorter(cat(g.bytes), 24), shorter(cat(g.flops), 24), shorter(g.origins, 60)});
  }
  std::printf("%s", table.text().c_str());
  if (details.candidates)
    for (std::size_t i = 0; i < v.groups.size(); ++i) {
      if (launches[i] + calls[i] == 0) continue;
      std::printf("    group %zu %s\n", i, v.groups[i].name.c_str());
      print_candidates(v.groups[i]);
    }
  if (details.steps) std::printf("%s", steps_text(v, v.steps, 1).c_str());
}

// For a plan file it has what the file stores; for a model, everything except strategies.
void report_on(const std::string& page, const std::vector<std::string>& given, const Loaded& loaded,
               const ModelOptions& options, Runner& runner, CompileReport compiled,
               const std::string& command) {
  const std::vector<Array> inputs = inputs_or_samples(given, loaded, runner).arrays;
  Optimized seen;
  seen.plan = *runner.plan();
  seen.compiled.push_back(std::move(compiled));
  seen.profile =
      profile(load_plan(std::make_shared<const Plan>(seen.plan), open_devices(seen.plan)), inputs,
              {.threads = options.threads});
  const std::filesystem::path& model = loaded.file.path;
  ReportContext context{.command = command, .model_file = model.string()};
  context.samples_are_made_up = given.empty() && data_sets(model.parent_path()).empty();
  if (loaded.file.is_plan()) {
    context.plan_file = model.string();
    context.plan_bytes = static_cast<std::int64_t>(std::filesystem::file_size(model));
  }
  write_report(page, seen, context);
}

}  // namespace

int explain(Words words) {
  ModelOptions options;
  Details details;
  std::string report;
  std::vector<std::string> given;
  Arguments a("hone explain", "Says which kernel or library runs each part of a model, and why.");
  add_model(a, options);
  a.flag("--candidates", "also what was not chosen, with its time or why not", details.candidates);
  a.flag("--steps", "also every step with its buffers", details.steps);
  a.text("--report", "FILE",
         "a page (.html) about the plan: its steps timed now, and what it remembers", report);
  a.list("-i,--input", "NAME=FILE", "with --report: an input, as for `hone run`", given);
  add_compiling(a, options, true, Targets::all);
  add_printing(a, options);
  a.example("hone explain model.hone --candidates");
  if (!a.parse(words)) return exit_ok;
  if (options.strategy == "ref")
    throw UsageError(
        "--strategy ref: interprets the model, so there is no plan to explain; give another "
        "strategy");
  if (!report.empty()) {
    check_report(report);
    options.usable = Targets::here;
  }
  const Loaded loaded = load(options, a, given);
  if (!report.empty()) {
    const OutputFile outputs[] = {{"--report", report}};
    check_outputs(outputs, loaded.file.path);
  }
  // Only a report runs the plan and needs its devices.
  Plan plan;
  if (report.empty()) {
    plan = made_plan(loaded, options, options.strategy);
  } else {
    CompileReport compiled;
    const std::unique_ptr<Runner> runner =
        open_runner(loaded, options, options.strategy, &compiled);
    plan = *runner->plan();
    report_on(report, given, loaded, options, *runner, std::move(compiled),
              command_line("hone explain", words));
  }
  if (options.json) {
    Json variants = Json::Array{};
    for (const Variant& v : plan.main().variants) variants.push(variant_json(v));
    std::printf("%s\n", Json(Json::Object{{"name", plan.name},
                                          {"strategy", plan.strategy},
                                          {"verification", plan.verification},
                                          {"measured", plan.measured},
                                          {"kernels", plan.kernels.size()},
                                          {"variants", variants}})
                            .text(2)
                            .c_str());
    return exit_ok;
  }
  std::printf("%s: strategy %s, %s, verification %s, %zu kernels, %zu weights, %zu prepared\n",
              plan.name.c_str(), plan.strategy.c_str(),
              plan.measured ? "choices measured" : "choices predicted", plan.verification.c_str(),
              plan.kernels.size(), plan.weights.size(), plan.prepared.size());
  if (!options.precision.empty())
    std::printf("precision %s: %s\n", options.precision.c_str(),
                policy_text(precision_named(options.precision)).c_str());
  for (std::size_t i = 0; i < plan.main().variants.size(); ++i)
    print_variant(plan.main().variants[i], i, details);
  return exit_ok;
}

}  // namespace hone::cli
