#include "cli/device_test.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "backend/backend.h"
#include "base/error.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/machine.h"
#include "compile/compile.h"
#include "ops/ops.h"
#include "ref/expected.h"
#include "runtime/session.h"

namespace hone::cli {

namespace {

struct DeviceCase {
  std::string name;  // "softmax/2"
  Function function;
  std::vector<Array> inputs;
};

// In the range in which the operation has values; symbols are small.
Array numbers_for(const Type& t, const Op& op, std::mt19937_64& random) {
  constexpr std::int64_t size = 5;
  std::vector<std::int64_t> dims;
  for (const Dim& d : t.shape.dims)
    dims.push_back(d.substitute([=](const Dim& s) {
                      return std::optional<Dim>(std::clamp(size, s.low(), s.high()));
                    }).number());
  Array a = Array::zeros(t.dtype, dims);
  const double low = is_float(t.dtype) || is_signed(t.dtype) ? op.low : std::max(op.low, 0.0);
  std::uniform_real_distribution<double> real(low, op.high);
  std::uniform_int_distribution<std::int64_t> integer(
      t.dtype == DType::b1 ? 0 : static_cast<std::int64_t>(std::ceil(low)),
      t.dtype == DType::b1 ? 1 : static_cast<std::int64_t>(std::floor(op.high)));
  for (std::int64_t i = 0; i < a.count(); ++i)
    is_float(t.dtype) ? a.set_real(i, real(random)) : a.set_integer(i, integer(random));
  return a;
}

std::vector<DeviceCase> cases_of(const Op& op, bool tries_all) {
  std::vector<DeviceCase> out;
  if (!op.samples || &op == &ops::refuse) return out;  // it has no result
  std::mt19937_64 random(7);
  for (const Sample& sample : op.samples()) {
    DeviceCase c{cat(op.name, "/", out.size()), {}, {}};
    Values operands;
    for (const Type& t : sample.operands) {
      operands.push_back(c.function.add_param(t, cat("x", operands.size())));
      c.inputs.push_back(numbers_for(t, op, random));
    }
    const Value y = c.function.graph().intern(op, operands, sample.attrs);
    for (std::size_t i = 0; i < y.result_count(); ++i)
      c.function.add_result(y.result(i), cat("y", i));
    out.push_back(std::move(c));
    if (!tries_all) break;
  }
  return out;
}

// Why the results are wrong; empty: they are right.
std::string wrong_in(const DeviceCase& c, const Backend& backend,
                     const std::shared_ptr<Device>& device) {
  CompileOptions options{.backend = &backend};
  options.verification = Verification::none;
  options.cache = false;
  const auto plan =
      std::make_shared<const Plan>(compile({"self-test", {{{}, c.function}}, {}}, options));
  const std::vector<Array> got = Session(Executable::load(plan, device)).run(c.inputs);
  Evaluator evaluator(c.function);
  Expected expected(evaluator, c.inputs, Mode::strict);
  for (std::size_t i = 0; i < got.size(); ++i)
    if (const Comparison r = expected.accept(i, widen(got[i])); !r)
      return cat("result ", i, ": ", r);
  return "";
}

// A backend with several devices has a flag that names one.
std::string chosen_backend(std::string_view name) {
  const std::size_t colon = std::min(name.find(':'), name.size());
  std::string out(name.substr(0, colon));
  if (colon == name.size()) return out;
  std::string upper = out;
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return static_cast<char>(std::toupper(c)); });
  const std::string variable = cat("HONE_", upper, "_DEVICE");
  if (std::ranges::find(all_flags(), variable, &Flag::name) == all_flags().end())
    throw UserError("--device ", name, ": devices of ", out, " are not numbered; give --device ",
                    out);
  ::setenv(variable.c_str(), std::string(name.substr(colon + 1)).c_str(), 1);
  return out;
}

Json machine_json() {
  const Machine m = this_machine();
  Json libraries = Json::Array{};
  for (const LibraryStatus& l : device_libraries())
    libraries.push(Json::Object{
        {"name", l.name}, {"version", l.version}, {"file", l.file}, {"failure", l.failure}});
  return Json::Object{{"processor", m.processor}, {"libraries", libraries}};
}

}  // namespace

int test_device(std::string_view name, bool tries_all, const Printing& printing) {
  const auto start = std::chrono::steady_clock::now();
  const Backend& tested = backend(chosen_backend(name));
  const std::shared_ptr<Device> device = open_device(tested.name);
  int passed = 0;
  Json failed = Json::Array{};
  for (const Op* op : all_ops())
    for (const DeviceCase& c : cases_of(*op, tries_all)) {
      std::string why;
      try {
        why = wrong_in(c, tested, device);
      } catch (const std::exception& e) {
        why = e.what();
      }
      passed += why.empty();
      if (why.empty()) continue;
      failed.push(Json::Object{{"case", c.name}, {"why", why}});
      if (!printing.json) std::printf("%s: %s\n", c.name.c_str(), why.c_str());
    }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::size_t wrong = failed.array().size();
  if (printing.json)
    std::printf("%s\n", Json(Json::Object{{"device", name},
                                          {"target", device->description()},
                                          {"machine", machine_json()},
                                          {"passed", passed},
                                          {"failed", failed},
                                          {"seconds", took.count()}})
                            .text(2)
                            .c_str());
  else if (!printing.quiet)
    std::printf("%.*s: %d of %zu cases agree with the reference, %.1f s\n",
                static_cast<int>(name.size()), name.data(), passed,
                static_cast<std::size_t>(passed) + wrong, took.count());
  return wrong == 0 ? exit_ok : exit_differs;
}

}  // namespace hone::cli
