#include "report/report.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>

#include "backend/backend.h"
#include "base/file.h"
#include "base/machine.h"
#include "plan/plan_json.h"
#include "plan/plan_text.h"
#include "report/execution.h"
#include "report/graphs.h"
#include "report/number.h"

namespace hone {

namespace {

Json numbers(const std::vector<double>& all) {
  Json out = Json::Array{};
  for (double x : all) out.push(rounded(x));
  return out;
}

Json types(const std::vector<PlanParam>& all) {
  Json out = Json::Array{};
  for (const PlanParam& p : all)
    out.push(Json::Object{{"name", p.name}, {"type", cat(p.type)}, {"donated", p.donated}});
  return out;
}

class ReportWriter {
 public:
  ReportWriter(const Optimized& seen, const ReportContext& context)
      : seen_(seen), context_(context), plan_(seen.plan) {
    HONE_ASSERT(seen.profile, "a report needs a profile");
    for (std::size_t i = 0; i < plan_.main().strategies.size(); ++i)
      if (plan_.main().strategies[i].chosen) chosen_ = i;
  }

  Json run() {
    return Json::Object{{"format", 1},
                        {"model", model()},
                        {"plan", plan()},
                        {"environment", environment()},
                        {"strategies", strategies()},
                        {"errors", errors()},
                        {"verified", to_json(seen_.tried)},
                        {"variants", variants()},
                        {"passes", passes()},
                        {"graphs", graphs()},
                        {"execution", execution_json(plan_, *seen_.profile, compiled())}};
  }

 private:
  const CompileReport* compiled() const {
    if (chosen_ >= seen_.compiled.size() || seen_.compiled[chosen_].variants.empty())
      return nullptr;
    return &seen_.compiled[chosen_];
  }
  const VariantReport* variant() const {
    return compiled() ? &compiled()->variants.at(seen_.profile->variant) : nullptr;
  }

  Json model() const {
    Json warnings = Json::Array{};
    for (const std::string& w : context_.warnings) warnings.push(w);
    return Json::Object{{"name", plan_.name},
                        {"file", context_.model_file},
                        {"import_ms", rounded(context_.import_ms)},
                        {"params", types(plan_.main().params)},
                        {"results", types(plan_.main().results)},
                        {"samples_are_made_up", context_.samples_are_made_up},
                        {"assumptions", assumptions()},
                        {"warnings", warnings}};
  }

  Json assumptions() const {
    Json out = Json::Array{};
    for (const std::string& line : seen_.assumptions) out.push(line);
    return out;
  }

  Json plan() const {
    return Json::Object{{"file", context_.plan_file},      {"bytes", context_.plan_bytes},
                        {"strategy", plan_.strategy},      {"verification", plan_.verification},
                        {"measured", plan_.measured},      {"kernels", plan_.kernels.size()},
                        {"weights", plan_.weights.size()}, {"prepared", plan_.prepared.size()}};
  }

  Json environment() const {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char date[40];
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    const std::unique_ptr<Target> native =
        default_backend().target(default_backend().target_names[0]);
    return Json::Object{{"processor", this_machine().processor},
                        {"device", open_device(default_backend().name)->description()},
                        {"threads", seen_.profile->threads},
                        {"timed_sizes", seen_.timing.sizes},
                        {"timed_rounds", seen_.timing.rounds},
                        {"busy", rounded(seen_.timing.busy)},
                        {"hone", HONE_VERSION},
                        {"code_generator", std::string(native->version())},
                        {"compiler", "GCC " __VERSION__},
                        {"date", date},
                        {"command", context_.command}};
  }

  Json strategies() const {
    Json out = Json::Array{};
    for (std::size_t i = 0; i < plan_.main().strategies.size(); ++i) out.push(strategy(i));
    return out;
  }

  Json strategy(std::size_t i) const {
    const StrategyRecord& r = plan_.main().strategies[i];
    Json out = Json::Object{{"name", r.name},
                            {"chosen", r.chosen},
                            {"failure", r.failure},
                            {"ms", interval({r.ms, r.low, r.high})},
                            {"max_error", rounded(r.max_error)},
                            {"error_limit", rounded(r.error_limit)},
                            {"compile_ms", rounded(r.compile_ms)},
                            {"peak_bytes", r.peak_bytes},
                            {"ratio", rounded(r.ratio_to_best)}};
    if (i < seen_.times.size() && !seen_.times[i].empty()) {
      out.add("times", numbers(seen_.times[i]));
      if (chosen_ < seen_.times.size() && seen_.times[i].size() == seen_.times[chosen_].size())
        out.add("paired_ratio", interval(paired_ratio(seen_.times[i], seen_.times[chosen_])));
    }
    if (i < seen_.compiled.size() && seen_.compiled[i].total_ms > 0)
      out.add("compile", phases(seen_.compiled[i]));
    return out;
  }

  static Json phases(const CompileReport& r) {
    return Json::Object{{"passes", rounded(r.passes_ms)},
                        {"schedule", rounded(r.schedule_ms)},
                        {"verify", rounded(r.verify_ms)},
                        {"measure", rounded(r.measure_ms)},
                        {"code", rounded(r.codegen_ms)},
                        {"prepare", rounded(r.prepare_ms)},
                        {"total", rounded(r.total_ms)},
                        {"groups", r.groups},
                        {"library_groups", r.library_groups},
                        {"kernels", r.kernels},
                        {"compiled", r.compiled},
                        {"from_cache", r.from_cache},
                        {"verified", r.verified},
                        {"verified_from_cache", r.verified_from_cache},
                        {"verified_shortly", r.verified_shortly}};
  }

  Json errors() const {
    Json out = Json::Array{};
    for (std::size_t i = 0; i < seen_.errors.size(); ++i)
      for (const ResultError& e : seen_.errors[i])
        out.push(Json::Object{{"strategy", plan_.main().strategies[i].name},
                              {"sample", e.sample},
                              {"result", plan_.main().results[e.result].name},
                              {"ok", e.comparison.ok},
                              {"error", rounded(e.comparison.max_abs_error)},
                              {"limit", rounded(e.comparison.limit)},
                              {"largest", rounded(e.largest)},
                              {"undecided", e.comparison.undecided},
                              {"problem", e.comparison.ok ? "" : cat(e.comparison)}});
    return out;
  }

  Json variants() const {
    Json out = Json::Array{};
    for (const Variant& v : plan_.main().variants) {
      Json guards = Json::Array{};
      for (const Guard& g : v.guards) guards.push(guard_text(g));
      out.push(Json::Object{{"target", targets_text(v)},
                            {"guards", guards},
                            {"groups", v.groups.size()},
                            {"devices", devices_json(v)},
                            {"arena_bytes", known_size(arena_bytes(v), seen_.profile->sizes)}});
    }
    return out;
  }

  Json passes() const {
    Json out = Json::Array{};
    if (!variant()) return out;
    for (const PassRecord& r : variant()->passes) {
      auto pass = std::ranges::find(pipeline(), r.name, &Pass::name);
      out.push(Json::Object{{"name", r.name},
                            {"does", pass->does},
                            {"ms", rounded(r.ms)},
                            {"before", r.nodes_before},
                            {"after", r.nodes_after},
                            {"changed", r.changed},
                            {"rules", rules(r)}});
    }
    return out;
  }

  // How often each rule fired.
  static Json rules(const PassRecord& r) {
    std::map<std::string_view, int> counts;
    for (const RuleLog::Firing& f : r.rules.firings) ++counts[f.rule];
    Json out = Json::Array{};
    for (const auto& [rule, count] : counts) out.push(Json::Array{rule, count});
    return out;
  }

  Json graphs() const { return variant() ? graphs_json(*variant()) : Json(); }

  const Optimized& seen_;
  const ReportContext& context_;
  const Plan& plan_;
  std::size_t chosen_ = 0;
};

}  // namespace

Json report(const Optimized& seen, const ReportContext& context) {
  return ReportWriter(seen, context).run();
}

void write_report(const std::filesystem::path& path, const Optimized& seen,
                  const ReportContext& context) {
  const Json data = report(seen, context);
  write_atomic(path, path.extension() == ".json" ? data.text(1) : report_page(data));
}

}  // namespace hone
