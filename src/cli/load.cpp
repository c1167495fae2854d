#include "cli/load.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "api/compiler.h"
#include "backend/backend.h"
#include "base/terminal.h"
#include "cli/run/table.h"
#include "import/tensor_file.h"
#include "optimize/batch.h"
#include "optimize/fit.h"
#include "plan/entry.h"
#include "plan/plan_file.h"
#include "verify/model/made_inputs.h"
#include "verify/sizes.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

// One size in `spec`, which has the form `expected`.
std::int64_t size(std::string_view text, std::string_view spec, std::string_view expected) {
  std::int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc::result_out_of_range)
    throw UsageError(cat("got '", spec, "', expected sizes below 2^63"));
  if (error != std::errc() || end != text.data() + text.size() || n < 0)
    throw UsageError(cat("got '", spec, "', expected ", expected, " with non-negative integers"));
  return n;
}

// "n=4" or "n=1..64".
void add_dim(const std::string& spec, ImportOptions& options) {
  constexpr std::string_view form = "NAME=SIZE or NAME=LOW..HIGH";
  const std::size_t at = spec.find('=');
  if (at == std::string::npos || at == 0)
    throw UsageError(cat("got '", spec, "', expected ", form));
  const std::string_view range = std::string_view(spec).substr(at + 1);
  const std::size_t dots = range.find("..");
  ImportOptions::Range r;
  r.low = size(range.substr(0, dots), spec, form);
  r.high = dots == std::string_view::npos ? r.low : size(range.substr(dots + 2), spec, form);
  if (r.low > r.high)
    throw UsageError(cat("got '", spec, "', expected LOW..HIGH with LOW <= HIGH"));
  if (!options.dims.emplace(spec.substr(0, at), r).second)
    throw UsageError(cat("'", spec.substr(0, at), "' is given twice; give it once"));
}

// The parts between separators; an empty string gives one empty part.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t at; (at = text.find(separator)) != text.npos; text.remove_prefix(at + 1))
    out.push_back(text.substr(0, at));
  out.push_back(text);
  return out;
}

// "input:1x3x224x224,other:2x2": sizes of whole inputs. "scalar:" has none.
void add_shapes(std::string_view specs, ImportOptions& options) {
  constexpr std::string_view form = "NAME:SIZExSIZE, as in image:1x3x224x224,";
  for (const std::string_view part : parts_of(specs, ',')) {
    const std::size_t colon = part.rfind(':');
    if (colon == part.npos || colon == 0)
      throw UsageError(cat("got '", part, "', expected ", form, " with non-negative integers"));
    const auto [at, is_new] = options.shapes.try_emplace(std::string(part.substr(0, colon)));
    if (!is_new) throw UsageError(cat("'", at->first, "' is given twice; give it once"));
    const std::string_view sizes = part.substr(colon + 1);
    if (sizes.empty()) continue;
    for (const std::string_view one : parts_of(sizes, 'x'))
      at->second.push_back(size(one, part, form));
  }
}

class RefRunner final : public Runner {
 public:
  explicit RefRunner(const Source& source) : source_(source) {
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
    throw UserError(source_.name, ": no variant of the model supports these sizes");
  }
  const std::vector<PlanParam>& params() const override { return params_; }
  const std::vector<PlanParam>& results() const override { return results_; }

 private:
  Source source_;
  std::vector<PlanParam> params_, results_;
};

// Warnings that hold for some sizes only list conditions and can fill a page: they are counted, in
// one line.
void warn_all(const Printing& printing, const std::vector<std::string>& warnings) {
  std::size_t about_sizes = 0;
  for (const std::string& w : warnings) {
    if (!printing.verbose && w.starts_with(warning_about_sizes))
      ++about_sizes;
    else
      warn(printing, "warning: " + w);
  }
  if (about_sizes > 0)
    warn(printing, cat("warning: for some input sizes a branch of this model cannot run, and a run "
                       "that takes it fails (--verbose prints ",
                       about_sizes == 1 ? "the condition" : cat(about_sizes, " conditions"), ")"));
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> out;
  for (const Pass& p : pipeline())
    if (!p.is_needed) out.push_back(p.name);
  return out;
}

bool is_usable(const Backend& b, std::string_view target, Targets usable) {
  return usable == Targets::all ||
         (runs_here(b, target) &&
          (usable == Targets::here || open_device(b.name)->shares_host_memory()));
}

std::vector<std::string_view> target_names(Targets usable) {
  std::vector<std::string_view> out;
  for (const Backend* b : backends())
    for (const std::string_view t : b->target_names)
      if (std::ranges::count(out, t) == 0 && is_usable(*b, t, usable)) out.push_back(t);
  return out;
}

// The default one or the first that has them all.
const Backend& backend_with_targets(const std::vector<std::string>& targets) {
  const auto has_all = [&](const Backend& b) {
    return std::ranges::all_of(
        targets, [&](const std::string& t) { return std::ranges::count(b.target_names, t) > 0; });
  };
  if (has_all(default_backend())) return default_backend();
  for (const Backend* b : backends())
    if (has_all(*b)) return *b;
  throw UserError(
      "--target: ", alternatives(std::vector<std::string_view>(targets.begin(), targets.end())),
      ": the targets belong to different backends; make a plan for each");
}

void check_targets(const ModelOptions& o) {
  if (o.targets.empty()) return;
  const Backend& b = backend_with_targets(o.targets);
  if (o.has_strategy && o.strategy != "auto" && o.strategy != b.name &&
      std::ranges::count(b.libraries, o.strategy) == 0)
    throw UsageError(cat("--strategy ", o.strategy, ": --target names targets of backend ", b.name,
                         "; omit one of the two options, or give --strategy ", b.name));
  for (const std::string& t : o.targets) {
    if (is_usable(b, t, o.usable)) continue;
    const std::string given = alternatives(target_names(o.usable));
    throw UsageError(
        o.usable == Targets::host
            ? cat("--target ", t, ": C is written for this processor; give ", given)
            : cat("--target ", t, ": this machine does not run it; give ", given,
                  ", or write a plan for another machine with `hone optimize --target ", t, "`"));
  }
}

}  // namespace

std::vector<std::string> foreign_targets(const ModelOptions& o) {
  std::vector<std::string> out;
  for (const std::string& t : o.targets)
    if (!runs_here(backend_with_targets(o.targets), t)) out.push_back(t);
  return out;
}

void add_model(Arguments& a, ModelOptions& o) {
  a.positional("MODEL", "model.onnx, a plan (.hone), or a directory that holds one", o.model);
  a.text("--entry", "NAME", "the function to use, for a plan that has several", o.entry);
}

void add_links(Arguments& a, ImportOptions& o) {
  a.flag("--allow-links", "allow external data files that are symbolic or hard links",
         o.allow_links);
}

void add_sizes(Arguments& a, ImportOptions& o) {
  a.parsed("--dim", "NAME=SIZE",
           "a named size of the inputs, or its range, NAME=LOW..HIGH; repeatable",
           [&o](const std::string& s) { add_dim(s, o); });
  a.parsed("--shapes", "NAME:SIZES", "sizes of inputs: image:1x3x224x224,other:2x2",
           [&o](const std::string& s) { add_shapes(s, o); });
}

void add_weights(Arguments& a, ModelOptions& o) {
  a.text("--weights", "FILE",
         "weights by name, from safetensors, GGUF or .npz: initializers or inputs", o.weights);
}

void add_source(Arguments& a, ModelOptions& o) {
  a.positional("MODEL", "model.onnx, or a directory that holds it", o.model);
}

void add_batch(Arguments& a, std::int64_t& batch) {
  a.number("--batch", "N", "rows of the inputs, also where the model has another fixed number",
           batch, 1);
}

void add_budget(Arguments& a, double& seconds) {
  a.real("--budget", "SECONDS",
         cat("time for comparing candidates and strategies (default: ", seconds, ")"), seconds);
}

void add_compiling(Arguments& a, ModelOptions& o, bool with_strategy, Targets usable) {
  a.heading("");
  a.number("--threads", "N", "threads to use (default: 0, as many as the machine offers)",
           o.threads, 0, most_threads);
  a.bytes("--max-memory", "fail if more memory is needed: 500M, 2Gi, ... (default: 80 % of memory)",
          o.max_memory);
  add_deadline(a, o.deadline);
  a.heading(std::string(compiling));
  // Includes backends without a device here: compiling reports what they lack.
  std::vector<std::string_view> known = strategies();
  for (const Backend* b : backends())
    if (std::ranges::count(known, b->name) == 0) known.push_back(b->name);
  o.has_strategy = with_strategy;
  if (with_strategy)
    a.choice("--strategy", known, alternatives(strategies()) + " (default)", o.strategy);
  // Others are accepted here and refused by load(), which says why.
  o.usable = usable;
  const std::vector<std::string_view> shown = target_names(usable);
  a.choices("--target", target_names(Targets::all),
            alternatives(shown) + ", several with commas (default: " + std::string(shown[0]) + ")",
            o.targets);
  std::vector<std::string_view> kinds;
  for (const Backend* b : backends()) kinds.push_back(b->name);
  a.choices("--devices", kinds,
            cat("for multi: devices that each compute a part, such as ", kinds[0], ",", kinds[0]),
            o.devices, true);
  add_sizes(a, o.import);
  add_batch(a, o.batch);
  add_weights(a, o);
  add_links(a, o.import);
  a.choice("--verify", {"none", "kernels", "model"},
           "none, kernels (each kernel once) or model (the whole function)", o.verify);
  a.choice("--precision", {precision_names().begin(), precision_names().end()},
           cat(alternatives(precision_names()), " for the whole model (default: its own types)"),
           o.precision);
  a.choices("--passes-off", pass_names(), "passes to leave out", o.passes_off);
  a.flag("--one-op-groups", "no fusion: each operation alone", o.one_op_groups);
  a.flag("--no-cache", "neither read nor write the compile cache", o.no_cache);
}

namespace {

std::optional<Array> tensor_of(const fs::path& file) {
  if (file.extension() == ".npy") return read_npy(file);
  if (file.extension() == ".pb") return read_tensor_pb(file);
  return std::nullopt;
}

// `specs`: --input as typed. The sets are those beside the model.
KnownInputs known_inputs(const std::vector<std::string>& specs, const fs::path& directory) {
  KnownInputs out;
  for (const fs::path& set : data_sets(directory)) out.sets.push_back(read_set(set, "input"));
  if (specs.empty()) return out;
  for (const std::string& spec : specs)
    if (const std::size_t at = spec.find('='); at != spec.npos)
      out.named.push_back(
          {spec.substr(0, at), [file = spec.substr(at + 1)] { return tensor_of(file); }});
  out.last = [specs](std::span<const PlanParam> params) { return read_inputs(specs, params); };
  return out;
}

void fit_batch(const ModelOptions& options, FittedImport& fitted, Loaded& out) {
  if (open_batch(fitted.imported, options.batch, fitted.options)) {
    fitted.imported = import_onnx(out.file.path, fitted.options);
    return;
  }
  out.as_read = hone::source(fitted.imported);
  for (std::string& note : set_batch(fitted.imported, options.batch))
    fitted.notes.push_back(std::move(note));
}

}  // namespace

Loaded load(const ModelOptions& options, const Arguments& args,
            const std::vector<std::string>& inputs) {
  const auto start = std::chrono::steady_clock::now();
  check_targets(options);
  Loaded out;
  out.file = model_file(options.model);
  const std::string path = out.file.path.string();
  if (out.file.has_only_tensors())
    throw UserError(path,
                    ": contains tensors but no graph; give the model that they belong to, or list "
                    "them with `hone inspect`");
  if (out.file.is_plan()) {
    if (const std::string given = args.given_below(compiling); !given.empty())
      throw UsageError(
          cat(given, ": ", path,
              " is a plan, which is already compiled; give the model that it was made from"));
    return out;
  }
  if (!options.entry.empty())
    throw UsageError(
        cat("--entry: applies to plans; ", path, " is a model, which has one function"));
  if (options.has_strategy && options.strategy != "multi" && !options.devices.empty())
    throw UsageError("--devices: applies to the strategy multi only; give --strategy multi");
  ImportOptions given = options.import;
  if (!options.weights.empty()) given.weights = read_weights(options.weights);
  KnownInputs known = known_inputs(inputs, out.file.path.parent_path());
  if (options.batch > 0) known = {};  // of other sizes than the model says
  FittedImport fitted = import_fitting(out.file.path, given, known);
  if (options.batch > 0) fit_batch(options, fitted, out);
  out.import = std::move(fitted.options);
  const Imported& imported = fitted.imported;
  out.contradictions = imported.contradictions;
  for (const std::string& note : fitted.notes) warn(options, note);
  out.warnings = imported.warnings;
  out.warnings.insert(out.warnings.end(), out.contradictions.begin(), out.contradictions.end());
  warn_all(options, out.warnings);
  out.source = hone::source(imported);
  for (const Function::Param& p : out.source.variants[0].function.params())
    out.params.push_back({p.name, p.value.type(), false});
  out.source.samples = std::move(known.sets);
  if (!inputs.empty())  // first: the sizes to compile for
    out.source.samples.insert(out.source.samples.begin(), read_inputs(inputs, out.params));
  if (!options.precision.empty()) {
    out.given = out.source;
    out.source = at_precision(*out.given, precision_named(options.precision));
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  out.import_ms = took.count();
  return out;
}

Loaded load_model(const ModelOptions& options, const Arguments& args,
                  const std::vector<std::string>& inputs) {
  Loaded out = load(options, args, inputs);
  if (out.file.is_plan())
    throw UserError(out.file.path.string(),
                    ": is a plan; this command needs the model that it was made from");
  return out;
}

CompileOptions compile_options(const ModelOptions& options) {
  CompileOptions out;
  out.strategy = options.strategy;
  out.devices = options.devices;
  if (!options.targets.empty()) {
    out.targets = options.targets;
    if (const Backend& b = backend_with_targets(options.targets); &b != &default_backend())
      out.backend = &b;
  }
  out.verification = options.verify == "none"    ? Verification::none
                     : options.verify == "model" ? Verification::model
                                                 : Verification::kernels;
  if (!options.targets.empty() && foreign_targets(options).size() == options.targets.size())
    out.verification = Verification::none;  // nothing runs here
  out.threads = options.threads;
  out.cache = !options.no_cache;
  out.one_op_groups = options.one_op_groups;
  out.passes.off = options.passes_off;
  if (options.max_memory > 0) out.max_memory = options.max_memory;
  return out;
}

Plan plan_in(const Loaded& loaded, const ModelOptions& options) {
  if (options.keeps_states) return read_plan(loaded.file.path);
  return as_function(read_plan(loaded.file.path), options.entry);
}

Plan made_plan(const Loaded& loaded, const ModelOptions& options, const std::string& strategy,
               CompileReport* report) {
  if (loaded.file.is_plan()) return plan_in(loaded, options);
  CompileOptions compiled = compile_options(options);
  compiled.strategy = strategy;
  compiled.keep = report != nullptr;
  return compile(loaded.source, compiled, report);
}

std::unique_ptr<Runner> open_runner(const Loaded& loaded, const ModelOptions& options,
                                    const std::string& strategy, CompileReport* report) {
  PlanLimits limits{options.threads, options.max_memory, options.deadline.at()};
  if (options.keeps_states) {
    limits.entry = options.entry;
    limits.state = options.state;
  }
  if (!loaded.file.is_plan() && strategy == "ref")
    return std::make_unique<RefRunner>(loaded.source);
  return plan_runner(std::make_shared<const Plan>(made_plan(loaded, options, strategy, report)),
                     limits);
}

namespace {

// The function that a plan's variant 0 computes, from its graph if stored; else one that takes the
// same inputs without conditions.
Function function_of(const Loaded& loaded, const Runner& runner) {
  if (!runner.plan()) return loaded.source.variants[0].function;
  const Plan& plan = *runner.plan();
  if (!plan.main().graph.empty()) return source(plan).variants[0].function;
  Function f;
  for (const PlanParam& p : plan.main().params) f.add_param(p.type, p.name, p.donated, p.required);
  return f;
}

}  // namespace

ChosenInputs inputs_or_samples(const std::vector<std::string>& given, const Loaded& loaded,
                               const Runner& runner) {
  if (!given.empty()) return {read_inputs(given, runner.params()), {}};
  const std::vector<fs::path> sets = data_sets(loaded.file.path.parent_path());
  if (!sets.empty()) return {read_set(sets[0], "input"), {}};
  std::vector<Guard> guards =
      runner.plan() ? runner.plan()->main().variants[0].guards : std::vector<Guard>();
  if (runner.plan())
    for (const PlanCheck& c : runner.plan()->main().checks)
      guards.push_back({Guard::Kind::equal, c.a, c.b});
  MadeInputs made = made_inputs_of(loaded.file.path.string(), function_of(loaded, runner), guards,
                                   "give inputs with --input");
  return {std::move(made.arrays), std::move(made.assumptions)};
}

std::string command_line(std::string_view program, Words words) {
  static constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  std::string out(program);
  for (const std::string word : words) {
    const bool is_plain = !word.empty() && word.find_first_not_of(plain) == word.npos;
    out += is_plain ? " " + word : " '" + word + "'";
  }
  return out;
}

void add_printing(Arguments& a, Printing& p) {
  a.heading("");
  a.flag("--json", "print JSON", p.json);
  a.flag("-q,--quiet", "print results only: no warnings, no progress", p.quiet);
  a.flag("--verbose", "print warnings in full", p.verbose);
}

void print_assumptions(const std::vector<std::string>& lines, std::string_view options,
                       const Printing& p) {
  constexpr std::size_t few = 8;
  if (lines.empty() || p.quiet) return;
  // One more line takes no more space than a note that it was omitted.
  const std::size_t shown = p.verbose || lines.size() <= few + 1 ? lines.size() : few;
  std::printf("inputs: random (give others with %s)\n", std::string(options).c_str());
  for (std::size_t i = 0; i < shown; ++i) std::printf("  %s\n", lines[i].c_str());
  if (shown < lines.size())
    std::printf("  and %zu more inputs (--verbose prints all)\n", lines.size() - shown);
}

void check_report(const fs::path& file) {
  if (file.extension() != ".html" && file.extension() != ".htm" && file.extension() != ".json")
    throw UsageError(cat("--report ", file.string(),
                         ": expected a name that ends in .html (a page) or .json (its data)"));
  check_writable(file, "--report");
}

Json texts_json(const std::vector<std::string>& lines) {
  Json out = Json::Array{};
  for (const std::string& line : lines) out.push(line);
  return out;
}

std::string file_size_text(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? "not a regular file" : bytes_text(static_cast<std::int64_t>(size));
}

void warn(const Printing& printing, const std::string& line) {
  if (!printing.quiet && !printing.json) std::fprintf(stderr, "%s\n", line.c_str());
}

void progress(const Printing& printing, const std::string& line) {
  if (is_terminal(2)) warn(printing, line);
}

}  // namespace hone::cli
