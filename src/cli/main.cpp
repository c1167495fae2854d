#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "cli/commands.h"

namespace hone::cli {
namespace {

void add_model_options(CLI::App* app, ModelOptions& o, bool positional_help = true) {
  app->add_option(
         "model", o.model,
         positional_help ? "model.onnx, a plan (.hone), or a directory with model.onnx" : "")
      ->required();
  app->add_option("--target", o.targets, "x86-64-v3, x86-64-v4 or native; several with commas")
      ->delimiter(',');
  app->add_option("--dim", o.dims, "size or range of a symbol: n=4 or n=1..64; repeatable");
  app->add_option("--shapes", o.shapes, "sizes of inputs: name:1x3x224x224,other:2x2");
  app->add_option("--threads", o.threads, "threads to use; 0 asks the machine");
  app->add_option("--max-memory", o.max_memory, "refuse plans that need more bytes than this");
  app->add_option("--verify", o.verify,
                  "none, kernels (each kernel once) or model (whole function)")
      ->check(CLI::IsMember({"none", "kernels", "model"}));
  app->add_option("--passes-off", o.passes_off, "passes to leave out")->delimiter(',');
  app->add_flag("--one-op-groups", o.one_op_groups, "no fusion: each operation alone");
  app->add_flag("--no-cache", o.no_cache, "neither read nor write the compile cache");
  app->add_flag("--json", o.json, "print JSON");
  app->add_flag("-q,--quiet", o.quiet, "print results only");
}

void add_strategy(CLI::App* app, ModelOptions& o) {
  app->add_option("--strategy", o.strategy, "ref, cpu, onednn or auto")
      ->check(CLI::IsMember({"ref", "cpu", "onednn", "auto"}));
}

// As it was typed, quoted where a shell would need it.
std::string command_line(int argc, char** argv) {
  std::string out;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain =
        !word.empty() &&
        word.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%") ==
            std::string::npos;
    out += cat(i ? " " : "", plain ? word : "'" + word + "'");
  }
  return out;
}

int dispatch(int argc, char** argv) {
  CLI::App app(
      "hone takes a model and returns one verified plan that runs it as fast as the best known way "
      "on this machine.",
      "hone");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("hone ") + HONE_VERSION);
  app.footer(
      "Example: hone optimize model.onnx -o model.hone && hone run model.hone --input x.npy\n"
      "Exit codes: 0 done, 1 results differ, 2 command line, 3 model, file or machine, 4 defect of "
      "hone.\n");
  int code = exit_ok;

  OptimizeOptions optimize_options;
  CLI::App* sub = app.add_subcommand(
      "optimize", "read, compile with every strategy, verify, time side by side, write the plan");
  add_model_options(sub, optimize_options);
  sub->add_option("-o,--output", optimize_options.output, "plan to write (default: MODEL.hone)");
  sub->add_option("--strategies", optimize_options.strategies, "strategies to try")->delimiter(',');
  sub->add_option("--inputs", optimize_options.inputs, "directory of sample inputs (input_K.pb)");
  sub->add_option("--rounds", optimize_options.rounds, "interleaved timing rounds");
  sub->add_flag("--strip", optimize_options.strip, "leave the graph's text out of the plan");
  sub->add_option("--report", optimize_options.report,
                  "page (.html) that shows graph, kernels, memory, times and errors");
  sub->callback([&] {
    optimize_options.command = command_line(argc, argv);
    code = optimize(optimize_options);
  });

  RunOptions run_options;
  sub = app.add_subcommand("run", "run a model or plan once on given inputs");
  add_model_options(sub, run_options);
  add_strategy(sub, run_options);
  sub->add_option("-i,--input", run_options.inputs, "NAME=FILE or FILE (.npy, .pb, raw bytes)");
  sub->add_option("-o,--output-dir", run_options.output_dir, "where NAME.npy of each result goes");
  sub->add_option("--dump", run_options.dump, "inner values by ONNX name, as further results")
      ->delimiter(',');
  sub->add_flag("--time", run_options.print_times, "print what opening and running took");
  sub->callback([&] { code = run(run_options); });

  BenchOptions bench_options;
  sub = app.add_subcommand("bench", "time a model or plan");
  add_model_options(sub, bench_options);
  add_strategy(sub, bench_options);
  sub->add_option("-i,--input,--loadInputs", bench_options.inputs, "NAME=FILE or FILE");
  sub->add_option("--iterations", bench_options.iterations, "runs at least; 0: by duration");
  sub->add_option("--duration", bench_options.duration, "seconds at least");
  sub->add_option("--warmUp", bench_options.warm_up, "milliseconds before timing");
  sub->add_option("--exportTimes", bench_options.export_times, "write all times to this JSON file");
  sub->callback([&] { code = bench(bench_options); });

  ValidateOptions validate_options;
  sub = app.add_subcommand("validate", "run every test_data_set of a directory and compare");
  add_model_options(sub, validate_options);
  sub->add_option("--strategy", validate_options.strategies, "ref, cpu, onednn, auto; several")
      ->delimiter(',')
      ->check(CLI::IsMember({"ref", "cpu", "onednn", "auto"}));
  sub->add_option("--atol", validate_options.atol,
                  "absolute tolerance, relative to max |expected|");
  sub->add_option("--rtol", validate_options.rtol, "relative tolerance");
  sub->add_flag("--first-difference", validate_options.first_difference,
                "name the first node whose value differs from the reference");
  sub->callback([&] { code = validate(validate_options); });

  ExplainOptions explain_options;
  sub = app.add_subcommand("explain", "which kernel or library runs each part, and why");
  add_model_options(sub, explain_options);
  add_strategy(sub, explain_options);
  sub->add_flag("--steps", explain_options.steps, "also every step with its buffers");
  sub->add_flag("--candidates", explain_options.candidates, "also what was not chosen");
  sub->add_option("--report", explain_options.report,
                  "page (.html) about a plan: its steps timed now, and what it remembers");
  sub->add_option("-i,--input", explain_options.inputs, "with --report: NAME=FILE or FILE");
  sub->callback([&] {
    explain_options.command = command_line(argc, argv);
    code = explain(explain_options);
  });

  sub = app.add_subcommand("flags", "environment variables that hone reads");
  sub->callback([&] { code = flags(); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? exit_ok : exit_usage;
  }
  return code;
}

}  // namespace
}  // namespace hone::cli

int main(int argc, char** argv) {
  // libgomp's threads would otherwise spin after each library call and starve our pool.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  return hone::cli::guarded("hone", [&] { return hone::cli::dispatch(argc, argv); });
}
