#include <cstdio>
#include <filesystem>
#include <fstream>

#include "backend/backend.h"
#include "base/file.h"
#include "base/process.h"
#include "cli/load.h"
#include "cli/precision.h"
#include "cli/run/table.h"
#include "codegen/c/program.h"
#include "ref/compare.h"
#include "target/target_info.h"
#include "verify/sample.h"

namespace hone::cli {

namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  write_atomic(path, std::span(&bytes, 1), Sync::no);
}

// An earlier program of that name is replaced; files of others, such as a CMakeLists.txt, are not.
void check_directory(const c::Program& program, const fs::path& directory) {
  std::string header;
  if (const fs::path file = directory / (program.name + ".h"); fs::is_regular_file(file))
    std::getline(std::ifstream(file), header);
  if (header.find("written by hone aot") != header.npos) return;
  for (const c::ProgramFile& f : program.files)
    if (fs::exists(directory / f.name))
      throw UserError("--output ", directory.string(), ": already contains another ", f.name,
                      "; give a new directory");
}

void write_files(const c::Program& program, const fs::path& directory) {
  check_directory(program, directory);
  fs::create_directories(directory);
  for (const c::ProgramFile& f : program.files) write_file(directory / f.name, bytes_of(f.text));
  write_file(directory / (program.name + ".weights"), program.weights);
}

// A temporary directory that is removed with this object.
class Workplace {
 public:
  explicit Workplace(const fs::path& in) : path_(unused_name(in / "check")) {
    fs::create_directories(path_);
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void run_or_throw(const std::vector<std::string>& argv) {
  ProcessResult r = run_process(argv);
  if (r.status != 0)
    throw UserError(argv[0], ": exited with status ", r.status, ": ", r.output.substr(0, 2000));
}

struct AotOptions : ModelOptions {
  std::string output;     // directory
  std::string name;       // of functions and files; empty: the model's
  std::string cc = "cc";  // of the check
  bool embed_weights = false;
  bool check = false;
  bool accepts_overflow = false;
};

// Inputs of the first data set beside the model, else made-up ones.
std::vector<Array> inputs_for_check(const Loaded& loaded, const Plan& plan) {
  if (!loaded.source.samples.empty()) {
    const std::vector<Array>& sample = loaded.source.samples[0];
    bool fits = sample.size() == plan.main().params.size();
    for (std::size_t i = 0; fits && i < sample.size(); ++i)
      fits = sample[i].type() == plan.main().params[i].type;
    if (fits) return sample;
  }
  std::vector<Array> out;
  for (std::size_t i = 0; i < plan.main().params.size(); ++i)
    out.push_back(sample_array(plan.main().params[i].type, {}, Fill::random, 17 + i));
  return out;
}

struct Checked {
  bool ok = true;
  std::string text;  // per output
};

// Compiles the example, runs it and compares its outputs with the plan's, within the limits for
// model test sets (docs/numbers.md).
Checked check(const c::Program& program, const fs::path& directory, const AotOptions& options,
              const Loaded& loaded, std::shared_ptr<const Plan> plan) {
  std::optional<fs::path> cc = find_program(options.cc);
  if (!cc)
    throw UserError("--check: no compiler '", options.cc,
                    "' in PATH; install one or name another with --cc");
  const Workplace place(directory);
  std::vector<std::string> command = {cc->string(), "-std=c11", "-O3", "-march=native"};
  for (const c::ProgramFile& f : program.files)
    if (f.name.ends_with(".c")) command.push_back((directory / f.name).string());
  for (const std::string& word : {std::string("-o"), place.file("example"), std::string("-lm")})
    command.push_back(word);
  run_or_throw(command);
  const std::vector<Array> inputs = inputs_for_check(loaded, *plan);
  std::vector<std::string> run = {place.file("example")};
  if (!options.embed_weights) run.push_back((directory / (program.name + ".weights")).string());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    run.push_back(place.file(cat("in", i)));
    write_file(run.back(), inputs[i].bytes());
  }
  for (std::size_t i = 0; i < plan->main().results.size(); ++i)
    run.push_back(place.file(cat("out", i)));
  run_or_throw(run);
  const std::vector<Array> expected = plan_runner(plan, {1, 0})->run(inputs);
  Checked out;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto file = MappedFile::open(place.file(cat("out", i)));
    std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
    const Array got(expected[i].dtype(), expected[i].dims(), Storage::from(std::move(bytes)));
    double most = 0;
    for (std::int64_t k = 0; is_float(got.dtype()) && k < expected[i].count(); ++k)
      most = std::max(most, std::abs(expected[i].real(k)));
    const bool narrow = byte_size(got.dtype()) == 2;
    const Comparison c =
        within(got, expected[i], (narrow ? 2e-3 : 1e-4) * most, narrow ? 1e-2 : 1e-3);
    out.ok = out.ok && c.ok;
    out.text += cat(plan->main().results[i].name, ": ", c.ok ? "equals the plan's" : "DIFFERS",
                    ", largest difference ", small_number(c.max_abs_error), " of ",
                    small_number(most), "\n");
  }
  return out;
}

void report(const c::Program& program, const AotOptions& options, const std::string& checked) {
  if (options.json) {
    Json files = Json::Array{};
    for (const c::ProgramFile& f : program.files) files.push(f.name);
    files.push(program.name + ".weights");
    Json::Object all{{"directory", options.output},
                     {"name", program.name},
                     {"files", files},
                     {"kernels", program.kernels},
                     {"weights_bytes", static_cast<std::int64_t>(program.weights.size())},
                     {"arena_bytes", program.arena_bytes},
                     {"checked", checked}};
    std::printf("%s\n", Json(all).text(2).c_str());
    return;
  }
  std::printf("%s: %s.h, %s.c with %d kernels, weights %s, arena %s\n", options.output.c_str(),
              program.name.c_str(), program.name.c_str(), program.kernels,
              bytes_text(static_cast<std::int64_t>(program.weights.size())).c_str(),
              bytes_text(program.arena_bytes).c_str());
  if (!checked.empty())
    std::printf("%s", checked.c_str());
  else
    std::printf(
        "build it: cmake -S %s -B %s/build && cmake --build %s/build; compare it with the "
        "plan: hone aot ... --check\n",
        options.output.c_str(), options.output.c_str(), options.output.c_str());
}

// The backend whose kernels target the host of the C compiler.
const Backend& host_backend() {
  for (const Backend* b : backends())
    if (has_device(*b) && open_device(b->name)->shares_host_memory()) return *b;
  throw UserError("aot: this build has no backend for the processor");
}

}  // namespace

int aot(Words words) {
  AotOptions options;
  Arguments a(
      "hone aot",
      "Writes a model as C: a header, a source, its weights, a CMake file and an example that\n"
      "calls it. The C needs libc and libm only. All sizes must be fixed.");
  add_source(a, options);
  a.text("-o,--output", "DIR", "the directory to write", options.output);
  a.text("--name", "NAME", "name of functions and files (default: the model's)", options.name);
  a.flag("--embed-weights", "link the weights in, as a C array", options.embed_weights);
  a.flag("--check", "compile the example, run it, compare it with the plan", options.check);
  a.text("--cc", "PROGRAM", "compiler of --check (default: cc)", options.cc);
  add_accept_overflow(a, options.accepts_overflow);
  add_compiling(a, options, false, Targets::host);
  add_printing(a, options);
  a.example("hone aot model.onnx -o model_c --dim batch=1 --check");
  if (!a.parse(words)) return exit_ok;
  if (options.output.empty())
    throw UsageError(
        "--output is missing: give the directory to write with -o DIR\nSee hone aot --help.");

  options.import.has_broadcast_variants = false;  // a program has one function
  Loaded loaded = load_model(options, a);
  CompileOptions compiled = compile_options(options);
  const Backend& host = host_backend();
  compiled.strategy = host.name;  // only kernels: libraries are not C
  compiled.backend = &host;
  compiled.keep = true;
  if (compiled.targets.size() > 1)
    throw UsageError(cat("--target: ", compiled.targets.size(),
                         " targets are given, expected one; a program in C runs on every target"));
  CompileReport kept;
  auto plan = std::make_shared<const Plan>(compile(loaded.source, compiled, &kept));
  if (loaded.given) checked_precision(loaded, *plan, options, options.accepts_overflow);
  c::ProgramOptions request;
  request.name = options.name;
  request.embed_weights = options.embed_weights;
  request.vector_bits = host.target(plan->main().variants[0].devices[0].target)->info().vector_bits;
  const c::Program program = c::write_program(*plan, kept.kernels_made, request);
  write_files(program, options.output);
  Checked checked;
  if (options.check) checked = check(program, options.output, options, loaded, plan);
  report(program, options, checked.text);
  return checked.ok ? exit_ok : exit_differs;
}

}  // namespace hone::cli
