#include "compile/choose.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "base/log.h"
#include "compile/stats.h"
#include "compile/trial.h"
#include "compile/verify.h"
#include "kernel/candidates.h"

namespace hone {

namespace {

constexpr std::string_view wrong = "differs from the reference: ";

class Timer {
 public:
  explicit Timer(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Timer() {
    total_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
                  .count();
  }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

std::string spec_text(const GroupSpec& spec, const Sizing& sizes) {
  std::string text = cat(std::hex, spec.function.hash(), std::dec);
  for (const auto* list : {&spec.param_strides, &spec.result_strides})
    for (const Dims& strides : *list) text += cat(" ", Shape(strides));
  for (bool weight : spec.param_is_weight) text += weight ? 'w' : '-';
  for (const Dim& s : spec.function.symbols()) {
    auto it = sizes.find(s.name());
    text += cat(" ", s.name(), "=", it == sizes.end() ? -1 : it->second);
  }
  return text;
}

}  // namespace

Chooser::Chooser(const Backend& backend, const CompileOptions& options, KernelCompiler& compile,
                 std::shared_ptr<Device> device, std::shared_ptr<ThreadPool> pool,
                 const CompileCache& verdicts, CompileReport& report)
    : backend_(backend),
      options_(options),
      compile_(compile),
      trial_memory_(std::make_shared<TrialMemory>(std::move(device))),
      pool_(std::move(pool)),
      verdicts_(verdicts),
      report_(report) {}

std::vector<Choice> Chooser::operator()(const Schedule& schedule, const Trials& trials) {
  std::vector<std::string> keys;
  for (const ScheduledSpec& s : schedule.specs) keys.push_back(spec_text(s.spec, trials.time));
  std::vector<Contest> contests = new_contests(schedule, keys);
  {
    Timer timer(report_.codegen_ms);
    compile_preferred(contests);
  }
  {
    Timer timer(report_.verify_ms);
    parallel_for(*pool_, static_cast<std::int64_t>(contests.size()), [&](std::int64_t i) {
      check(contests[static_cast<std::size_t>(i)], trials.check);
    });
  }
  for (Contest& c : contests) made_.emplace(c.key, decide(c, trials));
  report_.verified = verified_;
  report_.verified_from_cache = verified_from_cache_;
  std::vector<Choice> out;
  for (const std::string& key : keys) out.push_back(made_.at(key));
  for (const ScheduledGroup& g : schedule.groups) {
    ++report_.groups;
    report_.library_groups += out[g.spec].is_library;
  }
  return out;
}

std::vector<Chooser::Contest> Chooser::new_contests(const Schedule& schedule,
                                                    const std::vector<std::string>& keys) {
  std::vector<std::string_view> origins(schedule.specs.size());
  for (std::size_t i = schedule.groups.size(); i-- > 0;)
    origins[schedule.groups[i].spec] = schedule.groups[i].origins;
  std::vector<Contest> out;
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (made_.contains(keys[i]) || !seen.insert(keys[i]).second) continue;
    const ScheduledSpec& spec = schedule.specs[i];
    out.push_back({&spec, origins[i], keys[i], options_for(spec.spec), 0});
    out.back().best = preferred(out.back().options);
  }
  return out;
}

// All in one go, so that the threads share the work evenly.
void Chooser::compile_preferred(const std::vector<Contest>& contests) {
  std::vector<const Kernel*> kernels;
  for (const Contest& c : contests)
    for (const Candidate::Step& s : c.options[c.best].candidate.steps)
      if (const auto* kernel = std::get_if<Kernel>(&s.what)) kernels.push_back(kernel);
  compile_(kernels);
}

// A candidate that fails its check is out; the next one is asked, and the failure is recorded.
void Chooser::check(Contest& c, const Sizing& sizes) {
  while (c.best < c.options.size() && !passes(c.spec->spec, c.options[c.best], sizes))
    c.best = preferred(c.options);
  for (const Option& o : c.options)
    if (o.record.refused.starts_with(wrong))
      log_warning(cat("group '", c.spec->name, "' (", c.origins, "): candidate ", o.record.name,
                      " ", o.record.refused, "; it is not used"));
}

std::vector<Chooser::Option> Chooser::options_for(const GroupSpec& spec) {
  const TargetInfo& info = compile_.target().info();
  std::vector<Option> out;
  for (Candidate& c : generated_candidates(spec, info)) out.push_back({std::move(c), false, {}});
  if (options_.strategy != "cpu")
    for (Candidate& c : backend_.library_candidates(spec, info))
      out.push_back({std::move(c), true, {}});
  for (Option& o : out) {
    o.record.name = o.candidate.name;
  }
  return out;
}

std::size_t Chooser::preferred(const std::vector<Option>& options) const {
  for (bool library : {options_.strategy == backend_.library, false})
    for (std::size_t i = 0; i < options.size(); ++i)
      if (!options[i].is_out() && options[i].is_library == library) return i;
  return options.size();
}

Choice Chooser::decide(Contest& c, const Trials& trials) {
  const ScheduledSpec& spec = *c.spec;
  std::string reason = c.options.size() == 1 ? "only candidate" : "predicted";
  if (c.best < c.options.size() && options_.measure && options_.strategy == "auto" && !spec.prepare)
    c.best = measured_best(spec.spec, c.options, c.best, trials, reason);
  if (c.best == c.options.size()) {
    std::string why;
    for (const Option& o : c.options) why += cat("; ", o.record.name, ": ", o.record.refused);
    throw UserError("group '", spec.name, "' (", c.origins,
                    ") has no candidate that computes it correctly", why);
  }
  Choice choice{c.options[c.best].candidate, reason, {}, c.options[c.best].is_library};
  for (const Option& o : c.options) choice.records.push_back(o.record);
  return choice;
}

Hash128 Chooser::verdict_key(const GroupSpec& spec, const Candidate& c, const Sizing& sizes) const {
  std::string text = cat("verdict-1 ", spec_text(spec, sizes));
  for (const Candidate::Step& s : c.steps) {
    if (const auto* kernel = std::get_if<Kernel>(&s.what)) {
      text += " " + to_hex(compile_.key(*kernel));
    } else {
      text += " " + std::get<std::string>(s.what);
      for (const auto& [name, value] : s.settings) text += cat(" ", name, "=", value);
    }
  }
  return hash128(text);
}

bool Chooser::passes(const GroupSpec& spec, Option& option, const Sizing& sizes) {
  if (options_.verification == Verification::none) return true;
  const Hash128 key = verdict_key(spec, option.candidate, sizes);
  if (std::optional<std::vector<std::byte>> known = verdicts_.find(key);
      known && known->size() == sizeof(double)) {
    std::memcpy(&option.record.error, known->data(), sizeof(double));
    ++verified_from_cache_;
    return true;
  }
  try {
    Comparison c = verify(spec, option.candidate, compile_, trial_memory_, one_thread_, sizes);
    option.record.error = c.max_rel_error;
    if (!c.ok) option.record.refused = cat(wrong, c);
  } catch (const UserError& e) {
    option.record.refused = e.what();
  }
  if (option.is_out()) return false;
  ++verified_;
  verdicts_.store(key, std::as_bytes(std::span(&option.record.error, 1)));
  return true;
}

std::size_t Chooser::measured_best(const GroupSpec& spec, std::vector<Option>& options,
                                   std::size_t start, const Trials& sizes, std::string& reason) {
  std::vector<std::size_t> field = {start};
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (i != start && !options[i].is_out() && passes(spec, options[i], sizes.check))
      field.push_back(i);
  }
  if (field.size() < 2) return start;
  Timer timer(report_.measure_ms);
  std::vector<std::unique_ptr<Trial>> trials;
  std::vector<std::function<void()>> runs;
  for (std::size_t i : field) {
    trials.push_back(std::make_unique<Trial>(spec, options[i].candidate, compile_, trial_memory_,
                                             pool_, sizes.time, Fill::random, 17));
    runs.push_back([trial = trials.back().get()] { trial->run(); });
  }
  std::vector<std::vector<double>> times =
      race(runs, {.rounds = 15, .least_sample_ms = 0.1, .most_seconds = 1.5});
  std::size_t best = 0;
  for (std::size_t k = 0; k < field.size(); ++k) {
    CandidateRecord& r = options[field[k]].record;
    Interval t = median_interval(times[k]);
    r.ms = t.median;
    r.low = t.low;
    r.high = t.high;
    if (k > 0 && is_clearly_faster(times[k], times[best])) best = k;
  }
  reason = "measured";
  return field[best];
}

}  // namespace hone
