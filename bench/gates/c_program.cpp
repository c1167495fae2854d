#include "c_program.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "backend/cpu/target/processor.h"
#include "base/error.h"
#include "base/process.h"
#include "codegen/c/program.h"

namespace hone::gates {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t model_bytes = 256;  // larger than any model struct

std::byte* aligned(std::vector<std::byte>& bytes, std::size_t n) {
  bytes.resize(n + alignment);
  void* start = bytes.data();
  std::size_t space = bytes.size();
  return static_cast<std::byte*>(std::align(alignment, n, start, space));
}

// Two functions whose signatures do not depend on the model's parameters.
std::string shim(const std::string& name, std::size_t pointers) {
  std::string list;
  for (std::size_t i = 1; i < pointers; ++i) list += cat(", p[", i, "]");
  return cat("#include \"", name, ".h\"\n", "int gate_run(void *const *p) { return ", name,
             "_run((const ", name, "_model *)p[0]", list, "); }\n",
             "int gate_init(void *model, const void *weights, size_t bytes) { return ", name,
             "_init((", name, "_model *)model, weights, bytes); }\n");
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text) || !file.flush()) throw UserError(path.string(), ": cannot be written");
}

void* compile_library(const c::Program& program, std::size_t pointers, const std::string& cc) {
  std::string place = (fs::temp_directory_path() / "hone_gates_XXXXXX").string();
  if (!::mkdtemp(place.data())) throw UserError(place, ": no directory can be made there");
  const fs::path directory = place, library = directory / "program.so";
  std::vector<std::string> command = {cc,        "-std=c11", "-O3", "-march=native",
                                      "-shared", "-fPIC",    "-o",  library};
  for (const c::ProgramFile& f : program.files) {
    write(directory / f.name, f.text);
    if (f.name == program.name + ".c") command.push_back(directory / f.name);
  }
  write(directory / "shim.c", shim(program.name, pointers));
  command.push_back(directory / "shim.c");
  command.push_back("-lm");
  const ProcessResult done = run_process(command);
  void* handle = done.status == 0 ? ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  fs::remove_all(directory);
  if (!handle) throw UserError(cc, ": ", done.output.substr(0, 2000));
  return handle;
}

}  // namespace

CProgram::CProgram(const Source& source, std::vector<Array> inputs, const std::string& cc)
    : inputs_(std::move(inputs)) {
  CompileOptions options;
  options.strategy = "cpu";
  options.keep = true;
  CompileReport report;
  const Plan plan = compile(source, options, &report);
  c::ProgramOptions request;
  request.name = "gated";
  request.vector_bits = cpu::target_info(plan.main().variants[0].devices[0].target).vector_bits;
  const c::Program program = c::write_program(plan, report.kernels_made, request);
  library_ = compile_library(program, inputs_.size() + plan.main().results.size() + 2, cc);
  run_ = reinterpret_cast<int (*)(void* const*)>(::dlsym(library_, "gate_run"));
  auto* init =
      reinterpret_cast<int (*)(void*, const void*, std::size_t)>(::dlsym(library_, "gate_init"));

  void* model = aligned(model_, model_bytes);
  std::byte* weights = aligned(weights_, program.weights.size());
  std::copy(program.weights.begin(), program.weights.end(), weights);
  if (!run_ || !init || init(model, weights, program.weights.size()) != 0)
    throw UserError("the program in C does not take its weights");
  arguments_.push_back(model);
  for (const Array& x : inputs_) arguments_.push_back(const_cast<std::byte*>(x.bytes().data()));
  for (const PlanParam& p : plan.main().results) {
    std::vector<std::int64_t> dims;
    for (const Dim& d : p.type.shape.dims) dims.push_back(d.number());
    outputs_.push_back(Array::zeros(p.type.dtype, dims));
  }
  for (Array& y : outputs_) arguments_.push_back(y.writable_bytes().data());
  arguments_.push_back(aligned(arena_, static_cast<std::size_t>(program.arena_bytes)));
}

CProgram::~CProgram() { ::dlclose(library_); }

void CProgram::run() {
  if (const int status = run_(arguments_.data()))
    throw UserError("the program in C ends with ", status);
}

}  // namespace hone::gates
