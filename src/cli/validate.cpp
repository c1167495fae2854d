#include <cmath>
#include <cstdio>

#include "cli/load.h"
#include "cli/run/table.h"
#include "compile/difference.h"
#include "ref/compare.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

double largest(const Array& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (std::isfinite(a.real(i))) most = std::max(most, std::fabs(a.real(i)));
  return most;
}

// |got - expected| <= atol max|expected| + rtol |expected|.
Comparison compare(const Array& got, const Array& expected, const ValidateOptions& options) {
  const bool narrow = expected.dtype() == DType::f16 || expected.dtype() == DType::bf16;
  const double atol = options.atol >= 0 ? options.atol : narrow ? 2e-3 : 1e-4;
  const double rtol = options.rtol >= 0 ? options.rtol : narrow ? 1e-2 : 1e-3;
  return within(got, expected, atol * largest(expected), rtol);
}

void show_first_difference(const ValidateOptions& options, const std::string& strategy,
                           const fs::path& set) {
  Loaded loaded = load_source(options);
  CompileOptions compiled = compile_options(options);
  compiled.strategy = strategy;
  std::optional<Difference> d = first_difference(loaded.source, compiled, read_set(set, "input"));
  if (!d) return tell(options, "no node differs from the reference beyond its rounding");
  std::printf("first difference: %s: %s\n", d->where.c_str(), cat(d->comparison).c_str());
}

}  // namespace

int validate(const ValidateOptions& options) {
  const fs::path path = model_path(options);
  const std::vector<fs::path> sets = data_sets(path.parent_path());
  if (sets.empty())
    throw UserError(path.parent_path().string(),
                    ": holds no test_data_set_0 with input_0.pb and "
                    "output_0.pb to validate against");
  bool all_ok = true;
  Json report = Json::Array{};
  Table table({"strategy", "set", "output", "type", "max error", "result"});
  for (const std::string& strategy : options.strategies) {
    std::unique_ptr<Runner> runner = open_runner(options, strategy);
    for (const fs::path& set : sets) {
      std::vector<Array> expected = read_set(set, "output");
      std::vector<Array> got = runner->run(read_set(set, "input"));
      if (got.size() != expected.size())
        throw UserError(set.string(), ": holds ", expected.size(), " outputs, the model has ",
                        got.size());
      bool set_ok = true;
      for (std::size_t i = 0; i < got.size(); ++i) {
        Comparison c = compare(got[i], expected[i], options);
        set_ok = set_ok && c.ok;
        std::string result = c.ok ? "ok" : cat("DIFFERS: ", c);
        table.add({strategy, set.filename().string(), runner->results()[i].name, cat(got[i].type()),
                   small_number(c.max_abs_error), result});
        report.push(Json::Object{{"strategy", strategy},
                                 {"set", set.filename().string()},
                                 {"output", runner->results()[i].name},
                                 {"ok", c.ok},
                                 {"max_abs_error", c.max_abs_error}});
      }
      all_ok = all_ok && set_ok;
      if (!set_ok && options.first_difference && strategy != "ref")
        show_first_difference(options, strategy, set);
    }
  }
  std::printf("%s", options.json ? (report.text(2) + "\n").c_str() : table.text().c_str());
  return all_ok ? exit_ok : exit_differs;
}

}  // namespace hone::cli
