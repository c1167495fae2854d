#include "test/random/c_executor.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "backend/cpu/target/processor.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/c/program.h"
#include "compile/compile.h"
#include "pass/unify.h"

namespace hone::fuzz {

namespace {

namespace fs = std::filesystem;

// Replaces sizes by numbers and drops donation, which matters only for plans.
Function fixed(const Function& f, const Arrays& inputs) {
  std::vector<std::vector<std::int64_t>> dims;
  for (const Array& a : inputs) dims.push_back(a.dims());
  std::map<std::string, Dim> numbers;
  for (const auto& [name, value] : bind_sizes(f, dims)) numbers.emplace(name, value);
  const Function sized = substitute_sizes(f, numbers);
  Function out;
  Values params;
  for (const Function::Param& p : sized.params())
    params.push_back(out.add_param(p.value.type(), p.name));
  Copier copy(sized, params, out);
  for (NodeId n : live_nodes(sized))
    if (!copy.has(n)) copy.copy(n);
  for (const Function::Result& r : sized.results()) out.add_result(copy(r.value), r.name);
  for (const DimCheck& c : sized.graph().checks()) out.graph().add_check(c);
  return out;
}

c::Program program_of(const Function& f, const std::string& name) {
  CompileOptions options{.strategy = "cpu", .verification = Verification::none};
  options.threads = 1;
  options.keep = true;
  CompileReport kept;
  const Plan plan = compile({name, {{{}, f}}, {}}, options, &kept);
  c::ProgramOptions request;
  request.name = name;
  request.vector_bits = cpu::target_info(plan.main().variants[0].devices[0].target).vector_bits;
  return c::write_program(plan, kept.kernels_made, request);
}

// int NAME_call(weights, bytes, operands, arena): gives every program the same signature.
std::string caller_of(const std::string& name, std::size_t operands) {
  std::string out =
      cat("#include \"", name, ".h\"\nint ", name,
          "_call(const void *weights, size_t bytes, void **operands, void *arena) {\n  ", name,
          "_model model;\n  int status = ", name,
          "_init(&model, weights, bytes);\n  if (status != 0) return status;\n  return ", name,
          "_run(&model");
  for (std::size_t i = 0; i < operands; ++i) out += cat(", operands[", i, "]");
  return out + ", arena);\n}\n";
}

using Call = int (*)(const void* weights, std::size_t bytes, void** operands, void* arena);

// Memory aligned to 64 bytes.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : data_(std::aligned_alloc(64, (bytes / 64 + 1) * 64)) {
    if (!data_) throw std::bad_alloc();
    std::memset(data_, 0xff, (bytes / 64 + 1) * 64);
  }
  explicit Memory(std::span<const std::byte> content) : Memory(content.size()) {
    if (!content.empty()) std::memcpy(data_, content.data(), content.size());
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

class Library {
 public:
  explicit Library(const fs::path& file) : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw UserError(::dlerror());
  }
  ~Library() { ::dlclose(handle_); }
  Library(const Library&) = delete;
  Call call(const std::string& name) const {
    return reinterpret_cast<Call>(::dlsym(handle_, (name + "_call").c_str()));
  }

 private:
  void* handle_;
};

Arrays call(Call f, const c::Program& program, const Function& function, const Arrays& inputs) {
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<void*> operands;
  auto add = [&](auto what) {
    memory.push_back(std::make_unique<Memory>(what));
    operands.push_back(memory.back()->data());
  };
  for (const Array& a : inputs) add(a.bytes());
  Arrays out;
  for (const Function::Result& r : function.results()) {
    std::vector<std::int64_t> dims;
    for (const Dim& d : r.value.shape().dims) dims.push_back(d.number());
    out.push_back(Array::zeros(r.value.dtype(), dims));
    add(out.back().bytes().size());
  }
  const Memory weights{std::span<const std::byte>(program.weights)};
  const Memory arena(static_cast<std::size_t>(program.arena_bytes));
  if (int status = f(weights.data(), program.weights.size(), operands.data(), arena.data()))
    throw UserError("the C program ends with ", status);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto to = out[i].writable_bytes();
    if (!to.empty()) std::memcpy(to.data(), operands[inputs.size() + i], to.size());
  }
  return out;
}

}  // namespace

std::vector<Arrays> run_as_c(const Function& f, const std::vector<Arrays>& inputs) {
  const std::optional<fs::path> gcc = find_program("gcc");
  if (!gcc) throw UserError("gcc: is not in PATH; run tools/setup");
  const fs::path directory = fs::path(std::getenv("HONE_CACHE_DIR")) / "c";
  fs::remove_all(directory);
  fs::create_directories(directory);
  auto write = [&](const std::string& name, const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    write_atomic(directory / name, std::span(&bytes, 1), Sync::no);
  };
  const fs::path library = directory / "library.so";
  std::vector<std::string> command = {gcc->string(), "-std=c11", "-O1", "-march=native",
                                      "-fPIC",       "-shared",  "-o",  library.string()};
  std::vector<Function> functions;
  std::vector<c::Program> programs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = cat("run", i);
    functions.push_back(fixed(f, inputs[i]));
    programs.push_back(program_of(functions.back(), name));
    for (const c::ProgramFile& file : programs.back().files)
      if (file.name == name + ".h" || file.name == name + ".c") write(file.name, file.text);
    write(name + "_call.c", caller_of(name, inputs[i].size() + functions.back().results().size()));
    command.push_back((directory / (name + ".c")).string());
    command.push_back((directory / (name + "_call.c")).string());
  }
  command.push_back("-lm");
  const ProcessResult compiled = run_process(command);
  if (compiled.status != 0)
    throw UserError("gcc ends with ", compiled.status, ": ", compiled.output.substr(0, 2000));
  const Library loaded(library);
  std::vector<Arrays> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    out.push_back(call(loaded.call(cat("run", i)), programs[i], functions[i], inputs[i]));
  return out;
}

}  // namespace hone::fuzz
