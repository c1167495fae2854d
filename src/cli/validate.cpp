#include <cstdio>

#include "backend/backend.h"
#include "base/amount.h"
#include "cli/load.h"
#include "cli/run/table.h"
#include "compile/blame.h"
#include "optimize/expected.h"
#include "ref/compare.h"
#include "verify/model/step_edge.h"
#include "verify/sizes.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

void show_first_difference(const Loaded& loaded, const ModelOptions& options,
                           const std::string& strategy, const fs::path& set) {
  CompileOptions compiled = compile_options(options);
  compiled.strategy = strategy;
  std::optional<Difference> d = first_difference(loaded.source, compiled, read_set(set, "input"));
  if (!d) return warn(options, "no node differs from the reference beyond its rounding");
  std::fprintf(stderr, "first difference: %s: %s\n", d->where.c_str(), cat(d->comparison).c_str());
}

struct Set {
  fs::path path;
  std::vector<Array> inputs, outputs;
};

// All sets beside the model, read before anything is compiled.
std::vector<Set> read_sets(const fs::path& directory) {
  std::vector<Set> out;
  for (const fs::path& path : data_sets(directory))
    out.push_back({path, read_set(path, "input"), read_set(path, "output")});
  if (out.empty())
    throw UserError(directory.empty() ? "." : directory.string(),
                    ": contains no test_data_set_0 to validate against, expected one with "
                    "input_K.pb and output_K.pb");
  for (const Set& s : out)
    if (s.outputs.empty())
      throw UserError(s.path.string(), ": contains no output_0.pb to compare with");
  return out;
}

// If rounding decides a step, such as the next quantized number, another program's result is also
// right. Not for plans, of which only the code is known.
bool differs_by_a_step(const Loaded& loaded, const Set& set, std::size_t result, const Array& got,
                       const Tolerance& tolerance) {
  const Array& expected = set.outputs[result];
  const Tolerance t = tolerance.of(expected.dtype());
  for (const SourceVariant& v : loaded.source.variants) {
    const Sizing sizes = sizes_of(v, set.inputs);
    if (guards_hold(v.guards, sizes))
      return hone::differs_by_a_step(v.function, sizes, set.inputs, result, got, expected, t.atol,
                                     t.rtol);
  }
  return false;
}

}  // namespace

int validate(Words words) {
  ModelOptions options;
  std::vector<std::string> strategies = {"auto"};
  Tolerance tolerance;
  std::string data;
  bool first = false;
  Arguments a("hone validate",
              "Runs every test_data_set_K next to a model and compares the outputs.");
  add_model(a, options);
  a.text("--data", "DIR", "where the sets are (default: beside the model)", data);
  a.real("--atol", "X",
         "absolute tolerance, times the largest |expected| (default: 1e-4, f16 2e-3)",
         tolerance.atol);
  a.real("--rtol", "X", "relative tolerance (default: 1e-3, f16 1e-2)", tolerance.rtol);
  a.flag("--first-difference", "name the first node that differs from the reference", first);
  add_compiling(a, options, false, Targets::here);
  a.choices("--strategy,--strategies", hone::strategies(),
            alternatives(hone::strategies()) + " (default); several with commas", strategies);
  add_printing(a, options);
  a.example(cat("hone validate models/resnet --strategy ref,", default_backend().name, ",auto"));
  if (!a.parse(words)) return exit_ok;

  const Loaded loaded = load(options, a);
  const std::vector<Set> sets =
      read_sets(data.empty() ? loaded.file.path.parent_path() : fs::path(data));
  if (loaded.file.is_plan()) strategies = {"plan"};
  bool all_ok = true;
  Json report = Json::Array{};
  Table table({"strategy", "set", "output", "type", "max error", "result"});
  for (const std::string& strategy : strategies) {
    const std::unique_ptr<Runner> runner = open_runner(loaded, options, strategy);
    for (const Set& set : sets) {
      const std::string name = set.path.filename().string();
      const std::vector<Array> got = runner->run(set.inputs);
      if (got.size() != set.outputs.size())
        throw UserError(set.path.string(), ": contains ",
                        amount(set.outputs.size(), "output", "outputs"), ", expected ", got.size());
      bool set_ok = true;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Comparison c = compare_expected(got[i], set.outputs[i], tolerance);
        const bool is_step = !c.ok && differs_by_a_step(loaded, set, i, got[i], tolerance);
        set_ok = set_ok && (c.ok || is_step);
        table.add({strategy, name, runner->results()[i].name, cat(got[i].type()),
                   small_number(c.max_abs_error),
                   c.ok      ? "ok"
                   : is_step ? "ok: rounding decides a step, such as a quantized number"
                             : cat("DIFFERS: ", c)});
        report.push(Json::Object{{"strategy", strategy},
                                 {"set", name},
                                 {"output", runner->results()[i].name},
                                 {"ok", c.ok || is_step},
                                 {"rounding_decides_a_step", is_step},
                                 {"max_abs_error", c.max_abs_error}});
      }
      all_ok = all_ok && set_ok;
      if (!set_ok && first && strategy != "ref" && !loaded.file.is_plan())
        show_first_difference(loaded, options, strategy, set.path);
    }
  }
  std::printf("%s", options.json ? (report.text(2) + "\n").c_str() : table.text().c_str());
  return all_ok ? exit_ok : exit_differs;
}

}  // namespace hone::cli
