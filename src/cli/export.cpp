#include "export/onnx/export.h"

#include <algorithm>
#include <cstdio>

#include "api/compiler.h"
#include "base/json.h"
#include "cli/load.h"
#include "pass/map_sizes.h"
#include "plan/plan_file.h"
#include "verify/sizes.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

// The sizes that --dim fixes; a plan, which is compiled for ranges, supports nothing else.
Sizing fixed_sizes(const ImportOptions& options) {
  Sizing out;
  for (const auto& [name, range] : options.dims) {
    if (range.low != range.high)
      throw UsageError(
          cat("--dim ", name,
              ": a size of a plan can be fixed but not given another range; give NAME=SIZE"));
    out[name] = range.low;
  }
  return out;
}

bool is_known(const std::vector<Guard>& guards, const Sizing& sizes) {
  return std::ranges::all_of(guards, [&](const Guard& g) {
    for (const Dim* d : {&g.a, &g.b})
      for (const Dim& s : d->symbols())
        if (!sizes.contains(s.name())) return false;
    return true;
  });
}

// With the sizes fixed. Throws UserError when the function has no such size.
Function with_sizes(const Function& f, const Sizing& sizes) {
  SizeMap map;
  const Dims symbols = f.symbols();
  for (const auto& [name, n] : sizes) {
    const auto at = std::ranges::find(symbols, name, &Dim::name);
    if (at == symbols.end())
      throw UserError("--dim ", name,
                      ": the plan has no such size; list its inputs with `hone inspect`");
    if (n < at->low() || n > at->high())
      throw UserError("--dim ", name, "=", n, ": is out of range, expected ", at->low(), " to ",
                      at->high());
    map.symbols.emplace(name, Dim(n));
  }
  return map.symbols.empty() ? f : map_sizes(f, map);
}

// ONNX cannot express several functions that are chosen by sizes.
Function function_of(const Source& source, const Sizing& sizes, const std::string& path) {
  if (source.variants.size() == 1) return with_sizes(source.variants[0].function, sizes);
  std::string open;
  for (const Dim& s : source.variants[0].function.symbols())
    if (!sizes.contains(s.name())) open += cat(" --dim ", s, "=SIZE");
  for (const SourceVariant& v : source.variants)
    if (!is_known(v.guards, sizes))
      throw UserError(path, ": has ", source.variants.size(),
                      " functions for different sizes, but ONNX can store only one; choose it with",
                      open);
  for (const SourceVariant& v : source.variants)
    if (guards_hold(v.guards, sizes)) return with_sizes(v.function, sizes);
  throw UserError(path, ": does not support these sizes");
}

std::int64_t bytes_of_file(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
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
  a.bytes("--inside", "write larger weights to FILE.data (default: 1Mi; 0: none)", inside);
  add_sizes(a, options.import);
  add_batch(a, options.batch);
  add_weights(a, options);
  add_links(a, options.import);
  add_printing(a, options);
  a.example("hone export model.hone -o model.onnx");
  if (!a.parse(words)) return exit_ok;
  if (output.empty()) output = "exported.onnx";
  check_writable(output, "--output");
  options.import.has_broadcast_variants = false;  // a file holds one function
  const Loaded loaded = load(options, a);
  if (loaded.file.is_plan() && options.batch > 0)
    throw UsageError("--batch: a plan has its rows already; give the model, or a size with --dim");
  const OutputFile outputs[] = {{"--output", output}, {"--output", external_data_of(output)}};
  check_outputs(outputs, loaded.file.path);
  const std::string path = loaded.file.path.string();
  const Function f = loaded.file.is_plan() ? function_of(source(plan_in(loaded, options)),
                                                         fixed_sizes(options.import), path)
                                           : function_of(loaded.source, {}, path);
  try {
    export_onnx(f, output, {.external_above = inside});
  } catch (const UserError& e) {
    throw UserError(path, ": ", e.what());
  }
  const std::string data = external_data_of(output).string();
  if (options.json)
    std::printf("%s\n", Json(Json::Object{{"file", output},
                                          {"bytes", bytes_of_file(output)},
                                          {"data", fs::exists(data) ? data : ""}})
                            .text(2)
                            .c_str());
  else if (!options.quiet)
    std::printf("%s\n", output.c_str());
  return exit_ok;
}

}  // namespace hone::cli
