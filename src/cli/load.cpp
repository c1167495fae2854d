#include "cli/load.h"

#include <charconv>
#include <chrono>
#include <cstdio>

#include "api/hone.h"
#include "base/flags.h"
#include "compile/sample.h"
#include "import/import.h"
#include "plan/plan_file.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

std::int64_t whole_number(std::string_view text, std::string_view where) {
  std::int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0)
    throw UserError(where, ": '", text, "' is not a size");
  return n;
}

// "n=4" or "n=1..64".
void add_dim(const std::string& spec, ImportOptions& options) {
  std::size_t at = spec.find('=');
  if (at == std::string::npos || at == 0)
    throw UserError("--dim ", spec, ": expected NAME=SIZE or NAME=LOW..HIGH");
  std::string_view range = std::string_view(spec).substr(at + 1);
  std::size_t dots = range.find("..");
  ImportOptions::Range r;
  r.low = whole_number(range.substr(0, dots), "--dim " + spec);
  r.high = dots == std::string_view::npos ? r.low
                                          : whole_number(range.substr(dots + 2), "--dim " + spec);
  options.dims[spec.substr(0, at)] = r;
}

// "input:1x3x224x224,other:2x2": sizes of unnamed axes; named ones are set by --dim.
void add_shapes(const std::string& spec, ImportOptions& options) {
  for (std::size_t start = 0; start < spec.size();) {
    std::size_t end = std::min(spec.find(',', start), spec.size());
    std::string part = spec.substr(start, end - start);
    start = end + 1;
    std::size_t colon = part.rfind(':');
    if (colon == std::string::npos) throw UserError("--shapes ", part, ": expected NAME:SIZExSIZE");
    std::string name = part.substr(0, colon);
    int axis = 0;
    for (std::size_t from = colon + 1; from <= part.size(); ++axis) {
      std::size_t to = std::min(part.find('x', from), part.size());
      std::int64_t n =
          whole_number(std::string_view(part).substr(from, to - from), "--shapes " + part);
      options.shapes[name].push_back(n);
      from = to + 1;
    }
  }
}

class RefRunner final : public Runner {
 public:
  explicit RefRunner(Source source) : source_(std::move(source)) {
    const Function& f = source_.variants[0].function;
    for (const Function::Param& p : f.params()) params_.push_back({p.name, p.value.type(), false});
    for (const Function::Result& r : f.results())
      results_.push_back({r.name, r.value.type(), false});
  }

  std::vector<Array> run(std::span<const Array> inputs) override {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : inputs) dims.push_back(a.dims());
    for (const SourceVariant& v : source_.variants)
      if (guards_hold(v.guards, bind_sizes(v.function, dims))) return evaluate(v.function, inputs);
    throw UserError(source_.name, ": no variant serves these sizes");
  }
  const std::vector<PlanParam>& params() const override { return params_; }
  const std::vector<PlanParam>& results() const override { return results_; }

 private:
  Source source_;
  std::vector<PlanParam> params_, results_;
};

PlanLimits limits(const ModelOptions& options) { return {options.threads, options.max_memory}; }

}  // namespace

fs::path model_path(const ModelOptions& options) {
  fs::path path = options.model;
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"model.onnx", "model.hone"})
    if (fs::exists(path / name)) return path / name;
  throw UserError(options.model, ": the directory holds neither model.onnx nor model.hone");
}

bool is_plan(const fs::path& path) { return path.extension() == ".hone"; }

Loaded load_source(const ModelOptions& options, const std::vector<std::string>& dump) {
  auto start = std::chrono::steady_clock::now();
  fs::path path = model_path(options);
  if (is_plan(path))
    throw UserError(path.string(), ": is a plan; this command needs the model it was made from");
  ImportOptions import;
  for (const std::string& spec : options.dims) add_dim(spec, import);
  if (!options.shapes.empty()) add_shapes(options.shapes, import);
  import.dump = dump;
  Imported imported = import_onnx(path, import);
  Loaded out;
  out.warnings = imported.warnings;
  out.source = hone::source(imported);
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  out.import_ms = took.count();
  constexpr std::size_t most = 160;  // conditions on sizes can be long
  for (std::string w : out.warnings) {
    if (w.size() > most && flag_number("HONE_DEBUG") == 0)
      w = w.substr(0, most) + "... (all of it with HONE_DEBUG=1)";
    tell(options, "warning: " + w);
  }
  return out;
}

CompileOptions compile_options(const ModelOptions& options) {
  CompileOptions out;
  out.strategy = options.strategy;
  if (!options.targets.empty()) out.targets = options.targets;
  out.verification = options.verify == "none"    ? Verification::none
                     : options.verify == "model" ? Verification::model
                                                 : Verification::kernels;
  out.threads = options.threads;
  out.cache = !options.no_cache;
  out.one_op_groups = options.one_op_groups;
  out.passes.off = options.passes_off;
  if (options.max_memory > 0) out.max_memory = options.max_memory;
  return out;
}

std::unique_ptr<Runner> open_runner(const ModelOptions& options, const std::string& strategy,
                                    const std::vector<std::string>& dump, CompileReport* report) {
  fs::path path = model_path(options);
  if (is_plan(path)) {
    if (strategy == "ref" || !dump.empty())
      throw UserError(path.string(), ": is a plan; --strategy ref and --dump need the model");
    return plan_runner(std::make_shared<const Plan>(read_plan(path)), limits(options));
  }
  Loaded loaded = load_source(options, dump);
  if (strategy == "ref") return std::make_unique<RefRunner>(std::move(loaded.source));
  for (const fs::path& set : data_sets(path.parent_path()))
    loaded.source.samples.push_back(read_set(set, "input"));
  CompileOptions compiled = compile_options(options);
  compiled.strategy = strategy;
  compiled.keep = report != nullptr;
  return plan_runner(std::make_shared<const Plan>(compile(loaded.source, compiled, report)),
                     limits(options));
}

std::vector<Array> inputs_or_samples(const std::vector<std::string>& given,
                                     const ModelOptions& options, const Runner& runner) {
  if (!given.empty()) return read_inputs(given, runner.params());
  std::vector<fs::path> sets = data_sets(model_path(options).parent_path());
  if (!sets.empty()) return read_set(sets[0], "input");
  std::vector<Type> types;
  for (const PlanParam& p : runner.params()) types.push_back(p.type);
  std::vector<Guard> guards =
      runner.plan() ? runner.plan()->variants[0].guards : std::vector<Guard>();
  std::optional<Sizes> sizes = sample_sizes(types, guards);
  if (!sizes) throw UserError(options.model, ": no sizes fit the plan; give inputs with --input");
  std::vector<Array> out;
  for (std::size_t i = 0; i < types.size(); ++i)
    out.push_back(sample_array(types[i], *sizes, Fill::random, i + 1));
  return out;
}

void tell(const ModelOptions& options, const std::string& line) {
  if (!options.quiet && !options.json) std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace hone::cli
