#include "export/onnx/export.h"

#include <cstdio>

#include "base/json.h"
#include "cli/load.h"
#include "ops/ops.h"
#include "plan/plan_file.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

// The function of a model for all its sizes; of a plan, the graph that it was made from.
Function function_of(const Loaded& loaded) {
  const std::string path = loaded.file.path.string();
  if (loaded.file.is_plan()) {
    const Plan plan = read_plan(loaded.file.path);
    if (plan.graph.empty())
      throw UserError(path, ": was written without its graph; export the model it was made from");
    return parse(plan.graph, find_op, plan.graph_arrays);
  }
  if (loaded.source.variants.size() > 1)
    throw UserError(path, ": is ", loaded.source.variants.size(),
                    " functions, one for each kind of sizes; choose sizes with --dim");
  return loaded.source.variants[0].function;
}

}  // namespace

int export_model(Words words) {
  ModelOptions options;
  std::string output;
  std::int64_t inside = OnnxExportOptions().external_above;
  Arguments a("hone export",
              "Writes a model, or the graph that a plan keeps, as ONNX of opset 21.");
  add_model(a, options);
  a.text("-o,--output", "FILE", "the ONNX file to write (default: exported.onnx)", output);
  a.number("--inside", "BYTES",
           "larger weights go to FILE.data (default: 1048576; 0: none of them do)", inside);
  add_sizes(a, options.import);
  add_printing(a, options);
  a.example("hone export model.hone -o model.onnx");
  if (!a.parse(words)) return exit_ok;
  if (output.empty()) output = "exported.onnx";
  check_writable(output, "--output");
  const Loaded loaded = load(options, a);
  if (fs::exists(output) && fs::equivalent(output, loaded.file.path))
    throw UserError("--output ", output, ": is the model itself; give another place");
  const Function f = function_of(loaded);
  try {
    export_onnx(f, output, {.external_above = inside});
  } catch (const UserError& e) {
    throw UserError(loaded.file.path.string(), ": ", e.what());
  }
  const std::string data = output + ".data";
  if (options.json)
    std::printf("%s\n", Json(Json::Object{{"file", output},
                                          {"bytes", fs::file_size(output)},
                                          {"data", fs::exists(data) ? data : ""}})
                            .text(2)
                            .c_str());
  else if (!options.quiet)
    std::printf("%s\n", output.c_str());
  return exit_ok;
}

}  // namespace hone::cli
