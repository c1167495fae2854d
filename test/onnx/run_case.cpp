#include "test/onnx/run_case.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "api/compiler.h"
#include "base/file.h"
#include "import/onnx/file/model.h"
#include "verify/model/expansion.h"
#include "verify/sizes.h"

namespace hone::conformance {

namespace fs = std::filesystem;

namespace {

// Defaults of the suite: numpy's assert_allclose(rtol, atol). Integers must be equal here.
constexpr double relative = 1e-3, absolute = 1e-7;

class Timer {
 public:
  explicit Timer(double& ms) : ms_(ms) {}
  ~Timer() {
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start_;
    ms_ += took.count();
  }
  Timer(const Timer&) = delete;

 private:
  double& ms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// One run of the test: inputs and expected outputs.
struct Set {
  std::vector<Array> inputs, outputs;
};

// For the light models.
std::vector<Array> read_outputs(const fs::path& prefix) {
  std::vector<Array> out;
  for (int i = 0; fs::exists(cat(prefix.string(), i, ".pb")); ++i)
    out.push_back(read_tensor_pb(cat(prefix.string(), i, ".pb")));
  return out;
}

// Reads the files of a test set, with the types that the model declares. Sequences and optionals
// become their elements, whose types are recorded in `options`.
std::vector<Array> read_values(const fs::path& prefix, const std::vector<onnx::ValueInfo>& infos,
                               ImportOptions* options) {
  std::vector<Array> out;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const fs::path file = cat(prefix.string(), i, ".pb");
    if (!fs::exists(file)) break;
    const std::string name(infos[i].name);
    if (infos[i].kind == onnx::ValueInfo::Kind::tensor) {
      out.push_back(read_tensor_pb(file));
      if (options) options->contents.emplace(name, out.back());
      // Symbolic sizes are at least 1 unless a shape is given.
      const std::vector<std::int64_t>& dims = out.back().dims();
      if (options && std::ranges::count(dims, 0) > 0) options->shapes.emplace(name, dims);
      continue;
    }
    std::vector<Type> types;
    for (const Array& a : read_sequence_pb(file)) {
      types.push_back(a.type());
      out.push_back(a);
    }
    if (options) options->elements.emplace(name, types);
  }
  return out;
}

// i / n at element i, as the suite's runner generates inputs for the light models.
Array ramp(const Type& type) {
  if (type.dtype != DType::f32 || !type.shape.is_static())
    throw UserError("the input is ", type, "; only f32 of fixed sizes is made up");
  Array a = Array::zeros(DType::f32, type.shape.numbers());
  const auto n = static_cast<double>(a.count());
  for (std::int64_t i = 0; i < a.count(); ++i) a.set_real(i, static_cast<double>(i) / n);
  return a;
}

std::vector<Set> read_sets(const Case& c, ImportOptions& options) {
  auto file = MappedFile::open(c.model);
  onnx::Model model = onnx::parse_model(file->bytes(), file->path(), 1 << 20);
  if (!model.graph) throw UserError(c.model.string(), ": holds no graph");
  std::vector<Set> out;
  for (const fs::path& folder : c.sets)
    out.push_back({read_values(folder / "input_", model.graph->inputs, &options),
                   read_values(folder / "output_", model.graph->outputs, nullptr)});
  return out;
}

Set made_up_set(const Case& c, const Function& f) {
  Set made;
  for (const Type& t : f.param_types()) made.inputs.push_back(ramp(t));
  made.outputs = read_outputs(c.model.parent_path() / (c.model.stem().string() + "_output_"));
  return made;
}

// Common interface of the interpreter and of a compiled plan.
class Program {
 public:
  Program(Source source, const std::string& strategy, const Backend* backend, Outcome& out)
      : source_(std::move(source)) {
    if (strategy == "ref") return;
    CompileOptions options;
    options.strategy = strategy;
    options.backend = backend;
    options.verification = Verification::none;
    options.threads = 1;
    options.cache = false;
    options.strip_graph = true;
    Plan plan = compile(source_, options);
    for (const Variant& v : plan.main().variants)
      for_each_step(v.steps, [&](const Step& s) {
        if (s.kind == Step::Kind::host && std::ranges::count(out.on_host, s.name) == 0)
          out.on_host.push_back(s.name);
      });
    session_ = open_session(std::move(plan), {.threads = 1});
  }

  std::vector<Array> run(std::span<const Array> inputs) {
    if (session_) return session_->run(inputs);
    std::vector<std::vector<std::int64_t>> dims;
    for (const Array& a : inputs) dims.push_back(a.dims());
    for (const SourceVariant& v : source_.variants) {
      const Sizing sizes = bind_sizes(v.function, dims);
      if (!guards_hold(v.guards, sizes)) continue;
      check_expansions(v.function, sizes);
      return evaluate(v.function, inputs);
    }
    throw UserError("no variant serves these sizes");
  }

 private:
  Source source_;
  std::unique_ptr<Session> session_;
};

// Empty if all results are as expected.
std::string difference(const std::vector<Array>& got, const std::vector<Array>& expected) {
  if (got.size() != expected.size())
    return cat("gives ", got.size(), " outputs, expected ", expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (Comparison c = within(got[i], expected[i], absolute, relative); !c)
      return cat("output ", i, " ", expected[i].type(), ": ", c);
  return {};
}

void judge(const Case& c, const std::string& strategy, const Backend* backend, Outcome& out) {
  Imported imported;
  std::vector<Set> sets;
  {
    Timer timer(out.import_ms);
    ImportOptions options;
    sets = read_sets(c, options);
    imported = import_onnx(c.model, options);
    if (sets.empty()) sets.push_back(made_up_set(c, imported.variants.at(0).function));
  }
  std::unique_ptr<Program> program;
  {
    Timer timer(out.compile_ms);
    program = std::make_unique<Program>(source(imported), strategy, backend, out);
  }
  Timer timer(out.run_ms);
  for (const Set& set : sets) {
    out.reason = difference(program->run(set.inputs), set.outputs);
    if (!out.reason.empty()) out.verdict = Verdict::wrong;
    if (!out.reason.empty()) return;
  }
}

}  // namespace

Outcome run_case(const Case& c, const std::string& strategy, const Backend* backend) {
  Outcome out;
  try {
    judge(c, strategy, backend, out);
  } catch (const UserError& e) {
    out.verdict = Verdict::refused;
    out.reason = e.what();
  } catch (const std::bad_alloc&) {
    out.verdict = Verdict::fault;
    out.reason = "memory was exhausted";
  } catch (const std::exception& e) {
    out.verdict = Verdict::fault;
    out.reason = e.what();
  }
  return out;
}

}  // namespace hone::conformance
