#include "api/hone.h"

#include "api/runtime/boundary.h"
#include "backend/backend.h"
#include "compile/program.h"
#include "import/import.h"
#include "import/tensor_file.h"
#include "optimize/source.h"
#include "plan/plan_file.h"
#include "runtime/prepare.h"
#include "tensor/trace.h"

namespace hone {

namespace {

CompileOptions options_of(const CompileWith& with) {
  CompileOptions o{.strategy = with.strategy, .threads = with.threads, .cache = with.cache};
  if (!with.device.empty()) o.backend = &backend(with.device);
  return o;
}

}  // namespace

Compiled::Compiled(Plan plan) : plan_(std::make_shared<const Plan>(std::move(plan))) {}

runtime::Executable Compiled::load() const {
  return runtime::Executable(new hone_executable{load_plan(plan_, open_devices(*plan_))});
}

void Compiled::save(const std::string& path) const { write_plan(path, *plan_); }

Compiled compile(const Program& p, const CompileWith& with, Where at) {
  return located(at, [&] { return Compiled(compile(p.graph(), options_of(with))); });
}

Compiled optimize(const Program& p, const CompileWith& with, Where at) {
  return located(at, [&] {
    const OptimizeRequest request{.compile = options_of(with), .budget = with.budget};
    return Compiled(optimize(p.graph(), request).plan);
  });
}

Compiled compile_onnx(const std::string& path, const CompileWith& with, Where at) {
  return located(at,
                 [&] { return Compiled(compile(source(import_onnx(path)), options_of(with))); });
}

std::vector<Array> run(runtime::Session& session, const std::vector<Array>& inputs, Where at) {
  return located(at, [&] {
    Session& s = *session.get()->it;
    return s.run(std::span(inputs));
  });
}

Array read(const runtime::State& state, const std::string& name, Where at) {
  return located(at, [&] { return state.get()->it.read(name); });
}

void write(runtime::State& state, const std::string& name, const Array& a, Where at) {
  located(at, [&] { state.get()->it.write(name, a); });
}

Program frozen(const Program& p, const runtime::State& state, Where at) {
  return located(at, [&] {
    std::vector<std::pair<std::string, Array>> values;
    for (const std::string& name : state.get()->it.names())
      values.emplace_back(name, state.get()->it.read(name));
    return p.frozen(values, at);
  });
}

Array read_array(const std::string& path, Where at) {
  return located(at, [&] { return path.ends_with(".pb") ? read_tensor_pb(path) : read_npy(path); });
}

void write_array(const std::string& path, const Array& a, Where at) {
  located(at, [&] { write_npy(path, a); });
}

}  // namespace hone
