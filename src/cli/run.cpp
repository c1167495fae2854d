#include "cli/run/run.h"

#include "cli/load.h"

namespace hone::cli {

int run(Words words) {
  ModelOptions options;
  RunRequest request;
  Arguments a("hone run", "Runs a model or a plan once on given inputs.");
  add_model(a, options);
  add_run(a, request);
  add_compiling(a, options);
  a.list("--dump", "NAME", "inner values by ONNX name, as further results; several with commas",
         options.import.dump, true);
  add_printing(a, options);
  a.example("hone run model.hone --input image=x.npy --output-dir out");
  a.example("hone run model.onnx -i x.npy --strategy ref --dump conv1,relu1");
  if (!a.parse(words)) return exit_ok;
  request.json = options.json;
  request.quiet = options.quiet;

  const auto start = std::chrono::steady_clock::now();
  const Loaded loaded = load(options, a);
  // What does not fit is found before the model is compiled.
  if (!loaded.file.is_plan()) read_inputs(request.inputs, loaded.params);
  const std::unique_ptr<Runner> runner = open_runner(loaded, options, options.strategy);
  return run_once(*runner, request, std::chrono::steady_clock::now() - start);
}

}  // namespace hone::cli
