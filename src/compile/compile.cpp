#include "compile/compile.h"

#include <algorithm>

#include "backend/backend.h"
#include "base/error.h"
#include "compile/memory_need.h"
#include "compile/multi.h"
#include "compile/single.h"
#include "pass/unify.h"

namespace hone {

namespace {

std::string joined(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += cat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return out;
}

// Only multi chooses among devices.
void check_devices(const CompileOptions& options) {
  if (options.strategy != "multi") return;
  for (const std::string& name : options.devices) {
    const std::size_t here = device_count(name),
                      wanted = static_cast<std::size_t>(std::ranges::count(options.devices, name));
    if (wanted <= here) continue;
    std::string known;
    for (const Backend* b : backends())
      if (has_device(*b))
        known += cat(known.empty() ? "" : ", ", b->name, " (", device_count(b->name), ")");
    throw UserError("device '", name, "' is named ", wanted, wanted == 1 ? " time" : " times",
                    ", but this machine has ", here, "; it has: ", known);
  }
}

// A result that is stored to an input (docs/decisions/0046); null if there is none.
const Function::Result* stored_result(const Source& source) {
  for (const SourceVariant& v : source.variants)
    for (const Function::Result& r : v.function.results())
      if (r.stored_to) return &r;
  return nullptr;
}

void check_options(const Source& source, const CompileOptions& options) {
  if (const std::string why = absence_of(options.strategy); !why.empty())
    throw UserError("strategy '", options.strategy, "' ", why, "; choose auto");
  if (!can_compile(options.strategy)) {
    std::vector<std::string_view> known = strategies();
    std::erase(known, "ref");
    throw UserError("strategy '", options.strategy, "' does not compile; choose ", joined(known),
                    " (ref interprets)");
  }
  if (options.strategy == "multi" && (options.backend || !options.targets.empty()))
    throw UserError(
        "strategy 'multi' compiles for every device of this machine; omit the backend and the "
        "targets, or choose auto");
  check_devices(options);
  if (const Function::Result* r = stored_result(source); r && options.strategy == "multi")
    throw UserError(source.name, ": result '", r->name,
                    "' is stored to an input, which plans for several devices cannot do; choose "
                    "another strategy than multi");
  if (source.variants.empty())
    throw UserError(source.name, ": has no functions, so there is nothing to compile");
  const Backend& b = backend_of(options);
  const bool runs = options.targets.empty()
                        ? has_device(b)
                        : std::ranges::any_of(options.targets, [&](const std::string& t) {
                            return runs_here(b, t);
                          });
  if (!runs && (options.measure || options.verification != Verification::none))
    throw UserError(source.name, ": this machine does not run code for ",
                    options.targets.empty() ? cat("backend ", b.name) : options.targets[0],
                    ", so it can be neither verified nor timed here; compile it with both turned "
                    "off, on the command line with `hone optimize --target`");
  const std::size_t targets = std::max<std::size_t>(options.targets.size(), 1);
  const std::size_t variants = source.variants.size() * targets;
  if (variants > options.most_variants)
    throw UserError(source.name, ": ", source.variants.size(), " size variants for ", targets,
                    " targets are ", variants, " in total, expected at most ",
                    options.most_variants, "; give sizes with --dim, or fewer targets");
}

// Variants share their parameters: where they would differ, sizes are unified inside only.
Source unified(const Source& source) {
  Source out = source;
  for (SourceVariant& v : out.variants) v.function = unify_sizes(v.function);
  const auto has_first_types = [&](const SourceVariant& v) {
    return v.function.param_types() == out.variants[0].function.param_types();
  };
  if (std::ranges::all_of(out.variants, has_first_types)) return out;
  for (std::size_t i = 0; i < out.variants.size(); ++i)
    out.variants[i].function = unify_sizes_inside(source.variants[i].function);
  return out;
}

// Checks the timed sizes; for other sizes of dynamic plans, the session checks. Where there are
// samples, a variant that serves none is not what they need.
void check_memory(const Plan& plan, const Source& source, const CompileOptions& options) {
  const auto unowned = std::shared_ptr<const Plan>(std::shared_ptr<void>(), &plan);
  const auto executable = Executable::load(unowned, open_devices(plan));
  for (const SourceVariant& v : source.variants) {
    if (!source.samples.empty() && !serves_sample(source, v)) continue;
    const std::vector<Array> inputs = inputs_to_time(source, v, sizes_to_time(source, v));
    check_memory_need(memory_need(executable, inputs, options.threads, options.is_written),
                      plan.name, *options.max_memory, options.is_written);
  }
}

}  // namespace

Plan compile(const Source& source, const CompileOptions& options, CompileReport* report) {
  CompileReport own;
  if (!report) report = &own;
  check_options(source, options);
  const Source with_fewer_sizes = unified(source);
  Plan plan = is_spread(options) && !stored_result(source)
                  ? compile_multi(with_fewer_sizes, options, *report)
                  : compile_single(with_fewer_sizes, options, *report);
  for (const SourceVariant& v : with_fewer_sizes.variants)
    for (std::size_t i = 0; i < v.function.results().size(); ++i)
      if (const std::optional<std::uint32_t> param = v.function.results()[i].stored_to)
        HONE_ASSERT(plan.main().result_alias[i] == static_cast<std::int32_t>(*param), "result ", i,
                    " is not stored to parameter ", *param);
  if (options.max_memory && has_device(backend_of(options)))
    check_memory(plan, with_fewer_sizes, options);
  return plan;
}

}  // namespace hone
