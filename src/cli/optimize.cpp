#include "compile/optimize.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "backend/backend.h"
#include "backend/devices/devices.h"
#include "base/amount.h"
#include "base/machine.h"
#include "base/replace_file.h"
#include "cli/load.h"
#include "cli/precision.h"
#include "cli/run/table.h"
#include "cli/strategy_table.h"
#include "optimize/expected.h"
#include "optimize/keep_evidence.h"
#include "optimize/prove.h"
#include "optimize/second_reading.h"
#include "optimize/states.h"
#include "plan/plan_file.h"
#include "report/report.h"
#include "runtime/self_test.h"
#include "runtime/session.h"

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

std::string timing_text(const TimingRecord& t) {
  const int processors = this_machine().processors;
  if (t.rounds == 0) return "not timed as a whole";
  std::string out = cat("timed: ", t.sizes.empty() ? "" : t.sizes + ", ", t.threads,
                        t.threads == 1 ? " thread" : " threads", " on ", processors,
                        processors == 1 ? " processor" : " processors", ", ", t.rounds, " rounds");
  const int percent = static_cast<int>(100 * t.busy + 0.5);
  out += cat(", other processes used ", percent, " % of the machine");
  constexpr int disturbing = 20;
  if (percent >= disturbing) out += ": the times vary";
  if (t.leaves_copies_out) out += ", without copies of inputs and outputs between host and device";
  if (t.repeats > 0) out += cat(", timed again ", t.repeats == 1 ? "once" : "twice");
  return out;
}

Json timing_json(const TimingRecord& t) {
  return Json::Object{
      {"sizes", t.sizes},   {"threads", t.threads}, {"processors", this_machine().processors},
      {"rounds", t.rounds}, {"busy", t.busy},       {"repeats", t.repeats}};
}

Json self_tests_json(const Plan& plan) {
  Json out = Json::Array{};
  for (const SelfTest& t : plan.main().self_tests)
    out.push(Json::Object{
        {"variant", t.variant}, {"inputs", inputs_text(plan.main(), t)}, {"missing", t.missing}});
  return out;
}

std::string tried_text(const Tried& t, const SecondReading& reading) {
  std::string out = cat("verified: ", reading.judged, " of ", reading.nodes,
                        " nodes by a second reading of the model");
  if (reading.alone > 0) out += cat(" (", reading.alone, " alone on small operands)");
  out += cat(" in ", milliseconds(reading.ms), "; ", t.kernels + t.kernels_before, " kernels");
  if (t.kernels_before > 0) out += cat(" (", t.kernels_before, " in earlier runs)");
  if (t.kernels_shortly > 0)
    out += cat(" (", t.kernels_shortly, " on fewer inputs, because the time was up)");
  out += cat(" in ", milliseconds(t.kernels_ms));
  if (t.inputs.empty())
    return out + "; the model was not run as a whole" +
           (t.left_out.empty() ? "" : ": " + t.left_out) + "\n";
  out += cat("; the model in ", milliseconds(t.model_ms), " on ");
  for (std::size_t i = 0; i < t.inputs.size(); ++i) out += cat(i == 0 ? "" : "; ", t.inputs[i], "");
  if (!t.threads.empty()) {
    out += ", again on ";
    for (std::size_t i = 0; i < t.threads.size(); ++i) out += cat(i == 0 ? "" : ", ", t.threads[i]);
    out += " threads, in other memory and another order";
  } else if (!t.left_out.empty()) {
    out += cat(", not again: ", t.left_out);
  }
  return out + "\n";
}

std::string self_tests_text(const Plan& plan, bool verbose) {
  constexpr std::size_t few = 8;
  struct Set {
    std::string inputs, shown;
    int count = 0;  // number of sets with such inputs
  };
  std::vector<Set> sets;
  for (const SelfTest& t : plan.main().self_tests) {
    if (!t.missing.empty()) continue;
    const std::string inputs = inputs_text(plan.main(), t);
    if (sets.empty() || sets.back().inputs != inputs)
      sets.push_back({inputs, verbose ? inputs : inputs_text(plan.main(), t, few)});
    ++sets.back().count;
  }
  std::string out;
  for (const Set& s : sets)
    out += cat(out.empty() ? "self-test: passed in a separate process with " : "; ", s.shown,
               s.count > 1 ? cat(" (", s.count, " sets)") : "");
  return out.empty() ? out : out + "\n";
}

struct Request {
  ModelOptions model;
  std::string output, inputs, report, evidence;
  std::vector<std::string> given, strategies, states;
  double budget = OptimizeRequest().budget;
  bool strips = false, accepts_outputs = false, accepts_reading = false, accepts_overflow = false;
  int rounds = 20;
};

bool parse(Arguments& a, Request& r, Words words) {
  add_source(a, r.model);
  a.text("-o,--output,--saveEngine", "FILE", "the plan to write (default: MODEL.hone, here)",
         r.output);
  a.list("-i,--input,--loadInputs", "NAME=FILE",
         "a sample input, as for `hone run` (default: those beside the model)", r.given);
  a.text("--inputs", "DIR",
         "sample inputs: input_K.pb, NAME.npy, ..., or test_data_set_K with them", r.inputs);
  a.text("--report", "FILE", "a page (.html) that shows graph, kernels, memory, times and errors",
         r.report);
  a.choices("--strategies", hone::strategies(), "strategies to try (default: all)", r.strategies);
  add_budget(a, r.budget);
  a.number("--rounds", "N", "timing rounds, interleaved (default: 20)", r.rounds, 1);
  a.text("--keep-evidence", "DIR",
         "where a refused strategy leaves a reduced case, for `hone reduce`", r.evidence);
  a.flag("--accept-outputs", "accept outputs whose types differ from those that the model declares",
         r.accepts_outputs);
  a.flag("--accept-reading", "accept nodes that a second reading finds wrong", r.accepts_reading);
  add_accept_overflow(a, r.accepts_overflow);
  a.list("--state", "INPUT=OUTPUT", "an input kept between runs; the output is its next value",
         r.states);
  a.flag("--strip", "leave the graph's text out of the plan", r.strips);
  add_compiling(a, r.model, false, Targets::all);
  add_printing(a, r.model);
  a.example("hone optimize model.onnx -o model.hone --dim batch=1..64 --json");
  return a.parse(words);
}

// The sets below a directory, or the one that it is.
std::vector<StoredSet> samples_in(const std::string& directory, std::span<const PlanParam> params) {
  std::vector<fs::path> sets = data_sets(directory);
  if (sets.empty()) sets.emplace_back(directory);
  std::vector<StoredSet> out;
  for (const fs::path& set : sets) {
    StoredSet s{set, read_set(set, "input"), read_set(set, "output")};
    if (s.inputs.empty()) s.inputs = read_named(set, params);
    if (s.inputs.empty() && !params.empty())
      throw UserError("--inputs ", directory,
                      ": contains no input_0.pb, input_0.npy or test_data_set_0; put the sample "
                      "inputs there as "
                      "input_K.npy or NAME.npy");
    out.push_back(std::move(s));
  }
  return out;
}

// Everything that is determined before the slow part.
struct Prepared {
  Loaded loaded;
  SecondReading reading;
  fs::path file;  // to write
  std::vector<StoredSet> samples;
  std::vector<StatePair> states;
};

std::vector<StatePair> pairs_in(const std::vector<std::string>& words) {
  std::vector<StatePair> out;
  for (const std::string& w : words) {
    const std::size_t at = w.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == w.size())
      throw UsageError(cat("--state ", w, ": expected INPUT=OUTPUT, such as past=present"));
    out.push_back({w.substr(0, at), w.substr(at + 1)});
  }
  return out;
}

void check_reading(const Request& r, Prepared& p) {
  const Loaded& loaded = p.loaded;
  p.reading = checked_reading(loaded.file.path, loaded.import,
                              loaded.as_read ? *loaded.as_read : loaded.source,
                              loaded.contradictions, r.model.max_memory,
                              {.outputs = r.accepts_outputs, .nodes = r.accepts_reading});
  if (const std::string w = unjudged_warning(p.reading); !w.empty()) warn(r.model, "warning: " + w);
}

fs::path checked_output(const Request& r, const Loaded& loaded) {
  const fs::path file =
      r.output.empty() ? fs::path(fit_file_name(loaded.source.name, ".hone")) : fs::path(r.output);
  check_writable(file, "--output");
  std::vector<OutputFile> outputs = {{"--output", file}};
  if (!r.report.empty()) {
    check_report(r.report);
    outputs.push_back({"--report", r.report});
  }
  check_outputs(outputs, loaded.file.path);
  return file;
}

Prepared prepared(const Request& r, const Arguments& a) {
  Prepared p;
  p.loaded = load_model(r.model, a, r.given);
  check_reading(r, p);
  p.file = checked_output(r, p.loaded);
  if (!r.inputs.empty()) p.samples = samples_in(r.inputs, p.loaded.params);
  Source& source = p.loaded.source;
  p.states = store_states(source, pairs_in(r.states));
  for (const StoredSet& s : p.samples) source.samples.push_back(s.inputs);
  for (const std::vector<Array>& sample : source.samples)
    check_inputs(sample, p.loaded.params, "samples of " + source.name);
  return p;
}

void print_plan(const fs::path& file, std::int64_t bytes, const std::string& more = "") {
  std::printf("plan: %s (%s)%s\n", file.c_str(), bytes_text(bytes).c_str(), more.c_str());
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

// Writes a plan for targets that this machine does not run.
void write_untried(const Request& r, const Prepared& p, CompileOptions options) {
  options.verification = Verification::none;
  Plan plan = compile(p.loaded.source, options);
  keep_states(plan, p.states);
  write_plan(p.file, plan);
  warn(r.model, cat("warning: this machine does not run ", joined(r.model.targets),
                    ": the plan was neither verified nor timed; run `hone validate ",
                    p.file.string(), "` on one that does"));
  print_plan(p.file, static_cast<std::int64_t>(fs::file_size(p.file)));
}

Optimized optimized(const Request& r, const Prepared& p, CompileOptions compiled) {
  if (!r.model.devices.empty() && !r.strategies.empty() &&
      std::ranges::count(r.strategies, "multi") == 0)
    throw UsageError("--devices: applies to the strategy multi only; add multi to --strategies");
  OptimizeRequest request;
  request.compile = std::move(compiled);
  request.strategies = r.strategies;
  request.rounds = r.rounds;
  request.budget = r.budget;
  request.progress = [&](const std::string& line) { progress(r.model, line); };
  request.profile = !r.report.empty();
  if (!r.evidence.empty())
    request.on_refusal = [&](const Refusal& refusal) {
      progress(r.model,
               cat("reducing the case for which strategy ", refusal.strategy, " was refused"));
      const fs::path kept =
          keep_evidence(r.evidence, p.loaded.source.name, refusal, compile_options(r.model));
      warn(r.model, cat("warning: strategy ", refusal.strategy,
                        " was refused; the case is kept in ", kept.string()));
    };
  return hone::optimize(p.loaded.source, request);
}

// What is printed about the written plan.
struct BestPlan {
  PrecisionReport precision;
  std::int64_t bytes = 0;
};

Json result_json(const Request& r, const Prepared& p, const Optimized& result,
                 const BestPlan& best) {
  Json::Object left_out;
  for (const auto& [op, nodes] : p.reading.left_out) left_out.emplace_back(op, nodes);
  return Json::Object{{"plan", p.file.string()},
                      {"report", r.report},
                      {"bytes", best.bytes},
                      {"content", to_hex(*result.plan.content)},
                      {"verified", to_json(result.tried)},
                      {"not_run", result.not_run},
                      {"read_again", Json::Object{{"nodes", p.reading.nodes},
                                                  {"judged", p.reading.judged},
                                                  {"alone", p.reading.alone},
                                                  {"equal", p.reading.equal},
                                                  {"unknown", texts_json(p.reading.unknown)},
                                                  {"limit", p.reading.limit},
                                                  {"left_out", left_out},
                                                  {"ms", p.reading.ms}}},
                      {"self_tests", self_tests_json(result.plan)},
                      {"precision", precision_json(r.model, best.precision)},
                      {"inputs", texts_json(result.assumptions)},
                      {"timing", timing_json(result.timing)},
                      {"strategies", strategies_json(result.plan.main().strategies)}};
}

void print_result(const Request& r, const Prepared& p, const Optimized& result,
                  const BestPlan& best) {
  std::printf("%s", strategy_table(result.plan.main().strategies).c_str());
  std::printf("%s\n", timing_text(result.timing).c_str());
  print_assumptions(result.assumptions, "--input or --inputs", r.model);
  print_plan(p.file, best.bytes, ", content " + to_hex(*result.plan.content));
  std::printf("%s", precision_text(r.model, best.precision).c_str());
  std::printf("%s%s", tried_text(result.tried, p.reading).c_str(),
              self_tests_text(result.plan, r.model.verbose).c_str());
  if (!r.report.empty() && result.not_run.empty())
    std::printf("report: %s (%s)\n", r.report.c_str(), file_size_text(r.report).c_str());
}

}  // namespace

int optimize(Words words) {
  Arguments a(
      "hone optimize",
      "Compiles a model with every strategy, verifies and times each, and writes the best plan.");
  Request r;
  if (!parse(a, r, words)) return exit_ok;
  Prepared p = prepared(r, a);

  CompileOptions compiled = compile_options(r.model);
  compiled.strip_graph = r.strips;
  const std::vector<std::string> foreign = foreign_targets(r.model);
  if (!foreign.empty() && foreign.size() == r.model.targets.size()) {
    write_untried(r, p, std::move(compiled));
    return exit_ok;
  }
  if (r.model.verify == "kernels") compiled.verification = Verification::model;
  Optimized result = optimized(r, p, std::move(compiled));

  BestPlan best;
  Loaded& loaded = p.loaded;
  if (loaded.given && result.not_run.empty()) {
    loaded.given->samples = loaded.source.samples;
    best.precision = checked_precision(loaded, result.plan, r.model, r.accepts_overflow);
  } else if (!loaded.given) {
    check_expected(result.plan, p.samples, r.model.threads);
  }
  state_written_memory(p.file, result.plan, result.inputs, r.model.threads,
                       compile_options(r.model).max_memory);
  keep_states(result.plan, p.states);
  progress(r.model, "testing the written plan in a separate process");
  best.bytes = write_proved(p.file, result.plan);
  if (!foreign.empty())
    warn(r.model, cat("warning: this machine does not run ", joined(foreign),
                      ": that part of the plan was neither verified nor timed; run `hone validate ",
                      p.file.string(), "` on one that does"));
  if (!result.not_run.empty())
    warn(r.model, cat("warning: only single kernels were verified, and the strategies were not "
                      "timed, because the model was not run as a whole: ",
                      result.not_run, "; give sample inputs with --input or --inputs"));
  for (const SelfTest& t : result.plan.main().self_tests)
    if (!t.missing.empty() && foreign.empty())
      warn(r.model, cat("warning: variant ", t.variant, " has no self-test: ", t.missing));
  if (!r.report.empty() && !result.not_run.empty())
    warn(r.model,
         cat("warning: ", r.report, " was not written: a report shows a run of the model"));
  else if (!r.report.empty())
    write_report(r.report, result,
                 {.command = command_line("hone optimize", words),
                  .model_file = loaded.file.path.string(),
                  .plan_file = p.file.string(),
                  .plan_bytes = best.bytes,
                  .import_ms = loaded.import_ms,
                  .warnings = loaded.warnings,
                  .samples_are_made_up = loaded.source.samples.empty()});
  if (r.model.json)
    std::printf("%s\n", result_json(r, p, result, best).text(2).c_str());
  else
    print_result(r, p, result, best);
  return exit_ok;
}

}  // namespace hone::cli
