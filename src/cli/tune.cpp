#include <cstdio>

#include "cli/load.h"
#include "cli/run/table.h"

namespace hone::cli {

namespace {

struct Tuned {
  const GroupRecord* group = nullptr;
  const CandidateRecord* chosen = nullptr;
  const CandidateRecord* untuned = nullptr;  // the fastest candidate without tuning
  std::size_t tried = 0;
};

// Groups that compute the same are listed once.
std::vector<Tuned> tuned_groups(const Plan& plan) {
  std::vector<Tuned> out;
  std::vector<const void*> seen;
  for (const Variant& v : plan.main().variants)
    for (const GroupRecord& g : v.groups) {
      if (!g.considered || std::ranges::count(seen, g.considered.get()) > 0) continue;
      seen.push_back(g.considered.get());
      Tuned t{.group = &g};
      for (const CandidateRecord& c : g.candidates()) {
        if (c.ms < 0) continue;
        ++t.tried;
        if (c.name == g.chosen) t.chosen = &c;
        const bool is_tuned = c.name.find('=') != std::string::npos;
        if (!is_tuned && (!t.untuned || c.ms < t.untuned->ms)) t.untuned = &c;
      }
      if (t.chosen && t.untuned) out.push_back(t);
    }
  return out;
}

}  // namespace

int tune(Words words) {
  ModelOptions options;
  double budget = 60;
  Arguments a(
      "hone tune",
      "Times the ways to compute each part of a model, and forms of the fastest, and keeps\n"
      "the winners for this machine. Later compilations of equal parts take them.");
  add_source(a, options);
  add_budget(a, budget);
  add_compiling(a, options, false, Targets::here);
  add_printing(a, options);
  a.example("hone tune model.onnx --budget 120");
  if (!a.parse(words)) return exit_ok;
  if (options.no_cache)
    throw UsageError(
        "--no-cache: cannot be used here, as the winners are kept in the cache; omit it");
  const Loaded loaded = load_model(options, a);
  CompileOptions compiled = compile_options(options);
  compiled.measure = compiled.tune = true;
  compiled.remeasure = true;
  compiled.slow_library = false;
  compiled.budget = budget;
  compiled.progress = [&](const std::string& line) { progress(options, line); };
  const Plan plan = compile(loaded.source, compiled);

  Json report = Json::Array{};
  Table table({"group", "fastest", "time", "without tuning", "timed"});
  for (const Tuned& t : tuned_groups(plan)) {
    table.add({t.group->name, t.group->chosen, milliseconds(t.chosen->ms),
               milliseconds(t.untuned->ms), cat(t.tried)});
    report.push(Json::Object{{"group", t.group->name},
                             {"chosen", t.group->chosen},
                             {"ms", t.chosen->ms},
                             {"untuned_ms", t.untuned->ms},
                             {"timed", t.tried}});
  }
  std::printf("%s", options.json ? (report.text(2) + "\n").c_str() : table.text().c_str());
  return exit_ok;
}

}  // namespace hone::cli
