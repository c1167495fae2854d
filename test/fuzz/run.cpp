// The target that compiles; the others do not need the compiler.
#include <chrono>

#include "backend/devices/devices.h"
#include "compile/compile.h"
#include "runtime/session.h"
#include "test/fuzz/limits.h"
#include "test/fuzz/targets.h"
#include "verify/sample.h"
#include "verify/sizes.h"

namespace hone::fuzz {

namespace {

constexpr auto time_to_run = std::chrono::milliseconds(100);
constexpr std::size_t most_compiled = 300;                    // nodes of a function
constexpr std::int64_t most_elements = 1 << 20;               // of an input
constexpr std::int64_t most_memory = std::int64_t{64} << 20;  // bytes

Source source_of(Imported m) {
  Source out{m.name, {}, {}};
  for (ImportedVariant& v : m.variants) {
    out.variants.push_back({{}, std::move(v.function)});
    for (const Assumption& a : v.assumptions)
      out.variants.back().guards.push_back({Guard::Kind::equal, a.condition, Dim(a.holds ? 1 : 0)});
  }
  return out;
}

void run_once(const std::shared_ptr<const Plan>& plan) {
  std::vector<Type> types;
  for (const PlanParam& p : plan->main().params) types.push_back(p.type);
  const std::optional<Sizing> sizes = sample_sizes(types, plan->main().variants[0].guards);
  if (!sizes) return;
  std::vector<Array> inputs;
  for (const Type& t : types) {
    if (size_of(t.shape.count(), *sizes) > most_elements) return;
    inputs.push_back(sample_array(t, *sizes, Fill::extreme, inputs.size() + 1));
  }
  Session s(Executable::load(plan, open_device("cpu")), {.threads = 1, .max_memory = most_memory});
  s.set_deadline(std::chrono::steady_clock::now() + time_to_run);
  s.run(inputs);
}

}  // namespace

void onnx_run(Bytes bytes) {
  with_file(bytes, [](const auto& path) {
    answer([&] {
      const Source source = source_of(import_onnx(path, small_limits()));
      for (const SourceVariant& v : source.variants)
        if (live_nodes(v.function).size() > most_compiled) return;
      CompileOptions options;
      options.strategy = "cpu";
      options.verification = Verification::none;
      options.cache = false;
      options.threads = 1;
      options.max_memory = most_memory;
      run_once(std::make_shared<const Plan>(compile(source, options)));
    });
  });
}

}  // namespace hone::fuzz
