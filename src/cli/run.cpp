#include "cli/run/run.h"

#include <cstdio>

#include "cli/load.h"
#include "cli/run/exit.h"
#include "compile/blame.h"

namespace hone::cli {

namespace {

// The exit code tells whether one was found.
int run_first_difference(const ModelOptions& options, const RunRequest& request,
                         const Arguments& a) {
  if (options.strategy == "ref")
    throw UsageError("--first-difference: strategy ref is the reference; give another --strategy");
  const Loaded loaded = load_model(options, a, request.inputs);
  const std::optional<Difference> d = first_difference(loaded.source, compile_options(options),
                                                       read_inputs(request.inputs, loaded.params));
  const std::string text =
      d ? cat("first difference: ", d->where, ": ", d->comparison)
        : std::string("no node differs from the reference beyond its rounding");
  const Json json = d ? Json::Object{{"differs", true},
                                     {"where", d->where},
                                     {"max_abs_error", d->comparison.max_abs_error},
                                     {"limit", d->comparison.limit}}
                      : Json::Object{{"differs", false}};
  std::printf("%s\n", options.json ? json.text(2).c_str() : text.c_str());
  return d ? exit_differs : exit_ok;
}

}  // namespace

int run(Words words) {
  ModelOptions options;
  RunRequest request;
  Arguments a("hone run", "Runs a model or a plan once on given inputs.");
  add_model(a, options);
  add_run(a, request);
  add_compiling(a, options, true, Targets::here);
  a.list("--dump", "NAME", "also return inner values, by ONNX name; several with commas",
         options.import.dump, true);
  bool looks_for_difference = false;
  a.flag("--first-difference", "only name the first node that differs from the reference",
         looks_for_difference);
  add_printing(a, options);
  a.example("hone run model.hone --input image=x.npy --output-dir out");
  a.example("hone run model.onnx -i x.npy --strategy ref --dump conv1,relu1");
  if (!a.parse(words)) return exit_ok;
  request.json = options.json;
  request.quiet = options.quiet;
  options.keeps_states = true;
  options.state = request.state;
  if (looks_for_difference) return run_first_difference(options, request, a);

  const auto start = std::chrono::steady_clock::now();
  const Loaded loaded = load(options, a, request.inputs);
  // Finds missing inputs before the model is compiled.
  if (request.inputs.empty() && !loaded.file.is_plan()) read_inputs({}, loaded.params);
  const std::unique_ptr<Runner> runner = open_runner(loaded, options, options.strategy);
  return run_once(*runner, request, std::chrono::steady_clock::now() - start);
}

}  // namespace hone::cli
